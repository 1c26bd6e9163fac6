package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"haggle/runtime"
)

// Fake is an engine in memory whose jobs are functions. It keeps the rules that Conformance checks, uses no files
// and only the clock of package time, so that it works under testing/synctest. The zero value lacks programs;
// use NewFake.
//
// Close only closes the watchers: as an engine outlives its client, a Fake serves the next one. Shutdown ends it.
type Fake struct {
	// Door is the door of every job: it gets the far end of each path, which is closed when it returns; it must return soon
	// after the path has ended. nil echoes, and answers what the command "door" of Probe answers. Set it before the first call of Enter.
	Door func(id string, c runtime.Conn)

	mu       sync.Mutex
	programs map[string]Program
	images   map[string]fakeImage // by name
	jobs     map[string]*fakeJob
	watchers map[chan runtime.Event]struct{}
	down     bool
	failures map[string]error
	running  sync.WaitGroup
}

var _ runtime.Runtime = (*Fake)(nil)

// watchBuffer is how far a watcher of a Fake may fall behind.
const watchBuffer = 1024

// NewFake makes an engine that knows programs by the first word of the command line of a job: entrypoint of the
// image, then arguments.
func NewFake(programs map[string]Program) *Fake {
	return &Fake{
		programs: maps.Clone(programs),
		images:   map[string]fakeImage{},
		jobs:     map[string]*fakeJob{},
		watchers: map[chan runtime.Event]struct{}{},
		failures: map[string]error{},
	}
}

// Shutdown kills all jobs, closes all watchers and returns when no goroutine of the Fake is left.
func (f *Fake) Shutdown() {
	f.mu.Lock()
	for _, j := range f.jobs {
		f.kill(j, 0)
		j.closePaths()
	}
	f.closeWatchers()
	f.mu.Unlock()
	f.running.Wait()
}

// SetDown makes every call fail with ErrUnavailable and closes all watchers, while jobs go on; or ends that.
func (f *Fake) SetDown(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down = down; down {
		f.closeWatchers()
	}
}

// Fail makes the next call of the named method ("Create") return err.
func (f *Fake) Fail(method string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures[method] = err
}

// Lose ends a job so that nobody knows how: its Exit stays nil, as after a crash of the machine.
func (f *Fake) Lose(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if j := f.jobs[id]; j != nil {
		j.lost = true
		f.kill(j, 0)
	}
}

// enter is the start of every method; it locks, also when it fails.
func (f *Fake) enter(ctx context.Context, method string) error {
	f.mu.Lock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if f.down {
		return fmt.Errorf("%s: %w", strings.ToLower(method), runtime.ErrUnavailable)
	}
	err := f.failures[method]
	delete(f.failures, method)
	return err
}

// find enters and looks a job up.
func (f *Fake) find(ctx context.Context, method, id string) (*fakeJob, error) {
	if err := f.enter(ctx, method); err != nil {
		return nil, err
	}
	j := f.jobs[id]
	if j == nil {
		return nil, fmt.Errorf("job %.80s: %w", id, runtime.ErrNotFound)
	}
	return j, nil
}

// Create implements runtime.Runtime.
func (f *Fake) Create(ctx context.Context, spec runtime.Spec) error {
	defer f.mu.Unlock()
	if err := f.enter(ctx, "Create"); err != nil {
		return err
	}
	if err := spec.Validate(); err != nil {
		return err
	}
	for _, d := range spec.Devices {
		if d.Class != runtime.SimulatedGPU {
			return fmt.Errorf("device class %s: %w", d.Class, runtime.ErrUnsupported)
		}
	}
	if j := f.jobs[spec.ID]; j != nil {
		if j.spec.Hash() == spec.Hash() {
			return nil
		}
		return fmt.Errorf("create job %s: %w", spec.ID, runtime.ErrConflict)
	}
	if img, found := f.findImage(spec); found {
		return f.create(spec.WithDefaults(), img)
	}
	return fmt.Errorf("create job %s: image %s: %w", spec.ID, spec.Image, runtime.ErrImageNotFound)
}

func (f *Fake) create(spec runtime.Spec, img fakeImage) error {
	args := slices.Concat(img.config.Entrypoint, spec.Args)
	if len(spec.Args) == 0 {
		args = slices.Concat(img.config.Entrypoint, img.config.Cmd)
	}
	if len(args) == 0 || f.programs[args[0]] == nil {
		return fmt.Errorf("create job %s: %w: no program for %q", spec.ID, runtime.ErrInvalidSpec, args)
	}
	disk := &Disk{}
	if spec.From != "" {
		var err error
		if disk, err = f.takeDisk(spec); err != nil {
			return fmt.Errorf("create job %s: %w", spec.ID, err)
		}
	}
	ctx, kill := context.WithCancel(context.Background())
	f.jobs[spec.ID] = &fakeJob{
		spec: spec, image: img, args: args, env: runtime.JobEnv(spec, img.config.Env), state: runtime.Created,
		ctx: ctx, cancel: kill, ended: make(chan struct{}), terminate: make(chan os.Signal, 1), log: newMemoryLog(spec.LogLimitBytes),
		disk: disk, paths: map[*pathEnd]struct{}{},
	}
	return nil
}

// Start implements runtime.Runtime.
func (f *Fake) Start(ctx context.Context, id string) error {
	defer f.mu.Unlock()
	j, err := f.find(ctx, "Start", id)
	if err != nil {
		return err
	}
	switch j.state {
	case runtime.Running:
		return nil
	case runtime.Stopped:
		return fmt.Errorf("start job %s: it has ended: %w", id, runtime.ErrConflict)
	}
	j.state, j.started = runtime.Running, time.Now()
	f.tell(runtime.Event{ID: id, Kind: runtime.EventStarted, At: j.started})
	f.running.Go(func() { f.run(j) })
	return nil
}

// Stop implements runtime.Runtime.
func (f *Fake) Stop(ctx context.Context, id string, grace time.Duration) error {
	j, err := f.find(ctx, "Stop", id)
	if err == nil {
		f.stop(j, grace)
	}
	f.mu.Unlock()
	if err != nil {
		return err
	}
	return j.wait(ctx)
}

func (f *Fake) stop(j *fakeJob, grace time.Duration) {
	if j.state != runtime.Running {
		f.kill(j, 0)
		return
	}
	select {
	case j.terminate <- syscall.SIGTERM:
	default:
	}
	f.running.Go(func() {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-timer.C:
			f.mu.Lock()
			f.kill(j, 0)
			f.mu.Unlock()
		case <-j.ended:
		}
	})
}

// Kill implements runtime.Runtime.
func (f *Fake) Kill(ctx context.Context, id string) error {
	j, err := f.find(ctx, "Kill", id)
	if err == nil {
		f.kill(j, 0)
	}
	f.mu.Unlock()
	if err != nil {
		return err
	}
	return j.wait(ctx)
}

// Remove implements runtime.Runtime.
func (f *Fake) Remove(ctx context.Context, id string) error {
	j, err := f.find(ctx, "Remove", id)
	if err == nil {
		f.kill(j, 0)
	}
	f.mu.Unlock()
	if errors.Is(err, runtime.ErrNotFound) {
		return nil
	}
	if err == nil {
		err = j.wait(ctx)
	}
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	j.closePaths()
	delete(f.jobs, id)
	return nil
}

// Close implements runtime.Runtime. The Fake stays usable.
func (f *Fake) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closeWatchers()
	return nil
}
