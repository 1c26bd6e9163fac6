package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"haggle/runtime"
)

// Start implements runtime.Runtime.
func (e *Engine) Start(ctx context.Context, id string) error {
	e.changing.Lock()
	defer e.changing.Unlock()
	j, r, err := e.find(ctx, id)
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	switch r.state {
	case runtime.Running:
		return nil
	case runtime.Stopped:
		return fmt.Errorf("start job %s, which has ended: %w", id, runtime.ErrConflict)
	}
	gone, err := e.supervise(ctx, j.folder)
	if err != nil {
		if _, r, again := e.find(ctx, id); again == nil && r.state == runtime.Running {
			return nil // by a supervisor whose engine died before it heard from it
		}
		return fmt.Errorf("start job %s: %w", id, err)
	}
	e.tell(runtime.Event{ID: id, Kind: runtime.EventStarted, At: time.Now()})
	e.watch(id, j, gone)
	return nil
}

// Stop implements runtime.Runtime. Where the system has no way to ask a process to end, as on Windows, it is killed at once.
func (e *Engine) Stop(ctx context.Context, id string, grace time.Duration) error {
	return e.end(ctx, id, order{Ask: true, Kill: time.Now().Add(max(0, grace))})
}

// Kill implements runtime.Runtime.
func (e *Engine) Kill(ctx context.Context, id string) error {
	return e.end(ctx, id, order{Kill: time.Now()})
}

func (e *Engine) end(ctx context.Context, id string, o order) error {
	j, err := e.order(ctx, id, o)
	if err != nil {
		return fmt.Errorf("end: %w", err)
	}
	select {
	case <-j.ended: // though the caller may have given up meanwhile
		return nil
	default:
	}
	select {
	case <-j.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// order tells the supervisor. A job that was not started ends here.
func (e *Engine) order(ctx context.Context, id string, o order) (*entry, error) {
	e.changing.Lock()
	defer e.changing.Unlock()
	j, r, err := e.find(ctx, id)
	if err != nil || r.state == runtime.Stopped {
		return j, err
	}
	if r.state == runtime.Created {
		err := e.endCreated(id, j)
		if !errors.Is(err, errLocked) {
			return j, err
		}
		e.watch(id, j, nil) // a supervisor is just starting it
	}
	before, err := optional[order](j.folder.file(fileStop))
	if err != nil {
		return j, err
	}
	if before != nil {
		o.Ask = o.Ask || before.Ask
		if before.Kill.Before(o.Kill) {
			o.Kill = before.Kill
		}
	}
	return j, writeFile(j.folder.file(fileStop), o)
}

// endCreated ends a job that never ran. The lock keeps a late supervisor away.
func (e *Engine) endCreated(id string, j *entry) (err error) {
	lock, err := lockFile(j.folder.file(fileLock))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	f, err := os.OpenFile(j.folder.log(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	end := ended{At: time.Now(), Code: killedCode}
	err = errors.Join(runtime.NewLogWriter(f, 0).Close(), f.Close(), j.folder.lastWord(end))
	if err != nil {
		return err
	}
	e.gone(j)
	e.tell(runtime.Event{ID: id, Kind: runtime.EventExited, Exit: record{ended: &end}.exit(), At: end.At})
	return nil
}

// Remove implements runtime.Runtime.
func (e *Engine) Remove(ctx context.Context, id string) error {
	if err := e.Kill(ctx, id); errors.Is(err, runtime.ErrNotFound) {
		return nil
	} else if err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	e.changing.Lock()
	defer e.changing.Unlock()
	if err := e.closeDoor(ctx, folder(e.jobDir(id))); err != nil {
		return fmt.Errorf("remove job %s: close its door: %w", id, err)
	}
	e.mu.Lock()
	delete(e.jobs, id)
	e.mu.Unlock()
	trash := folder(e.jobDir(".gone-" + id))
	err := os.Rename(e.jobDir(id), string(trash))
	if errors.Is(err, os.ErrNotExist) {
		return nil // by another call
	}
	if err = errors.Join(err, trash.destroy(), e.collect()); err != nil {
		return fmt.Errorf("remove job %s: %w", id, err)
	}
	return nil
}

// exit returns how a job ended; nil while it has not, or nobody saw it.
func (r record) exit() *runtime.Exit {
	if r.ended == nil || r.ended.Lost {
		return nil
	}
	exit := runtime.NewExit(r.ended.Code, 0)
	return &exit
}

func (r record) status(id string) runtime.Status {
	s := runtime.Status{ID: id, Labels: maps.Clone(r.job.Labels), State: r.state, Exit: r.exit()}
	if r.started != nil {
		s.StartedAt = r.started.At
	}
	if r.ended != nil {
		s.ExitedAt = r.ended.At
	}
	return s
}

// Status implements runtime.Runtime.
func (e *Engine) Status(ctx context.Context, id string) (runtime.Status, error) {
	_, r, err := e.find(ctx, id)
	if err != nil {
		return runtime.Status{}, fmt.Errorf("status: %w", err)
	}
	return r.status(id), nil
}

func (e *Engine) ids() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.jobs))
}

// List implements runtime.Runtime.
func (e *Engine) List(ctx context.Context) ([]runtime.Status, error) {
	var all []runtime.Status
	for _, id := range e.ids() {
		_, r, err := e.find(ctx, id)
		if errors.Is(err, runtime.ErrNotFound) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("list: %w", err)
		}
		all = append(all, r.status(id))
	}
	return all, ctx.Err()
}

// Log implements runtime.Runtime.
func (e *Engine) Log(ctx context.Context, id string, offset int64, follow bool) (io.ReadCloser, error) {
	j, _, err := e.find(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	var gone <-chan struct{}
	if follow {
		gone = j.ended
	}
	r, err := runtime.OpenLog(ctx, j.folder.log(), offset, gone)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("log of job %s: %w", id, runtime.ErrNotFound)
	}
	return r, err
}

// Usage implements runtime.Runtime. The figures of a running job are known on Linux only; they are those of the processes
// that have not left the job's group.
func (e *Engine) Usage(ctx context.Context, id string) (runtime.Usage, error) {
	_, r, err := e.find(ctx, id)
	if err != nil {
		return runtime.Usage{}, fmt.Errorf("usage: %w", err)
	}
	if r.state == runtime.Running {
		if u, known := usage(r.started.Pid); known {
			return u, nil
		}
		if _, r, err = e.find(ctx, id); err != nil { // it may have ended meanwhile
			return runtime.Usage{}, fmt.Errorf("usage: %w", err)
		}
	}
	switch {
	case r.state == runtime.Created, r.ended != nil && r.started == nil:
		return runtime.Usage{}, nil
	case r.ended == nil || r.ended.Lost:
		return runtime.Usage{}, fmt.Errorf("usage of job %s: %w", id, runtime.ErrNotFound)
	}
	return runtime.Usage{CPUNanos: r.ended.CPUNanos}, nil
}
