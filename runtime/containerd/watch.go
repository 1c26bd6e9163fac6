//go:build linux

package containerd

import (
	"context"
	"fmt"
	"sync"

	"haggle/runtime"
)

// watchBuffer is how far a watcher may fall behind before it is cut off.
const watchBuffer = 256

// hub hands events to watchers. The zero value is ready.
type hub struct {
	mu       sync.Mutex
	watchers map[chan runtime.Event]struct{}
}

func (h *hub) watch(ctx context.Context) <-chan runtime.Event {
	w := make(chan runtime.Event, watchBuffer)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watchers == nil {
		h.watchers = map[chan runtime.Event]struct{}{}
	}
	h.watchers[w] = struct{}{}
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.close(w)
	})
	return w
}

// tell hands on what happened to the job of a container. Nobody is told of the engine's own.
func (e *Engine) tell(container string, ev runtime.Event) {
	ev.ID = e.names.job(container)
	if ev.ID != "" && !isCheck(ev.ID) {
		e.hub.tell(ev)
	}
}

func (h *hub) tell(e runtime.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers {
		select {
		case w <- e:
		default:
			h.close(w)
		}
	}
}

func (h *hub) close(w chan runtime.Event) {
	if _, open := h.watchers[w]; open {
		delete(h.watchers, w)
		close(w)
	}
}

func (h *hub) closeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers {
		h.close(w)
	}
}

// Watch implements runtime.Runtime.
func (e *Engine) Watch(ctx context.Context) (<-chan runtime.Event, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// The lock is held to the end: a watcher that came just after the engine was lost would never be closed.
	e.mu.Lock()
	defer e.mu.Unlock()
	if !isClosed(e.ready) {
		return nil, fmt.Errorf("watch jobs: %w", runtime.ErrUnavailable)
	}
	return e.hub.watch(ctx), nil
}

// jobLocks let one change of a job happen at a time. The zero value is ready.
type jobLocks struct {
	mu   sync.Mutex
	held map[string]*jobLock
}

type jobLock struct {
	token chan struct{}
	users int
}

// lock waits its turn for a job and returns the function that ends it.
func (l *jobLocks) lock(ctx context.Context, id string) (func(), error) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[string]*jobLock{}
	}
	j := l.held[id]
	if j == nil {
		j = &jobLock{token: make(chan struct{}, 1)}
		l.held[id] = j
	}
	j.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if j.users--; j.users == 0 {
			delete(l.held, id)
		}
	}
	select {
	case j.token <- struct{}{}:
		return func() { <-j.token; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
