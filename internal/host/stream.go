package host

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"golang.org/x/time/rate"

	"haggle/market"
)

// Stream carries messages to and from one renter. Send may be called concurrently, Receive by one at a time. Receive
// returns a *market.Error where the peer refused and io.EOF where it closed. Both end with their context. Whoever opened
// the stream closes it, and tells the peer the error that a Serve method returns.
type Stream interface {
	Peer() market.Key
	Send(ctx context.Context, m market.Message) error
	Receive(ctx context.Context) (market.Message, error)
	// Raw turns the stream into bytes, once both sides have agreed on it; nothing is sent or received from then on.
	Raw() Conn
}

// Conn is a stream of bytes both ways. CloseWrite tells the other side that nothing more comes; Close ends both ways.
type Conn = interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// Bounds of a stream.
const (
	firstMessages = 10 * time.Second // for what must follow the Hello
	messageRate   = 50               // a second
	messageBurst  = 100
	linkBacklog   = 128 // messages that wait for a slow reader
)

// errClosed ends a conversation without telling the peer why.
var errClosed = errors.New("conversation is over")

// ServeLease talks with a renter about one lease until the renter goes or the lease is closed: about a new one where the
// Hello names none. A lease has one conversation at a time; a new one ends the old. The error is the market's, or nil
// after a clean end.
func (d *Daemon) ServeLease(ctx context.Context, s Stream) error {
	if err := d.await(ctx); err != nil {
		return err
	}
	m, err := s.Receive(ctx)
	if err != nil {
		return clean(err)
	}
	hello, ok := m.(market.Hello)
	if !ok {
		return market.Unexpected(m)
	}
	d.checkClock(s.Peer(), hello.WallMs)
	if hello.Lease.IsZero() {
		return d.serveBid(ctx, s)
	}
	return d.serveKnown(ctx, s, hello)
}

// serveBid takes a bid and goes on with the lease that it gets.
func (d *Daemon) serveBid(ctx context.Context, s Stream) error {
	if err := s.Send(ctx, d.hello(market.LeaseID{}, market.Head{})); err != nil {
		return clean(err)
	}
	m, err := receiveSoon(ctx, s)
	if err != nil {
		return clean(err)
	}
	bid, ok := m.(market.BidMessage)
	if !ok {
		return market.Unexpected(m)
	}
	l, err := d.grant(ctx, s.Peer(), bid)
	if err != nil {
		return err
	}
	return d.converse(ctx, s, l, func(k *link) {
		k.send(market.GrantMessage{Lease: l.record.Sealed})
		if l.state.Job != market.JobGranted {
			l.tell(k)
		}
	})
}

// serveKnown goes on with a lease after a break: status, then what the renter misses of the receipts.
func (d *Daemon) serveKnown(ctx context.Context, s Stream, theirs market.Hello) error {
	l := d.lease(theirs.Lease)
	if l == nil {
		return d.serveClosed(ctx, s, theirs)
	}
	state := l.snapshot()
	if state.Terms.Renter != s.Peer() {
		return market.NewError(market.CodeNotYours)
	}
	missing, err := d.missing(ctx, state, theirs)
	if err != nil {
		return err
	}
	if err := sendAll(ctx, s, d.hello(state.ID, state.Head), state.Status()); err != nil {
		return clean(err)
	}
	if err := sendReceipts(ctx, s, missing); err != nil {
		return clean(err)
	}
	return d.converse(ctx, s, l, func(k *link) { l.tell(k) })
}

// serveClosed answers for a lease of which nothing is left to do: it repeats what was agreed.
func (d *Daemon) serveClosed(ctx context.Context, s Stream, theirs market.Hello) error {
	record, err := d.cfg.Store.Record(ctx, theirs.Lease)
	if err != nil {
		return err
	}
	state := record.Lease
	if state.Terms.Renter != s.Peer() {
		return market.NewError(market.CodeNotYours)
	}
	missing, err := d.missing(ctx, state, theirs)
	if err != nil {
		return err
	}
	if err := sendAll(ctx, s, d.hello(state.ID, state.Head), state.Status()); err != nil {
		return clean(err)
	}
	if err := sendReceipts(ctx, s, missing); err != nil {
		return clean(err)
	}
	if record.Outcome != nil {
		if err := s.Send(ctx, market.OutcomeMessage{Outcome: record.Outcome}); err != nil {
			return clean(err)
		}
	}
	for limit := newLimiter(); ; {
		m, err := s.Receive(ctx)
		if err != nil {
			return clean(err)
		}
		r, ok := m.(market.ReceiptMessage)
		switch {
		case !limit.Allow():
			return market.NewError(market.CodeTooMany)
		case !ok:
			return market.NewError(market.CodeLeaseEnded, "reason", string(state.Reason))
		}
		seq, err := d.echoed(ctx, state, r.Receipt)
		if err != nil {
			return err
		}
		if err := s.Send(ctx, market.AckMessage{Seq: seq}); err != nil {
			return clean(err)
		}
	}
}

