//go:build linux

package containerd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	eventstypes "github.com/containerd/containerd/api/events"
	"github.com/containerd/containerd/v2/core/events"
	"github.com/containerd/typeurl/v2"

	"haggle/runtime"
)

// How the engine keeps in touch with containerd.
const (
	healthEvery   = 5 * time.Second
	healthTimeout = 3 * time.Second
	healthMisses  = 3 // then a containerd of our own is killed and started again
	firstBackoff  = 200 * time.Millisecond
	lastBackoff   = 10 * time.Second
	answerTimeout = 60 * time.Second
)

var errLost = errors.New("containerd is gone")

// Run looks after the engine until ctx ends: it starts or adopts containerd, starts it again when it dies, and
// records how jobs end. It leaves containerd and all jobs running. It returns nil after ctx ended or a Purge.
func (e *Engine) Run(ctx context.Context) error {
	e.mu.Lock()
	if e.running {
		e.mu.Unlock()
		return errors.New("containerd: the engine runs already")
	}
	done := make(chan struct{})
	e.running, e.runDone = true, done
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.running = false
		close(done)
	}()
	ctx, cancel := context.WithCancel(e.within(ctx))
	defer cancel()
	unpin := context.AfterFunc(e.ctx, cancel)
	defer unpin()

	var networks sync.WaitGroup
	defer networks.Wait()
	defer cancel()
	networks.Go(func() { e.runNetworks(ctx) })

	defer e.endSpares(ctx)
	known := map[string]*finalState{}
	wait := firstBackoff
	for ctx.Err() == nil && !isClosed(e.stop) {
		began := time.Now()
		err := e.session(ctx, known)
		if ctx.Err() != nil || isClosed(e.stop) {
			return nil
		}
		e.cfg.Log.Warn("containerd session ended", "err", err)
		if time.Since(began) > time.Minute {
			wait = firstBackoff
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		case <-e.stop:
		}
		wait = min(2*wait, lastBackoff)
	}
	return nil
}

// session lasts as long as one containerd does. known are ends that only shims told us.
func (e *Engine) session(ctx context.Context, known map[string]*finalState) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var died <-chan struct{} // never, of a containerd that somebody else looks after
	if e.daemon != nil {
		if _, runs := e.daemon.find(); !runs {
			e.askShims(ctx, known)
		}
		var err error
		if died, err = e.daemon.ensure(ctx); err != nil {
			return err
		}
	}
	if err := e.awaitAnswer(ctx, died); err != nil {
		return err
	}
	if err := e.prepareHost(ctx); err != nil {
		return err
	}
	// Subscribe before looking, so that no end of a job falls in between.
	envelopes, errs := e.client.EventService().Subscribe(ctx, `topic~="^/tasks/"`)
	missing, err := e.reapAll(ctx, true, nil, known)
	if err != nil {
		return err
	}
	var looking sync.WaitGroup
	defer looking.Wait()
	defer cancel()
	looking.Go(func() { e.lookAfter(ctx, missing, known) })
	e.setReady(true)
	e.beginCheck()
	defer e.setReady(false)
	health := time.NewTicker(healthEvery)
	defer health.Stop()
	misses := 0
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-e.stop:
			return nil
		case <-died:
			return errLost
		case err := <-errs:
			return errors.Join(errLost, err)
		case env := <-envelopes:
			if env != nil && env.Namespace == e.cfg.Namespace {
				e.handle(env)
			}
		case <-health.C:
			if misses++; e.answers(ctx) {
				misses = 0
			}
			if misses == healthMisses {
				return e.giveUp()
			}
		}
	}
}

// lookAfter does what is done beside a containerd that answers, until ctx ends.
func (e *Engine) lookAfter(ctx context.Context, missing map[string]bool, known map[string]*finalState) {
	var all sync.WaitGroup
	all.Go(func() { e.reconcile(ctx, missing, known) })
	all.Go(func() { e.watchDisks(ctx) })
	all.Go(func() { e.keepSpares(ctx) })
	all.Wait()
}

// reconcile finds the ends of jobs whose events were lost.
func (e *Engine) reconcile(ctx context.Context, missing map[string]bool, known map[string]*finalState) {
	for sleep(ctx, healthEvery) == nil {
		seen, err := e.reapAll(ctx, false, missing, known)
		if err == nil {
			missing = seen
		}
	}
}

// giveUp ends a containerd that does not answer any more. Jobs and their shims go on.
func (e *Engine) giveUp() error {
	if e.daemon != nil {
		e.daemon.kill()
	}
	return fmt.Errorf("%w: no answer for %s", errLost, healthMisses*healthEvery)
}

func (e *Engine) awaitAnswer(ctx context.Context, died <-chan struct{}) error {
	deadline := time.After(answerTimeout)
	for !e.answers(ctx) {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		case <-e.stop:
			return errLost
		case <-died:
			return fmt.Errorf("%w: it ended at its start%s", errLost, e.daemon.lastWords())
		case <-deadline:
			return e.giveUp()
		}
	}
	return nil
}

func (e *Engine) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	_, err := e.client.Version(ctx)
	return err == nil
}

func (e *Engine) isReady() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return isClosed(e.ready)
}

func (e *Engine) setReady(up bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if up {
		close(e.ready)
		return
	}
	e.ready = make(chan struct{})
	e.hub.closeAll()
}

// handle takes one event of containerd. The ends of jobs take their time and must not hold up the others.
func (e *Engine) handle(env *events.Envelope) {
	decoded, err := typeurl.UnmarshalAny(env.Event)
	if err != nil {
		e.cfg.Log.Warn("unreadable containerd event", "topic", env.Topic, "err", err)
		return
	}
	switch ev := decoded.(type) {
	case *eventstypes.TaskStart:
		if !isSpare(ev.ContainerID) { // a spare starts before its job does
			e.tell(ev.ContainerID, runtime.Event{Kind: runtime.EventStarted, At: env.Timestamp})
		}
	case *eventstypes.TaskOOM:
		e.tell(ev.ContainerID, runtime.Event{Kind: runtime.EventOOM, At: env.Timestamp})
	case *eventstypes.TaskExit:
		if ev.ID != ev.ContainerID { // a process that was added to the job
			return
		}
		if isVisit(ev.ContainerID) {
			e.bg.Go(func() { e.noteVisit(e.within(e.ctx), ev.ContainerID) })
			return
		}
		last := &finalState{Code: int(ev.ExitStatus), At: ev.ExitedAt.AsTime()}
		e.bg.Go(func() {
			if err := e.reap(e.within(e.ctx), ev.ContainerID, last); err != nil && e.ctx.Err() == nil {
				e.cfg.Log.Warn("the end of a job is not recorded yet", "job", ev.ContainerID, "err", err)
			}
		})
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
