//go:build linux

package containerd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/core/containers"
	"golang.org/x/sys/unix"

	"haggle/runtime"
)

// A path into a job is a connection to its door, which listens on an abstract socket in the job's own network namespace: no
// path of the tenant's is walked, and nothing of the job's is reached from elsewhere. Whoever answers there is not trusted:
// bytes are all that is exchanged with it.

// doorTimeout bounds the start of a door, and how long one that has no room for another path is waited for.
const doorTimeout = 20 * time.Second

// errNoDoor: nobody listens.
var errNoDoor = errors.New("no door is there")

// Enter implements runtime.Runtime.
func (e *Engine) Enter(ctx context.Context, id string) (runtime.Conn, error) {
	if len(e.cfg.DoorProgram) == 0 {
		return nil, fmt.Errorf("enter job %s: %w: this engine has no program for doors", id, runtime.ErrUnsupported)
	}
	ctx, cancel := context.WithTimeout(e.within(ctx), doorTimeout)
	defer cancel()
	conn, err := e.enter(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("enter job %s: %w", id, err)
	}
	return conn, nil
}

func (e *Engine) enter(ctx context.Context, id string) (*net.UnixConn, error) {
	name, err := e.container(ctx, id)
	if err != nil {
		return nil, err
	}
	conn, err := e.enterTask(ctx, name)
	if err == nil || ctx.Err() != nil {
		return conn, err
	}
	// Most often it has ended, long ago or just now.
	st, serr := e.Status(ctx, id)
	switch {
	case serr != nil:
		return nil, serr
	case st.State != runtime.Stopped:
		return nil, err
	}
	return e.enterVisit(ctx, name)
}

// enterTask opens a path into a job whose first process is there, and opens its door first when that is closed.
func (e *Engine) enterTask(ctx context.Context, name string) (*net.UnixConn, error) {
	conn, err := e.knock(ctx, name)
	if !errors.Is(err, errNoDoor) {
		return conn, err
	}
	err = e.withLock(ctx, name, func() error {
		if conn, err = e.knock(ctx, name); !errors.Is(err, errNoDoor) { // somebody else was faster
			return err
		}
		c, err := e.client.ContainerService().Get(ctx, name)
		if err != nil {
			return classify(err, "look for it")
		}
		conn, err = e.openDoor(ctx, c)
		return err
	})
	return conn, err
}

// knock connects with the door of a container, if it has one.
func (e *Engine) knock(ctx context.Context, name string) (*net.UnixConn, error) {
	pid, err := e.insider(ctx, name)
	if err != nil {
		return nil, err
	}
	address, err := e.doorAddress(name)
	if err != nil {
		return nil, err
	}
	return dialInside(ctx, pid, address, func() error { return errNoDoor })
}

// insider is the number of a container's first process, started or not.
func (e *Engine) insider(ctx context.Context, name string) (uint32, error) {
	t, err := e.getTask(ctx, name)
	if err != nil {
		return 0, err
	}
	if t == nil || t.Pid == 0 || !alive(t) {
		return 0, fmt.Errorf("%w: no process of it is there", runtime.ErrConflict)
	}
	return t.Pid, nil
}

// doorFile keeps the address of a container's door for the engines that come after this one.
func (e *Engine) doorFile(name string) string { return filepath.Join(e.jobDir(name), "door") }

func (e *Engine) doorAddress(name string) (string, error) {
	b, err := readSmall(e.doorFile(name))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(b) == 0 {
		return "", errNoDoor
	}
	return string(b), err
}

func (e *Engine) noteDoor(name, address string) error {
	return os.WriteFile(e.doorFile(name), []byte(address), 0o600)
}

const (
	dialPause    = time.Millisecond
	maxDialPause = 50 * time.Millisecond
)

// dialInside connects with an abstract socket in the network namespace of a process. Where nobody listens it asks wait whether
// to try again: nil is yes.
func dialInside(ctx context.Context, pid uint32, address string, wait func() error) (*net.UnixConn, error) {
	socket, err := socketInside(pid)
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	for pause := dialPause; ; pause = min(2*pause, maxDialPause) {
		err := unix.Connect(int(socket.Fd()), &unix.SockaddrUnix{Name: "@" + address})
		switch {
		case err == nil:
			return connOf(socket)
		case errors.Is(err, unix.ECONNREFUSED):
			if err := wait(); err != nil {
				return nil, err
			}
		case !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR): // EAGAIN: its queue is full
			return nil, fmt.Errorf("connect with its door: %w", err)
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, fmt.Errorf("%w: its door does not answer: %w", runtime.ErrUnavailable, err)
		}
	}
}

// socketInside makes a socket that belongs to the network namespace of a process. The number may be another's by now: there
// nobody listens on what was chosen by chance.
func socketInside(pid uint32) (*os.File, error) {
	space, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: its first process has gone", runtime.ErrConflict)
	}
	if err != nil {
		return nil, err
	}
	defer space.Close()
	fd := -1
	err = within(space, unix.CLONE_NEWNET, func() error {
		fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("make a socket inside: %w", err)
	}
	return os.NewFile(uintptr(fd), "door"), nil
}

func connOf(socket *os.File) (*net.UnixConn, error) {
	conn, err := net.FileConn(socket)
	if err != nil {
		return nil, err
	}
	if c, ok := conn.(*net.UnixConn); ok {
		return c, nil
	}
	return nil, errors.Join(fmt.Errorf("%T is no unix socket", conn), conn.Close())
}

// visitPrefix starts the names of visits (visit.go), which no job may have.
const visitPrefix = "haggle-visit-"

func isVisit(name string) bool { return strings.HasPrefix(name, visitPrefix) }

// visitedBy is the container whose disk a visit shows.
func visitedBy(c containers.Container) string { return c.Labels[labelVisit] }
