package host

import (
	"context"

	"haggle/market"
)

// link is a lease's way to its renter while a conversation lasts. The lease's goroutine sends and never waits; the
// conversation's goroutine writes.
type link struct {
	out    chan market.Message
	end    context.CancelCauseFunc
	said   int64        // monotonic ms at which the last status was sent
	deputy bool         // the peer is a deputy of the renter
	hello  market.Hello // how the peer began
}

// links returns the lease's conversations: with its renter, and with a deputy.
func (l *lease) links() []*link {
	var list []*link
	for _, k := range []*link{l.renter, l.deputy} {
		if k != nil {
			list = append(list, k)
		}
	}
	return list
}

// payer is the conversation in which the lease asks for money: the renter's where there is one.
func (l *lease) payer() *link {
	if l.renter != nil {
		return l.renter
	}
	return l.deputy
}

// say sends a message to everybody but one.
func (l *lease) say(m market.Message, but *link) {
	for _, k := range l.links() {
		if k != but {
			k.send(m)
		}
	}
}

// send queues a message. A renter that does not read loses its connection, not the rig its time.
func (k *link) send(m market.Message) {
	if k == nil {
		return
	}
	select {
	case k.out <- m:
	default:
		k.end(market.NewError(market.CodeTooSlow, "limit", "the rig's backlog"))
	}
}

// write sends what is queued until the conversation or the lease is over.
func (k *link) write(ctx context.Context, s Stream, l *lease) error {
	for {
		select {
		case m := <-k.out:
			if err := s.Send(ctx, m); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.done:
			return k.last(ctx, s, l)
		}
	}
}

// last sends what a lease left behind when it went.
func (k *link) last(ctx context.Context, s Stream, l *lease) error {
	for {
		select {
		case m := <-k.out:
			if err := s.Send(ctx, m); err != nil {
				return err
			}
		default:
			return l.farewell()
		}
	}
}
