package renter

import (
	"context"
	"sync"

	"haggle/internal/view"
	"haggle/market"
)

// Watch returns a channel of leases that changed, each as it is after its change. A slow reader misses steps in between,
// never the last state of a lease. The channel is closed when ctx ends or Run returns.
func (a *Agent) Watch(ctx context.Context) <-chan view.Lease {
	out := make(chan view.Lease)
	w := a.hub.join()
	go func() {
		defer close(out)
		defer a.hub.quit(w)
		for {
			next, ok := w.next()
			if !ok {
				select {
				case <-w.more:
					continue
				case <-ctx.Done():
					return
				case <-a.stopped:
					return
				}
			}
			select {
			case out <- next:
			case <-ctx.Done():
				return
			case <-a.stopped:
				return
			}
		}
	}()
	return out
}

// hub passes changes to everyone who watches.
type hub struct {
	mu       sync.Mutex
	watchers map[*queue]struct{}
}

func newHub() *hub { return &hub{watchers: map[*queue]struct{}{}} }

func (h *hub) join() *queue {
	w := &queue{more: make(chan struct{}, 1), latest: map[market.Hash]view.Lease{}}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watchers[w] = struct{}{}
	return w
}

func (h *hub) quit(w *queue) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.watchers, w)
}

func (h *hub) publish(bid market.Hash, v view.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers {
		w.put(bid, v)
	}
}

// queue holds the latest state of each lease that its watcher has not seen: it is no longer than the number of leases.
type queue struct {
	more chan struct{}

	mu     sync.Mutex
	order  []market.Hash
	latest map[market.Hash]view.Lease
}

func (q *queue) put(bid market.Hash, v view.Lease) {
	q.mu.Lock()
	if _, waits := q.latest[bid]; !waits {
		q.order = append(q.order, bid)
	}
	q.latest[bid] = v
	q.mu.Unlock()
	select {
	case q.more <- struct{}{}:
	default:
	}
}

func (q *queue) next() (view.Lease, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.order) == 0 {
		return view.Lease{}, false
	}
	bid := q.order[0]
	q.order = q.order[1:]
	v := q.latest[bid]
	delete(q.latest, bid)
	return v, true
}
