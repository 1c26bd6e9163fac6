//go:build linux

package containerd

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"haggle/runtime"
)

// Warm makes a spare that fits a job, if there can be one, and returns its name.
func (e *Engine) Warm(ctx context.Context, spec runtime.Spec) (string, error) {
	ctx = e.within(ctx)
	img, err := e.openImage(ctx, spec, <-e.lookForImage(ctx, spec.Image))
	if err != nil {
		return "", err
	}
	sh, fits := shapeOf(spec, img.config)
	if !fits {
		return "", nil
	}
	if err := e.makeSpare(ctx, sh); err != nil {
		return "", err
	}
	e.spares.mu.Lock()
	defer e.spares.mu.Unlock()
	var newest *spare
	for _, sp := range e.spares.all {
		if sp.ready && sp.shape == sh.key && (newest == nil || sp.since.After(newest.since)) {
			newest = sp
		}
	}
	if newest == nil {
		return "", nil
	}
	return newest.name, nil
}

// AwaitSpare returns when the spare that was asked for last is there.
func (e *Engine) AwaitSpare(ctx context.Context) error {
	for ctx.Err() == nil {
		e.spares.mu.Lock()
		for _, sp := range e.spares.all {
			if sp.ready && sp.shape == e.spares.wanted.key {
				e.spares.mu.Unlock()
				return nil
			}
		}
		e.spares.mu.Unlock()
		if err := sleep(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// OrderStart writes what Start writes first, as an engine does that is killed then.
func (e *Engine) OrderStart(ctx context.Context, id string) error {
	ctx = e.within(ctx)
	name, err := e.container(ctx, id)
	if err != nil {
		return err
	}
	return e.setLabels(ctx, name, map[string]string{labelStarted: time.Now().UTC().Format(time.RFC3339Nano)})
}

// Squat listens where the door of a job did, as a process of that job could, with the shortest queue, and lets nobody in.
func (e *Engine) Squat(ctx context.Context, id string) (*os.File, error) {
	ctx = e.within(ctx)
	name, err := e.container(ctx, id)
	if err != nil {
		return nil, err
	}
	pid, err := e.insider(ctx, name)
	if err != nil {
		return nil, err
	}
	address, err := e.doorAddress(name)
	if err != nil {
		return nil, err
	}
	socket, err := socketInside(pid)
	if err != nil {
		return nil, err
	}
	for ctx.Err() == nil {
		err = unix.Bind(int(socket.Fd()), &unix.SockaddrUnix{Name: "@" + address})
		if !errors.Is(err, unix.EADDRINUSE) {
			break
		}
		err = sleep(ctx, time.Millisecond)
	}
	if err == nil {
		err = unix.Listen(int(socket.Fd()), 0)
	}
	return socket, err
}
