//go:build linux

package containerd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/api/types/task"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"haggle/runtime"
)

// The first process of a spare is runtime/inside's wait, with the user, the rights and the limits of its job to be. Two FIFOs
// lead to it: what it is told and what it says. They and its program are shown to it in waitPlace, which is unmounted as soon as it has
// opened them: what takes its place later finds nothing of it, and nobody else ever saw it.
const (
	waitName  = "wait"         // the folder of both, in the job's folder
	waitPlace = "/dev/.haggle" // and where the spare sees it; runc has made /dev, whatever the image has there
	toldName  = "told"
	saysName  = "says"
	waiter    = "program"

	// spareTimeout bounds the making of a spare, on a machine that has other things to do.
	spareTimeout = time.Minute
)

func (e *Engine) waitDir(name string) string { return filepath.Join(e.jobDir(name), waitName) }

// makeSpare makes a container that waits.
func (e *Engine) makeSpare(ctx context.Context, sh shape) error {
	ctx, cancel := context.WithTimeout(ctx, spareTimeout)
	defer cancel()
	sp := &spare{name: sparePrefix + strings.ToLower(rand.Text()), shape: sh.key, image: sh.spec.Image}
	err := e.withLock(ctx, sp.name, func() error {
		if err := e.spares.begin(sp); err != nil {
			return err
		}
		err := e.makeWaiting(ctx, sp, sh)
		if err != nil {
			e.spares.drop(sp)
			return fmt.Errorf("make a spare: %w", err)
		}
		e.spares.finish(sp)
		return nil
	})
	if err != nil {
		return err
	}
	// Who lets go of an image looks for its spares, and may have looked before this one was ready.
	if found := <-e.lookForImage(ctx, sh.spec.Image); found.err != nil || len(found.images) > 0 {
		return found.err
	}
	return e.throwAway(ctx, e.spares.ofImage(sh.spec.Image))
}

func (e *Engine) makeWaiting(ctx context.Context, sp *spare, sh shape) error {
	spec := sh.spec
	spec.ID, spec.Args = sp.name, e.cfg.WaitProgram
	if sh.secrets {
		spec.Secrets = map[string][]byte{}
	}
	img, err := e.openImage(ctx, spec, <-e.lookForImage(ctx, spec.Image))
	if err != nil {
		return err
	}
	if err := e.createWhole(ctx, spec, img, nil); err != nil {
		return err
	}
	if err = e.startWaiting(ctx, sp); err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	return errors.Join(err, e.discard(ctx, sp.name))
}

// letWait puts the process that waits in the place of the job's. uid and gid are those of the job's user on the host.
func (e *Engine) letWait(s *specs.Spec, name string, uid, gid int) error {
	dir := e.waitDir(name)
	if err := errors.Join(os.Mkdir(dir, 0o711), os.Chmod(dir, 0o711)); err != nil { // whatever our umask
		return err
	}
	for _, fifo := range []string{toldName, saysName} {
		path := filepath.Join(dir, fifo)
		if err := errors.Join(unix.Mkfifo(path, 0o600), os.Lchown(path, uid, gid)); err != nil {
			return fmt.Errorf("make %s: %w", path, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, waiter), nil, 0o400); err != nil { // for the mount
		return err
	}
	program := readOnly(e.cfg.WaitProgram[0], filepath.Join(waitPlace, waiter))
	program.Options = slices.DeleteFunc(program.Options, func(o string) bool { return o == "noexec" })
	s.Mounts = append(s.Mounts, readOnly(dir, waitPlace), program)
	s.Process.Args = slices.Concat([]string{program.Destination}, e.cfg.WaitProgram[1:], []string{waitPlace})
	s.Process.Env = []string{"GOMAXPROCS=1"}
	return nil
}

// startWaiting starts a spare's first process and shuts the door behind it.
func (e *Engine) startWaiting(ctx context.Context, sp *spare) error {
	c, err := e.client.ContainerService().Get(ctx, sp.name)
	if err != nil {
		return classify(err, "look for %s", sp.name)
	}
	if sp.spec, err = specOf(c); err != nil {
		return err
	}
	// Open for writing too, or it would seem to have ended before it has begun.
	if sp.words, err = os.OpenFile(filepath.Join(e.waitDir(sp.name), saysName), os.O_RDWR|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0); err != nil {
		return err
	}
	if _, err := e.client.TaskService().Start(ctx, &tasks.StartRequest{ContainerID: sp.name}); err != nil {
		return classifyStart(native(err), "start", sp.name)
	}
	if err := hear(ctx, sp.words); err != nil {
		return err
	}
	before, err := e.firstProcess(ctx, sp.name)
	if err != nil {
		return err
	}
	proc := fmt.Sprintf("/proc/%d/ns/", before)
	mounts, err := os.Open(proc + "mnt")
	if err != nil {
		return err
	}
	defer mounts.Close()
	if sp.uts, err = os.Open(proc + "uts"); err != nil {
		return err
	}
	// What runs now under the number that it had before was that process all the time, and so these are its namespaces.
	if after, err := e.firstProcess(ctx, sp.name); err != nil || after != before {
		return errors.Join(errors.New("it did not wait"), err)
	}
	return within(mounts, unix.CLONE_NEWNS, func() error {
		return errors.Join(unix.Unmount(waitPlace, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW), unix.Rmdir(waitPlace))
	})
}

// firstProcess is the number of a container's first process.
func (e *Engine) firstProcess(ctx context.Context, name string) (uint32, error) {
	t, err := e.getTask(ctx, name)
	if err != nil {
		return 0, err
	}
	if t == nil || t.Status != task.Status_RUNNING {
		return 0, fmt.Errorf("job %s does not run: %w", name, runtime.ErrConflict)
	}
	return t.Pid, nil
}

// within calls do in a namespace of mounts or of host names, on a thread that ends with it.
func within(space *os.File, kind int, do func() error) error {
	done := make(chan error, 1)
	go func() {
		goruntime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The first thread never ends, and stands for all of us in /proc/self. It is kept waiting, so that another does it.
			defer goruntime.UnlockOSThread()
			done <- within(space, kind, do)
			return
		}
		// Never unlocked: no other code may get this thread.
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			done <- fmt.Errorf("leave the folder of others: %w", err)
			return
		}
		if err := unix.Setns(int(space.Fd()), kind); err != nil {
			done <- fmt.Errorf("enter %s: %w", space.Name(), err)
			return
		}
		done <- do()
	}()
	return <-done
}
