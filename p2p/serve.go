package p2p

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"time"

	"haggle/market"
)

// refuseTimeout bounds the last word to a peer.
const refuseTimeout = time.Second

// server answers the streams of one protocol: it bounds their number and times, says how they ended, and logs what is news.
type server struct {
	protocol Protocol
	handle   Handler
	gate     *gate
	access   *access
	told     *complaints
	log      *slog.Logger
}

func newServer(p Protocol, h Handler, l Limit, a *access, told *complaints, log *slog.Logger) *server {
	return &server{protocol: p, handle: h, gate: newGate(l, a.known), access: a, told: told, log: log.With("protocol", string(p))}
}

// serve runs the handler on one stream and closes it. ctx ends when the node stops.
func (sv *server) serve(ctx context.Context, w wire, c caller, relayed bool) {
	limit := sv.gate.limit
	now := time.Now()
	s := newStream(w, c.peer, limit.Idle)
	s.firstBy = now.Add(firstFrameTimeout)
	if !sv.access.admits(c.peer, now) {
		_ = s.Reset() // it is about to be cut off
		return
	}
	if relayed && !limit.Relayed {
		sv.end(ctx, s, market.NewError(market.CodeUnsupported, "what", string(sv.protocol)+" over a relay", "instead", "choose an offer with direct reach"))
		return
	}
	life, evict := context.WithCancelCause(ctx)
	defer evict(nil)
	seat, no := sv.gate.enter(c, now, func() { evict(tooMany(fullAfter)) })
	if seat == nil {
		if no.own {
			sv.access.blame(c.peer, floods, now)
		}
		sv.end(ctx, s, tooMany(no.after))
		return
	}
	defer sv.gate.leave(seat)

	life, cancel := lifetime(life, limit.Lifetime)
	defer cancel()
	sv.end(ctx, s, sv.guarded(life, s))
}

// tooMany refuses a stream, and says when another may be let in.
func tooMany(after time.Duration) error {
	after = max(100*time.Millisecond, after.Round(100*time.Millisecond))
	return market.NewError(market.CodeTooMany, "after", after.String())
}

func lifetime(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d, market.NewError(market.CodeTooSlow, "limit", d.String()))
}

// guarded runs the handler; a panic costs one stream and not the program.
func (sv *server) guarded(ctx context.Context, s *Stream) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return sv.handle(ctx, s)
}

// end tells the peer how its stream ended, and the log if it is news.
func (sv *server) end(ctx context.Context, s *Stream, err error) {
	log := sv.log.With("peer", s.peer.String())
	switch {
	case err == nil:
		if err := s.Close(); err != nil {
			log.Debug("stream not closed cleanly", "err", err)
		}
		return
	case ctx.Err() != nil:
		_ = s.Reset() // the node stops; the peer sees that it is gone
		return
	case s.refused.Load(), errors.Is(err, io.EOF):
		log.Debug("peer ended the stream", "err", err)
	default:
		if sv.say(ctx, s, err) != nil {
			_ = s.Reset() // too slow or gone
		}
		sv.complain(log, s.peer, err)
		sv.access.blame(s.peer, demerits(market.CodeOf(err)), time.Now())
	}
	_ = s.Close() // nothing is left to tell
}

// complain logs how a stream ended: a fault of ours or of the peer's once, what belongs to the trade for those who debug.
func (sv *server) complain(log *slog.Logger, peer market.Key, err error) {
	code := market.CodeOf(err)
	switch news := sv.told.news; {
	case ours(code) && news(complaint{peer, sv.protocol, code}, time.Now()):
		log.Error("stream failed", "err", err)
	case hostile(code) && news(complaint{peer, sv.protocol, code}, time.Now()):
		log.Warn("peer is refused, which is not told again for an hour", "code", string(code), "err", err)
	default:
		log.Debug("stream refused", "code", string(code), "err", err)
	}
}

func (sv *server) say(ctx context.Context, s *Stream, err error) error {
	ctx, cancel := context.WithTimeout(ctx, refuseTimeout)
	defer cancel()
	return s.Send(ctx, market.Refuse{Err: *market.Public(err)})
}
