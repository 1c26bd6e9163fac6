//go:build linux

package containerd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"haggle/runtime"
)

// loggerGrace is how long after its job a logger that still writes is waited for.
const loggerGrace = 10 * time.Second

// Log implements runtime.Runtime.
func (e *Engine) Log(ctx context.Context, id string, offset int64, follow bool) (io.ReadCloser, error) {
	st, err := e.Status(ctx, id)
	if err != nil {
		return nil, err
	}
	name, err := e.container(e.within(ctx), id)
	if err != nil {
		return nil, err
	}
	if !follow {
		r, err := runtime.OpenLog(ctx, e.logPath(name), offset, nil)
		return r, logError(err, id)
	}
	ctx, cancel := context.WithCancel(ctx)
	gone := make(chan struct{})
	r, err := runtime.OpenLog(ctx, e.logPath(name), offset, gone)
	if err != nil {
		cancel()
		return nil, logError(err, id)
	}
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		if e.awaitLogger(ctx, id, name, st.State) == nil {
			close(gone)
		}
	}()
	end := func() error { cancel(); <-watching; return nil }
	return closers{Reader: r, all: []func() error{end, r.Close}}, nil
}

func logError(err error, id string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("log of job %s: %w", id, runtime.ErrNotFound)
	}
	return err
}

// awaitLogger returns nil when nothing more can come into the log: the job has ended and its logger has let go of
// the file. It does not give up while containerd is away.
func (e *Engine) awaitLogger(ctx context.Context, id, name string, state runtime.State) error {
	for state != runtime.Stopped {
		if e.awaitEnd(e.within(ctx), id) == nil {
			break
		}
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
	return e.awaitLoggerEnd(ctx, name)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// loggerHolds reports whether the logger still has its lock on the file.
func loggerHolds(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil
}