// converse joins a stream to a lease until either is done. greet runs on the lease's goroutine, with the stream joined.
func (d *Daemon) converse(ctx context.Context, s Stream, l *lease, greet func(*link)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	k := &link{out: make(chan market.Message, linkBacklog), end: cancel}
	if err := l.call(func(ctx context.Context) error { return l.attach(ctx, k, greet) }); err != nil {
		cancel(err)
		return clean(err)
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		cancel(k.write(ctx, s, l))
	}()
	cancel(d.read(ctx, s, l))
	<-written
	_ = l.call(func(ctx context.Context) error { return l.detach(ctx, k) }) // a lease that is gone needs no farewell
	return clean(context.Cause(ctx))                                        // the first of the two to end says why
}

// read hands a renter's messages to the lease.
func (d *Daemon) read(ctx context.Context, s Stream, l *lease) error {
	for limit := newLimiter(); ; {
		m, err := s.Receive(ctx)
		if err != nil {
			return err
		}
		if !limit.Allow() {
			return market.NewError(market.CodeTooMany)
		}
		switch m := m.(type) {
		case market.AcceptMessage:
			err = d.accept(l, m)
		case market.ReceiptMessage:
			err = d.countersigned(l, m.Receipt)
		case market.RejectMessage:
			err = d.rejected(l, m.Reject)
		case market.StopMessage:
			stop := market.Stop{Reason: market.ReasonRenter, Kill: m.Kill, Keep: m.Keep}
			err = l.call(func(ctx context.Context) error { return l.stop(ctx, stop) })
			if m.Keep {
				err = orDecline(ctx, s, market.OrderKeep, err)
			}
		case market.BeginMessage:
			err = l.call(func(ctx context.Context) error { return l.step(ctx, market.Begin{}, l.save) })
			err = orDecline(ctx, s, market.OrderBegin, err)
		case market.ResumeMessage:
			err = orDecline(ctx, s, market.OrderResume, d.resume(ctx, l))
		case market.ExtendMessage:
			err = d.answerExtension(ctx, s, l, m.Extension)
		default:
			err = market.Unexpected(m)
		}
		if err != nil {
			return err
		}
	}
}

// hello is the rig's first message.
func (d *Daemon) hello(id market.LeaseID, head market.Head) market.Hello {
	return market.Hello{
		Instance: d.instance, WallMs: d.cfg.Clock().Wall, Lease: id, Seq: head.Seq, Hash: head.Hash,
		Speaks: []string{"offer/1", "bid/1", "lease/1", "receipt/1", "reject/1", "outcome/1"},
	}
}

// checkClock tells the owner, once for each peer, of clocks that differ too much.
func (d *Daemon) checkClock(peer market.Key, theirs int64) {
	skew := time.Duration(theirs-d.cfg.Clock().Wall) * time.Millisecond
	d.mu.Lock()
	defer d.mu.Unlock()
	if skew.Abs() <= market.MaxClockSkew {
		delete(d.skewed, peer)
		return
	}
	if _, known := d.skewed[peer]; known || len(d.skewed) >= maxSkewed {
		return
	}
	d.skewed[peer] = skew
	d.log.Warn("clocks differ", slog.String("peer", peer.String()), slog.Duration("skew", skew.Round(time.Second)))
}

func newLimiter() *rate.Limiter { return rate.NewLimiter(messageRate, messageBurst) }

func receiveSoon(ctx context.Context, s Stream) (market.Message, error) {
	soon, cancel := context.WithTimeout(ctx, firstMessages)
	defer cancel()
	m, err := s.Receive(soon)
	if err != nil && ctx.Err() == nil && soon.Err() != nil {
		return nil, market.NewError(market.CodeTooSlow, "limit", firstMessages.String())
	}
	return m, err
}

func sendAll(ctx context.Context, s Stream, messages ...market.Message) error {
	for _, m := range messages {
		if err := s.Send(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

func sendReceipts(ctx context.Context, s Stream, receipts []Receipt) error {
	for _, r := range receipts {
		if err := s.Send(ctx, market.ReceiptMessage{Receipt: r.Sealed}); err != nil {
			return err
		}
	}
	return nil
}

// clean returns nil for every way in which a conversation ends without a fault.
func clean(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, errClosed) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
