package runtimetest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"haggle/runtime"
)

// fakeJob is one job; the Fake's lock guards everything that changes.
type fakeJob struct {
	spec      runtime.Spec
	image     fakeImage
	args, env []string
	ctx       context.Context // ends with SIGKILL
	cancel    context.CancelFunc
	ended     chan struct{} // closed with the state Stopped
	terminate chan os.Signal
	log       *memoryLog
	disk      *Disk                 // nil once another job has it
	paths     map[*pathEnd]struct{} // far ends that are open
	entered   int

	state           runtime.State
	started, exited time.Time
	exit            *runtime.Exit
	killed, lost    bool
	oomKills        uint64
	memory          int64
}

// run is the goroutine of a running job.
func (f *Fake) run(j *fakeJob) {
	f.mu.Lock()
	disk := j.disk
	f.mu.Unlock()
	code := f.programs[j.args[0]](j.ctx, &Process{
		Args: slices.Clone(j.args), Env: slices.Clone(j.env), Terminate: j.terminate,
		Stdout: j.log.writer.Stdout(), Stderr: j.log.writer.Stderr(),
		Alloc: func(n int64) { f.alloc(j, n) }, Disk: disk,
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	if j.killed {
		code = 137
	}
	f.end(j, code)
}

// alloc kills the job when it wants more than it may have.
func (f *Fake) alloc(j *fakeJob, n int64) {
	f.mu.Lock()
	j.memory += n
	over := j.memory > j.spec.MemoryBytes
	if over {
		f.tell(runtime.Event{ID: j.spec.ID, Kind: runtime.EventOOM, At: time.Now()})
		f.kill(j, 1)
	}
	f.mu.Unlock()
	if over {
		<-j.ctx.Done()
	}
}

// kill ends a job: at once when it does not run, else as soon as its program returns. The lock is held.
func (f *Fake) kill(j *fakeJob, oomKills uint64) {
	j.oomKills += oomKills
	switch j.state {
	case runtime.Created:
		f.end(j, 137)
	case runtime.Running:
		j.killed = true
	}
	j.cancel()
}

// end makes the job stopped. The lock is held.
func (f *Fake) end(j *fakeJob, code int) {
	j.state, j.exited = runtime.Stopped, time.Now()
	if !j.lost {
		exit := runtime.NewExit(code, j.oomKills)
		j.exit = &exit
	}
	j.log.end()
	j.closePaths()
	j.cancel()
	close(j.ended)
	f.tell(runtime.Event{ID: j.spec.ID, Kind: runtime.EventExited, Exit: j.status().Exit, At: j.exited})
}

func (j *fakeJob) wait(ctx context.Context) error {
	select {
	case <-j.ended:
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

// status copies, so that nobody outside shares memory with the job.
func (j *fakeJob) status() runtime.Status {
	s := runtime.Status{ID: j.spec.ID, Labels: maps.Clone(j.spec.Labels), State: j.state, StartedAt: j.started, ExitedAt: j.exited}
	if j.exit != nil {
		exit := *j.exit
		s.Exit = &exit
	}
	if j.lost {
		s.ExitedAt = time.Time{}
	}
	return s
}

// Status implements runtime.Runtime.
func (f *Fake) Status(ctx context.Context, id string) (runtime.Status, error) {
	defer f.mu.Unlock()
	j, err := f.find(ctx, "Status", id)
	if err != nil {
		return runtime.Status{}, err
	}
	return j.status(), nil
}

// List implements runtime.Runtime.
func (f *Fake) List(ctx context.Context) ([]runtime.Status, error) {
	defer f.mu.Unlock()
	if err := f.enter(ctx, "List"); err != nil {
		return nil, err
	}
	var all []runtime.Status
	for _, j := range f.jobs {
		all = append(all, j.status())
	}
	slices.SortFunc(all, func(a, b runtime.Status) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

// Usage implements runtime.Runtime. A running job uses all the processor time it may have.
func (f *Fake) Usage(ctx context.Context, id string) (runtime.Usage, error) {
	defer f.mu.Unlock()
	j, err := f.find(ctx, "Usage", id)
	if err != nil {
		return runtime.Usage{}, err
	}
	if j.state == runtime.Created {
		return runtime.Usage{}, nil
	}
	if j.state == runtime.Running {
		busy := time.Since(j.started).Nanoseconds() / 1000 * j.spec.CPUMillis
		return runtime.Usage{CPUNanos: uint64(busy), MemoryBytes: uint64(j.memory) + 1<<20, Pids: 1}, nil
	}
	if j.lost {
		return runtime.Usage{}, fmt.Errorf("usage of job %s: %w", id, runtime.ErrNotFound)
	}
	if j.started.IsZero() {
		return runtime.Usage{}, nil
	}
	return runtime.Usage{CPUNanos: uint64(j.exited.Sub(j.started).Nanoseconds() / 1000 * j.spec.CPUMillis)}, nil
}

// Log implements runtime.Runtime.
func (f *Fake) Log(ctx context.Context, id string, offset int64, follow bool) (io.ReadCloser, error) {
	defer f.mu.Unlock()
	j, err := f.find(ctx, "Log", id)
	if err != nil {
		return nil, err
	}
	if offset < 0 {
		return nil, fmt.Errorf("log of job %s: negative offset %d: %w", id, offset, os.ErrInvalid)
	}
	ctx, cancel := context.WithCancel(ctx)
	return &memoryReader{ctx: ctx, cancel: cancel, log: j.log, offset: offset, follow: follow}, nil
}

// Watch implements runtime.Runtime.
func (f *Fake) Watch(ctx context.Context) (<-chan runtime.Event, error) {
	defer f.mu.Unlock()
	if err := f.enter(ctx, "Watch"); err != nil {
		return nil, err
	}
	w := make(chan runtime.Event, watchBuffer)
	f.watchers[w] = struct{}{}
	context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.closeWatcher(w)
	})
	return w, nil
}

func (f *Fake) tell(e runtime.Event) {
	for w := range f.watchers {
		select {
		case w <- e:
		default:
			f.closeWatcher(w)
		}
	}
}

func (f *Fake) closeWatcher(w chan runtime.Event) {
	if _, open := f.watchers[w]; open {
		delete(f.watchers, w)
		close(w)
	}
}

func (f *Fake) closeWatchers() {
	for w := range f.watchers {
		f.closeWatcher(w)
	}
}

// Sweep implements runtime.Runtime.
func (f *Fake) Sweep(ctx context.Context, keep func(id string) bool) (runtime.SweepReport, error) {
	err := f.enter(ctx, "Sweep")
	ids := slices.Sorted(maps.Keys(f.jobs))
	f.mu.Unlock()
	var report runtime.SweepReport
	if err != nil {
		return report, err
	}
	for _, id := range ids {
		if keep(id) {
			continue
		}
		if err := f.Remove(ctx, id); err != nil {
			return report, err
		}
		report.Jobs = append(report.Jobs, id)
	}
	return report, nil
}

// Probe implements runtime.Runtime.
func (f *Fake) Probe(ctx context.Context) (runtime.Capabilities, error) {
	defer f.mu.Unlock()
	if err := f.enter(ctx, "Probe"); err != nil {
		return runtime.Capabilities{}, err
	}
	return runtime.Capabilities{Engine: "fake 1", Isolation: runtime.IsolationNone}, nil
}

func digestOf(s string) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(s)))
	return "sha256:" + hex.EncodeToString(sum[:])
}
