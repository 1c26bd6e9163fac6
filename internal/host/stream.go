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
	if err := s.Send(ctx, d.hello(market.Lease{})); err != nil {
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
	return d.converse(ctx, s, l, &link{}, func(_ context.Context, k *link) {
		k.send(market.GrantMessage{Lease: l.record.Sealed})
		if l.state.Job != market.JobGranted {
			l.tell(k)
		}
	})
}

// serveKnown goes on with a lease after a break: status, then what the renter misses of the receipts and the payments.
func (d *Daemon) serveKnown(ctx context.Context, s Stream, theirs market.Hello) error {
	l := d.lease(theirs.Lease)
	if l == nil {
		return d.serveClosed(ctx, s, theirs)
	}
	state := l.snapshot()
	if err := mayTalk(state, s.Peer()); err != nil {
		return err
	}
	paid, err := d.resync(ctx, s, state, theirs)
	if err != nil {
		return clean(err)
	}
	if err := d.sayDisputes(ctx, s, state.ID); err != nil {
		return clean(err)
	}
	k := &link{deputy: s.Peer() != state.Terms.Renter, hello: theirs}
	return d.converse(ctx, s, l, k, func(ctx context.Context, k *link) {
		l.sayPayments(ctx, k, paid) // first: what was paid bounds what a receipt may say
		l.tell(k)
	})
}

// mayTalk reports whether a key may hold a conversation about a lease: its renter, and from the signature on its deputies.
func mayTalk(l market.Lease, peer market.Key) error {
	if l.Terms.Renter == peer || l.Job != market.JobGranted && l.Terms.SignsAsRenter(peer) {
		return nil
	}
	return market.NewError(market.CodeNotYours)
}

// resync says where a lease stands, and then what its peer may miss: the extensions and the payments, which bound what receipts may
// say, and the receipts. It returns the number of the newest payment that the peer has then.
func (d *Daemon) resync(ctx context.Context, s Stream, state market.Lease, theirs market.Hello) (uint32, error) {
	missing, err := d.missing(ctx, state, theirs)
	if err != nil {
		return 0, err
	}
	payments, err := d.payments(ctx, state, theirs.Paid)
	if err != nil {
		return 0, err
	}
	extensions, err := d.cfg.Store.Extensions(ctx, state.ID)
	if err != nil {
		return 0, err
	}
	if err := sendAll(ctx, s, d.hello(state), state.Status()); err != nil {
		return 0, err
	}
	for _, e := range extensions {
		if err := s.Send(ctx, market.ExtendMessage{Extension: e}); err != nil {
			return 0, err
		}
	}
	paid := theirs.Paid
	for _, p := range payments {
		if err := s.Send(ctx, market.PaymentMessage{Payment: p.Sealed}); err != nil {
			return 0, err
		}
		paid = p.Seq
	}
	for _, r := range missing {
		if err := s.Send(ctx, market.ReceiptMessage{Receipt: r.Sealed}); err != nil {
			return 0, err
		}
	}
	return paid, nil
}

// converse joins a stream to a lease until either is done. greet runs on the lease's goroutine, with the stream joined.
func (d *Daemon) converse(ctx context.Context, s Stream, l *lease, k *link, greet func(context.Context, *link)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	k.out, k.end = make(chan market.Message, linkBacklog), cancel
	if err := l.call(func(ctx context.Context) error { return l.attach(ctx, k, greet) }); err != nil {
		cancel(err)
		return clean(err)
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		cancel(k.write(ctx, s, l))
	}()
	cancel(d.read(ctx, s, l, k))
	<-written
	_ = l.call(func(ctx context.Context) error { return l.detach(ctx, k) }) // a lease that is gone needs no farewell
	return clean(context.Cause(ctx))                                        // the first of the two to end says why
}

// read hands a renter's messages to the lease.
func (d *Daemon) read(ctx context.Context, s Stream, l *lease, k *link) error {
	for limit := newLimiter(); ; {
		m, err := s.Receive(ctx)
		if err != nil {
			return err
		}
		if !limit.Allow() {
			return market.NewError(market.CodeTooMany)
		}
		known, err := d.word(l, k, m)
		if !known {
			err = d.order(ctx, s, l, k, m)
		}
		if err != nil {
			return err
		}
	}
}

// word takes what the renter and its deputies may say alike, and reports whether it is that.
func (d *Daemon) word(l *lease, k *link, m market.Message) (bool, error) {
	switch m := m.(type) {
	case market.ReceiptMessage:
		return true, d.countersigned(l, k, m.Receipt)
	case market.RejectMessage:
		return true, d.rejected(l, m.Reject)
	case market.PaidMessage:
		return true, l.call(func(ctx context.Context) error { return l.toldPaid(ctx, k, m) })
	case market.AskMessage:
		return true, d.wished(l, m)
	case market.PaymentMessage:
		return true, d.reminded(l, m.Payment)
	case market.OutcomeMessage:
		return true, d.approved(l, m.Outcome)
	case market.DisputeMessage:
		err := heard(d.disputed(l, m.Dispute))
		if err == nil {
			k.send(m) // it has come
		}
		return true, err
	}
	return false, nil
}

// order takes what only the renter itself may say.
func (d *Daemon) order(ctx context.Context, s Stream, l *lease, k *link, m market.Message) error {
	if k.deputy {
		return market.NewError(market.CodeNotYours)
	}
	switch m := m.(type) {
	case market.AcceptMessage:
		return d.accept(l, k, m)
	case market.StopMessage:
		stop := market.Stop{Reason: market.ReasonRenter, Kill: m.Kill, Keep: m.Keep}
		err := l.call(func(ctx context.Context) error { return l.stop(ctx, stop) })
		if m.Keep {
			return orDecline(ctx, s, market.OrderKeep, err)
		}
		return err
	case market.BeginMessage:
		err := l.call(func(ctx context.Context) error { return l.step(ctx, market.Begin{}, l.save) })
		return orDecline(ctx, s, market.OrderBegin, err)
	case market.ResumeMessage:
		return orDecline(ctx, s, market.OrderResume, d.resume(ctx, l))
	case market.ExtendMessage:
		return d.answerExtension(ctx, s, l, m.Extension)
	}
	return market.Unexpected(m)
}

// hello is the rig's first message.
func (d *Daemon) hello(l market.Lease) market.Hello {
	return market.Hello{
		Instance: d.instance, WallMs: d.cfg.Clock().Wall, Lease: l.ID, Seq: l.Head.Seq, Hash: l.Head.Hash, Paid: l.PaidSeq,
		Speaks: []string{
			"offer/1", "bid/1", "lease/1", "receipt/1", "reject/1", "outcome/1", "payment/1", "notice/1", "guarantee/1", "dispute/1",
		},
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

// clean returns nil for every way in which a conversation ends without a fault.
func clean(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, errClosed) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
