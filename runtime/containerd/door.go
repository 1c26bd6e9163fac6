//go:build linux

package containerd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/api/types/task"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/errdefs"
	"github.com/containerd/typeurl/v2"
	"github.com/opencontainers/runtime-spec/specs-go"
	"google.golang.org/protobuf/types/known/anypb"

	"haggle/runtime"
)

// The door of a job is a process beside the job's own, with the same rights and limits. Its program is shown to every job from
// the beginning, in a place that runc has made, whatever the image has there. It has no output: what nobody may fill needs no
// bound, and nothing of it leads to us, so that it goes on when we are killed. That it is ready is seen by its answer.
//
// A door that has ended, whoever ended it, is replaced by the next call of Enter.

// doorPlace is where a job sees the door's program.
const doorPlace = "/dev/.haggle-door"

// doorPrefix starts the addresses of doors, which are also the names of their processes in containerd.
const doorPrefix = "haggle-door-"

func alive(t *task.Process) bool {
	return t.Status == task.Status_CREATED || t.Status == task.Status_RUNNING
}

// doorMount shows the door's program to a job; none where every job would fail of it.
func (e *Engine) doorMount() []specs.Mount {
	if len(e.cfg.DoorProgram) == 0 {
		return nil
	}
	program := e.cfg.DoorProgram[0]
	err := passable(filepath.Dir(program))
	if err == nil {
		var info os.FileInfo
		if info, err = os.Stat(program); err == nil && (!info.Mode().IsRegular() || info.Mode().Perm()&0o005 != 0o005) {
			err = fmt.Errorf("%w: other users cannot run %s", runtime.ErrUnsupported, program)
		}
	}
	if err != nil {
		e.cfg.Log.Warn("a job gets no door", "err", err)
		return nil
	}
	m := readOnly(program, doorPlace)
	m.Options = slices.DeleteFunc(m.Options, func(o string) bool { return o == "noexec" })
	return []specs.Mount{m}
}

// openDoor starts a door in a job and connects with it. The job's lock is held.
func (e *Engine) openDoor(ctx context.Context, c containers.Container) (*net.UnixConn, error) {
	if err := e.clearDoor(ctx, c.ID); err != nil {
		return nil, err
	}
	pid, err := e.insider(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	address := doorPrefix + strings.ToLower(rand.Text())
	process, err := e.doorProcess(c, address)
	if err != nil {
		return nil, err
	}
	if err := e.noteDoor(c.ID, address); err != nil {
		return nil, err
	}
	request := &tasks.ExecProcessRequest{ContainerID: c.ID, ExecID: address, Spec: process}
	if _, err := e.client.TaskService().Exec(ctx, request); err != nil {
		return nil, classify(err, "make its door")
	}
	if _, err := e.client.TaskService().Start(ctx, &tasks.StartRequest{ContainerID: c.ID, ExecID: address}); err != nil {
		return nil, errors.Join(classify(err, "open its door"), e.clearDoor(ctx, c.ID))
	}
	return dialInside(ctx, pid, address, func() error { return e.doorStands(ctx, c.ID, address) })
}

// doorStands returns an error when a door has ended.
func (e *Engine) doorStands(ctx context.Context, name, address string) error {
	r, err := e.client.TaskService().Get(ctx, &tasks.GetRequest{ContainerID: name, ExecID: address})
	if err != nil {
		return classify(err, "its door")
	}
	if !alive(r.Process) {
		return fmt.Errorf("its door ended at its start with code %d", r.Process.ExitStatus)
	}
	return nil
}

// clearDoor ends what there is of a door of which nobody is heard.
func (e *Engine) clearDoor(ctx context.Context, name string) error {
	address, err := e.doorAddress(name)
	if errors.Is(err, errNoDoor) {
		return nil
	}
	if err != nil {
		return err
	}
	service := e.client.TaskService()
	kill := &tasks.KillRequest{ContainerID: name, ExecID: address, Signal: uint32(syscall.SIGKILL)}
	if _, err := service.Kill(ctx, kill); err != nil && !errdefs.IsNotFound(native(err)) { // not found also when it has ended
		return classify(err, "end its door")
	}
	if _, err := service.Wait(ctx, &tasks.WaitRequest{ContainerID: name, ExecID: address}); err != nil && !errdefs.IsNotFound(native(err)) {
		return classify(err, "wait for the end of its door")
	}
	_, err = service.DeleteProcess(ctx, &tasks.DeleteProcessRequest{ContainerID: name, ExecID: address})
	if err = native(err); err != nil && !errdefs.IsNotFound(err) {
		return classify(err, "clear its door away")
	}
	return nil
}

// doorProcess says what a door is: a process like the job's first, as the job's root, from the top of its file system. Runc
// enters that folder before it has given its own up, so it must be none that the tenant can put a link in the place of.
func (e *Engine) doorProcess(c containers.Container, address string) (*anypb.Any, error) {
	s, err := specOf(c)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(s.Mounts, func(m specs.Mount) bool { return m.Destination == doorPlace }) {
		return nil, fmt.Errorf("%w: it was made without a door", runtime.ErrUnsupported)
	}
	p := *s.Process
	p.Terminal, p.User, p.Cwd = false, specs.User{}, "/"
	p.Args = slices.Concat([]string{doorPlace}, e.cfg.DoorProgram[1:], []string{"@" + address})
	encoded, err := typeurl.MarshalAny(&p)
	if err != nil {
		return nil, err
	}
	return typeurl.MarshalProto(encoded), nil
}

// specOf decodes what runc was told of a container.
func specOf(c containers.Container) (*specs.Spec, error) {
	if c.Spec == nil {
		return nil, fmt.Errorf("container %s has no description", c.ID)
	}
	v, err := typeurl.UnmarshalAny(c.Spec)
	if err != nil {
		return nil, fmt.Errorf("description of container %s: %w", c.ID, err)
	}
	s, ok := v.(*specs.Spec)
	if !ok || s.Process == nil {
		return nil, fmt.Errorf("description of container %s is a %T", c.ID, v)
	}
	return s, nil
}
