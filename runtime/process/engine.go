package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"time"

	"haggle/runtime"
)

// Config says where an engine keeps its files and what its supervisors are.
type Config struct {
	// Root is the engine's own folder; it is made. One engine at a time may use it.
	Root string
	// Command is the program and its first arguments that run Supervise with the folder that comes as the last argument.
	Command []string
	// DoorProgram is the program and its first arguments that a job is entered through: "haggle inside door". It listens on the
	// unix socket that comes as its last argument, prints "ready" in a line, and ends at SIGTERM. Before the socket come
	// --root with the folder that is the job's /work and, for a job that has stopped, --idle with how long it stays without
	// a path. nil: no job can be entered.
	DoorProgram []string
	Log         *slog.Logger // nil discards
}

// Engine runs jobs as plain processes, see the package's documentation. Make one with New; Close it in the end.
type Engine struct {
	cfg    Config
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	bg     sync.WaitGroup

	importing sync.Mutex // one import at a time
	changing  sync.Mutex // one change of jobs' files at a time

	mu       sync.Mutex
	jobs     map[string]*entry
	watchers map[chan runtime.Event]struct{}
}

var _ runtime.Runtime = (*Engine)(nil)

// entry is what this engine keeps in memory of a job; the rest is in the job's folder.
type entry struct {
	folder  folder
	ended   chan struct{} // closed when the job has stopped or is gone
	watched bool          // a goroutine looks after it until then
}

// watchBuffer is how far a watcher may fall behind before it is cut off.
const watchBuffer = 256

// New opens an engine and adopts the jobs of its folder: those that run go on.
func New(cfg Config) (*Engine, error) {
	if cfg.Root == "" || len(cfg.Command) == 0 {
		return nil, errors.New("process engine needs a folder and a supervisor")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	// Jobs and supervisors start elsewhere.
	root, err := filepath.Abs(cfg.Root)
	if err != nil {
		return nil, fmt.Errorf("process engine: %w", err)
	}
	cfg.Root = root
	e := &Engine{cfg: cfg, jobs: map[string]*entry{}, watchers: map[chan runtime.Event]struct{}{}}
	e.ctx, e.cancel = context.WithCancel(context.Background()) //nolint:forbidigo // kills that Stop owes outlive every caller; Close ends it
	if err := e.adopt(); err != nil {
		return nil, errors.Join(fmt.Errorf("process engine: %w", err), e.Close())
	}
	return e, nil
}

func (e *Engine) adopt() error {
	for _, dir := range []string{e.jobDir(""), e.imageDir("")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := e.sweepImports(); err != nil {
		return err
	}
	dirs, err := os.ReadDir(e.jobDir(""))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		id := dir.Name()
		if runtime.ValidateID(id) != nil {
			continue // half made or half removed: Sweep's
		}
		j := &entry{folder: folder(e.jobDir(id)), ended: make(chan struct{})}
		r, err := j.folder.read()
		if err != nil {
			return err
		}
		if err := e.takeOver(id, r.job); err != nil {
			return err
		}
		e.jobs[id] = j
		switch r.state {
		case runtime.Running:
			e.watch(id, j, nil)
		case runtime.Stopped:
			close(j.ended)
		}
	}
	return e.collect()
}

func (e *Engine) jobDir(id string) string { return filepath.Join(e.cfg.Root, "jobs", id) }

// find returns a job and how it is.
func (e *Engine) find(ctx context.Context, id string) (*entry, record, error) {
	if err := ctx.Err(); err != nil {
		return nil, record{}, err
	}
	e.mu.Lock()
	j := e.jobs[id]
	e.mu.Unlock()
	if j == nil {
		return nil, record{}, fmt.Errorf("job %.80q: %w", id, runtime.ErrNotFound)
	}
	r, err := j.folder.read()
	if errors.Is(err, os.ErrNotExist) {
		return nil, r, fmt.Errorf("job %s: %w", id, runtime.ErrNotFound) // removed just now
	}
	if err != nil {
		return nil, r, fmt.Errorf("job %s: %w", id, err)
	}
	if r.state == runtime.Running {
		e.watch(id, j, nil) // a supervisor whose engine died before it heard from it
	}
	return j, r, nil
}

// watch looks after a running job until it has ended, once. The channel, where there is one, tells that its supervisor has
// gone, a little sooner than looking does.
func (e *Engine) watch(id string, j *entry, gone <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if j.watched || e.ctx.Err() != nil {
		return
	}
	j.watched = true
	e.bg.Go(func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			r, err := j.folder.read()
			if errors.Is(err, os.ErrNotExist) {
				e.gone(j)
				return
			}
			if err == nil && r.state == runtime.Stopped {
				e.gone(j)
				e.tell(runtime.Event{ID: id, Kind: runtime.EventExited, Exit: r.exit(), At: r.ended.At})
				return
			}
			select {
			case <-tick.C:
			case <-gone:
				gone = nil
			case <-e.ctx.Done():
				return
			}
		}
	})
}

// gone says that a job has stopped, once.
func (e *Engine) gone(j *entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !isClosed(j.ended) {
		close(j.ended)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Watch implements runtime.Runtime.
func (e *Engine) Watch(ctx context.Context) (<-chan runtime.Event, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := make(chan runtime.Event, watchBuffer)
	e.mu.Lock()
	e.watchers[w] = struct{}{}
	e.mu.Unlock()
	context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.drop(w)
	})
	return w, nil
}

func (e *Engine) tell(event runtime.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for w := range e.watchers {
		select {
		case w <- event:
		default:
			e.drop(w)
		}
	}
}

// drop closes a watcher. The lock is held.
func (e *Engine) drop(w chan runtime.Event) {
	if _, open := e.watchers[w]; open {
		delete(e.watchers, w)
		close(w)
	}
}

// Probe implements runtime.Runtime.
func (e *Engine) Probe(ctx context.Context) (runtime.Capabilities, error) {
	return runtime.Capabilities{Engine: "processes on " + goruntime.GOOS, Isolation: runtime.IsolationNone}, ctx.Err()
}

// Close implements runtime.Runtime.
func (e *Engine) Close() error {
	e.cancel()
	e.bg.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	for w := range e.watchers {
		e.drop(w)
	}
	return nil
}

// Sweep implements runtime.Runtime. Jobs that are half made or half removed count as file systems.
func (e *Engine) Sweep(ctx context.Context, keep func(id string) bool) (runtime.SweepReport, error) {
	var report runtime.SweepReport
	var errs []error
	for _, id := range e.ids() {
		if keep(id) {
			continue
		}
		if err := e.Remove(ctx, id); err != nil {
			errs = append(errs, err)
			continue
		}
		report.Jobs = append(report.Jobs, id)
	}
	e.changing.Lock()
	defer e.changing.Unlock()
	dirs, err := os.ReadDir(e.jobDir(""))
	errs = append(errs, err)
	for _, dir := range dirs {
		if !strings.HasPrefix(dir.Name(), ".") {
			continue
		}
		if err := folder(e.jobDir(dir.Name())).destroy(); err != nil {
			errs = append(errs, err)
			continue
		}
		report.Snapshots = append(report.Snapshots, dir.Name())
	}
	return report, errors.Join(errs...)
}

// Purge ends every job and removes all that the engine ever made. Afterwards it can only be closed.
func (e *Engine) Purge(ctx context.Context) error {
	if _, err := e.Sweep(ctx, func(string) bool { return false }); err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	if err := removeAll(e.cfg.Root); err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	return nil
}
