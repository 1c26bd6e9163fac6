//go:build linux

package containerd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"golang.org/x/sys/unix"
)

// What an engine that was killed has left half made goes on by itself: containerd and a shim finish the job's processes, and a
// logger waits for them. Before a job is discarded, that has to come to its end, or it would come into being afterwards.

// How long containerd may take to finish, or give up, what it was asked for, before it is helped along.
const (
	settleByItself = time.Second
	settleHelped   = 5 * time.Second
	settlePatience = 20 * time.Second
)

// settle waits until no task of a job is being made or deleted. Somebody else's containerd is not waited for: where it works
// is not known.
func (e *Engine) settle(ctx context.Context, id string) error {
	if e.daemon == nil {
		return nil
	}
	bundle := e.bundles() + "/" + id
	began, asked := time.Now(), false
	for pause := 5 * time.Millisecond; time.Since(began) < settlePatience; pause = min(2*pause, 200*time.Millisecond) {
		if _, err := os.Stat(bundle); err != nil {
			return nil
		}
		t, err := e.getTask(ctx, id)
		if err != nil || t != nil {
			return err
		}
		// A shim whose logger died waits for somebody who reads.
		release := e.openPipes(id)
		switch waited := time.Since(began); {
		case waited > settleHelped:
			err = e.killShims(id)
		case waited > settleByItself && !asked:
			// Containerd 1.6 that loses its client in the middle of deleting a task forgets the shim.
			asked = true
			e.deleteAgain(ctx, id)
		}
		err = errors.Join(err, sleep(ctx, pause))
		release()
		if err != nil {
			return err
		}
	}
	e.cfg.Log.Warn("containerd does not finish what it does to a job", "job", id)
	return nil
}

func (e *Engine) deleteAgain(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, settleHelped-settleByItself)
	defer cancel()
	if _, err := e.client.TaskService().Delete(ctx, &tasks.DeleteTaskRequest{ContainerID: id}); err != nil {
		e.cfg.Log.Debug("a shim without a task is left", "job", id, "err", err)
	}
}

// killShims kills the shims of a job that has no task.
func (e *Engine) killShims(id string) error {
	for _, p := range findProcesses(func(args []string) bool { return e.isShim(args) && flagValue(args, "-id") == id }) {
		e.cfg.Log.Info("a shim without a task is killed", "job", id, "pid", p.PID)
		if err := p.signal(syscall.SIGKILL); err != nil {
			return err
		}
	}
	return nil
}

// isShim reports whether a command line is that of a shim of our own containerd.
func (e *Engine) isShim(args []string) bool {
	return strings.HasPrefix(filepath.Base(args[0]), "containerd-shim") && flagValue(args, "-address") == e.cfg.Socket
}

// flagValue is the word after a flag, empty without it.
func flagValue(args []string, flag string) string {
	if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

// openPipes opens the FIFOs of a job that is being made, as far as they are there.
func (e *Engine) openPipes(id string) (release func()) {
	var fds []int
	for _, path := range e.pipePaths(id) {
		if fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0); err == nil {
			fds = append(fds, fd)
		}
	}
	return func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}
}

// endLogger kills a logger that nobody writes to any more: that of a job which was not made to the end.
func (e *Engine) endLogger(ctx context.Context, id string) error {
	waiting := loggerHolds(e.logPath(id))
	for _, path := range e.pipePaths(id) {
		if _, err := os.Lstat(path); err == nil {
			waiting = true
		}
	}
	if !waiting {
		return nil
	}
	ours := func(args []string) bool {
		return len(args) == 3 && args[1] == e.cfg.LoggerArgs[0] && strings.HasSuffix(args[2], ":"+e.logPath(id))
	}
	for _, p := range findProcesses(ours) {
		if err := p.signal(syscall.SIGKILL); err != nil {
			return err
		}
		ended, cancel := context.WithTimeout(ctx, time.Second)
		<-p.watch(ended)
		cancel()
	}
	return nil
}
