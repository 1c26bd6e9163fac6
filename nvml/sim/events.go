package sim

import (
	"context"
	"fmt"
	"slices"

	"haggle/nvml"
)

// eventBacklog is how far the reader of events may fall behind before its channel is closed.
const eventBacklog = 256

// maxSubscriptions bounds how many channels of events are open at a time.
const maxSubscriptions = 64

// subscription is one reader of events.
type subscription struct {
	events chan nvml.HealthEvent
	stop   func() bool // forgets the context
}

// end closes the channel. The driver's lock must be held, and the subscription must leave the list with it.
func (s *subscription) end() {
	s.stop()
	close(s.events)
}

// Events implements nvml.Driver. At most 64 channels may be open at a time.
func (d *Driver) Events(ctx context.Context) (<-chan nvml.HealthEvent, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("watch cards: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("watch cards: %w", nvml.ErrClosed)
	}
	if len(d.subs) == maxSubscriptions {
		return nil, fmt.Errorf("watch cards: %d readers are watching already", maxSubscriptions)
	}
	s := &subscription{events: make(chan nvml.HealthEvent, eventBacklog)}
	s.stop = context.AfterFunc(ctx, func() { d.forget(s) })
	d.subs = append(d.subs, s)
	return s.events, nil
}

// forget ends a subscription whose context is over, unless something else ended it before.
func (d *Driver) forget(s *subscription) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.subs, s); i >= 0 {
		d.subs = slices.Delete(d.subs, i, i+1)
		s.end()
	}
}

// publish hands the event to every reader and drops those that are too far behind. The lock must be held.
func (d *Driver) publish(e nvml.HealthEvent) {
	d.subs = slices.DeleteFunc(d.subs, func(s *subscription) bool {
		select {
		case s.events <- e:
			return false
		default:
			s.end()
			return true
		}
	})
}
