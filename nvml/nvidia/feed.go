package nvidia

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"haggle/nvml"
)

const (
	eventBacklog = 256 // events that a reader may fall behind before its channel is closed
	maxReaders   = 64  // channels of events that are open at a time
)

// feed hands events to their readers.
type feed struct {
	mu      sync.Mutex
	readers []*reader
	closed  bool
}

type reader struct {
	events chan nvml.HealthEvent
	stop   func() bool // forgets the context
}

// end closes the channel. The feed's lock must be held, and the reader must leave the list with it.
func (r *reader) end() {
	r.stop()
	close(r.events)
}

func (f *feed) open(ctx context.Context) (<-chan nvml.HealthEvent, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, nvml.ErrClosed
	}
	if len(f.readers) == maxReaders {
		return nil, fmt.Errorf("%d readers are watching already", maxReaders)
	}
	r := &reader{events: make(chan nvml.HealthEvent, eventBacklog)}
	r.stop = context.AfterFunc(ctx, func() { f.forget(r) })
	f.readers = append(f.readers, r)
	return r.events, nil
}

// forget ends a reader whose context is over, unless something else ended it before.
func (f *feed) forget(r *reader) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := slices.Index(f.readers, r); i >= 0 {
		f.readers = slices.Delete(f.readers, i, i+1)
		r.end()
	}
}

// publish hands the event to every reader and drops those that are too far behind.
func (f *feed) publish(e nvml.HealthEvent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readers = slices.DeleteFunc(f.readers, func(r *reader) bool {
		select {
		case r.events <- e:
			return false
		default:
			r.end()
			return true
		}
	})
}

func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, r := range f.readers {
		r.end()
	}
	f.readers = nil
}
