package renter

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"haggle/market"
)

// Times and bounds of a link.
const (
	greetTime   = 10 * time.Second // from the dial to the rig's Hello
	ackTime     = 5 * time.Second  // for the rig's word that it has the final receipt
	silenceTime = 45 * time.Second // without a word of a rig whose job runs: it speaks every 5 seconds
	quietTime   = 5 * time.Minute  // without a word otherwise; connecting again is cheap
	steadyTime  = 10 * time.Second // a connection that lasted so long was a good one
	perSecond   = 50               // messages of a rig that are read
	burst       = 200
	sendRate    = 25 // receipts sent again in a second: rigs read 50 messages, and refuse more than 100 at once
	sendBurst   = 50
	maxReason   = 64 // bytes of a reason that a rig gives
)

// link keeps one lease's connection to its rig. Its goroutine alone answers the rig.
type link struct {
	a      *Agent
	l      *lease
	rig    market.Key
	id     market.LeaseID
	turns  int                  // attempts that the rig has said began
	asks   int                  // slices that the rig has asked for
	later  *market.AskMessage   // the newest request for money that came while other money was on its way
	theirs uint32               // the newest receipt with both signatures that the rig said it has, on this connection
	heard  map[market.Hash]bool // complaints and decisions that the rig has sent on this connection
	nudge  nudge                // for when the rig falls silent
	settle time.Time            // when to stop waiting for the rig's word about the final receipt; zero while there is none
}

// keepFrom keeps a lease's connection until the lease is over or ctx ends. The stream, if there is one, is one on which
// this side's signature has just been sent.
func (a *Agent) keepFrom(ctx context.Context, l *lease, s Stream) {
	r, _ := l.get()
	if r.State.over() {
		return
	}
	k := &link{a: a, l: l, rig: r.Terms.Rig, id: r.Lease}
	var wait pause
	for ctx.Err() == nil {
		began := a.cfg.Clock()
		finished, err := k.once(ctx, s)
		s = nil
		switch {
		case ctx.Err() != nil:
			return
		case finished || k.refuted(ctx, err):
			return
		}
		a.cfg.Log.Debug("no connection to the rig", "lease", k.id.Short(), "peer", k.rig.String(), "err", err)
		if a.cfg.Clock().Sub(began) > steadyTime {
			wait.reset()
		}
		most := lastPause
		if r, _ := l.get(); r.vanished(a.cfg.Clock().UnixMilli()) {
			most = lostPause
		}
		k.rest(ctx, wait.take(most))
	}
}

// rest waits for the next attempt, or until somebody is in a hurry.
func (k *link) rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-k.l.kick:
	case <-ctx.Done():
	}
}

// once connects, unless there is a stream already, and talks until the connection ends. It reports whether the lease is
// over.
func (k *link) once(ctx context.Context, s Stream) (bool, error) {
	k.settle, k.theirs, k.heard = time.Time{}, 0, map[market.Hash]bool{}
	var head *market.Hello
	fresh := s != nil
	if !fresh {
		var err error
		if s, head, err = k.connect(ctx); err != nil {
			k.l.change(func() { k.l.failures++ })
			return false, err
		}
	}
	k.online(true)
	defer k.online(false)
	talking, cancel := context.WithCancel(ctx)
	var side sync.WaitGroup
	side.Go(func() { k.orders(talking, s, fresh) })
	side.Go(func() { k.nudge.keep(talking, s, k.a.cfg.Clock) })
	var err error
	if head != nil {
		err = k.catchUp(talking, s, *head)
	}
	finished := false
	if err == nil {
		finished, err = k.talk(talking, s)
	}
	cancel()
	side.Wait()
	return finished, errors.Join(err, s.Close())
}

// connect opens a stream and exchanges heads. The caller closes the stream.
func (k *link) connect(ctx context.Context) (Stream, *market.Hello, error) {
	limited, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	s, err := k.a.cfg.Net.OpenLease(limited, k.rig)
	if err != nil {
		return nil, nil, err
	}
	r, _ := k.l.get()
	hello, err := k.a.greet(limited, s, k.rig, r)
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	k.l.change(func() { k.l.speaks = hello.Speaks })
	return s, &hello, nil
}

func (k *link) online(yes bool) {
	k.l.change(func() {
		k.l.connected = yes
		if yes {
			k.l.connections++
		}
	})
	if !yes {
		k.a.measure(k.l, func(r Record) market.Measure { return r.State.Measure.Lost() })
	}
	k.a.changed(k.l)
}

// catchUp compares the rig's head with ours. A rig that lost our signature gets it again.
func (k *link) catchUp(ctx context.Context, s Stream, theirs market.Hello) error {
	if err := k.reextend(ctx, s, theirs); err != nil {
		return err
	}
	if err := k.remind(ctx, s, theirs); err != nil {
		return err
	}
	r, _ := k.l.get()
	k.theirs = theirs.Seq
	switch {
	case theirs.Seq > r.Head.Seq:
		return nil // it sends what we lack
	case theirs.Seq == r.Head.Seq && theirs.Hash != r.Head.Hash:
		return market.NewError(market.CodeReceiptChain, "seq", "newest", "why", "the rig has another one of the same number")
	case theirs.Seq == r.Head.Seq:
		return k.acknowledged(ctx, theirs.Seq)
	}
	kept, err := k.a.cfg.Store.Receipts(ctx, k.id)
	if err != nil {
		return err
	}
	limit := rate.NewLimiter(sendRate, sendBurst)
	for _, receipt := range kept {
		if receipt.Seq <= theirs.Seq {
			continue
		}
		if err := limit.Wait(ctx); err != nil {
			return err
		}
		if err := s.Send(ctx, market.ReceiptMessage{Receipt: receipt.Sealed}); err != nil {
			return err
		}
	}
	k.awaitAck()
	return nil
}

// talk answers the rig until the connection ends. It reports whether the lease is over.
func (k *link) talk(ctx context.Context, s Stream) (bool, error) {
	limit := rate.NewLimiter(perSecond, burst)
	for {
		r, _ := k.l.get()
		if r.State.over() {
			return true, nil
		}
		k.nudge.heard(k.a.cfg.Clock(), r.State.Job == market.JobRunning)
		m, err := k.receive(ctx, s, r.State.Job)
		switch {
		case err != nil && !r.State.busy() && !k.settle.IsZero() && !k.a.cfg.Clock().Before(k.settle):
			return true, nil // it had time to say that it has the final receipt
		case err != nil:
			return false, err
		}
		if err := limit.Wait(ctx); err != nil {
			return false, err
		}
		err = k.handle(ctx, s, m)
		if err == nil && k.later != nil {
			err = k.ask(ctx, s, *k.later)
		}
		if err == nil {
			err = k.consent(ctx, s)
		}
		if err != nil {
			k.complain(err)
			_ = s.Send(ctx, market.Refuse{Err: *market.Public(err)}) // for the rig's log; the stream ends anyway
			return false, err
		}
		k.l.sick.Store(false)
	}
}

// complain logs the first of a row of failures that are this side's own: a store that takes nothing, as a rule.
func (k *link) complain(err error) {
	code := market.CodeOf(err)
	if (code == market.CodeInternal || code == market.CodeDiskFull) && !k.l.sick.Swap(true) {
		k.a.cfg.Log.Error("lease cannot go on", "lease", k.id.Short(), "err", err)
	}
}

// receive waits for the rig's next word for as long as its silence can be right.
func (k *link) receive(ctx context.Context, s Stream, job market.JobState) (market.Message, error) {
	wait := quietTime
	r, _ := k.l.get()
	switch {
	case !k.settle.IsZero() && !r.State.busy():
		wait = k.settle.Sub(k.a.cfg.Clock())
	case job == market.JobRunning:
		wait = silenceTime
	}
	if wait <= 0 {
		return nil, context.DeadlineExceeded
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return s.Receive(ctx)
}

func (k *link) handle(ctx context.Context, s Stream, m market.Message) error {
	switch m := m.(type) {
	case market.StatusMessage:
		return k.status(ctx, s, m)
	case market.ReceiptMessage:
		reply, err := k.receipt(ctx, m.Receipt)
		if err != nil || reply == nil {
			return err
		}
		if err := s.Send(ctx, reply); err != nil {
			return err
		}
		k.awaitAck()
		return nil
	case market.AckMessage:
		return k.acknowledged(ctx, m.Seq)
	case market.OutcomeMessage:
		return k.outcome(ctx, m.Outcome)
	case market.ExtendMessage:
		return k.extended(ctx, m.Extension)
	case market.DeclineMessage:
		return k.declined(ctx, m)
	case market.AskMessage:
		return k.ask(ctx, s, m)
	case market.PaymentMessage:
		return k.payment(ctx, m.Payment)
	case market.NoticeMessage:
		return k.notice(ctx, m.Notice)
	case market.DisputeMessage:
		return k.complaint(ctx, m.Dispute)
	}
	return market.Unexpected(m)
}

// awaitAck begins the wait for the rig's word that it has the final receipt.
func (k *link) awaitAck() {
	if r, _ := k.l.get(); r.Head.Kind == market.ReceiptFinal && k.settle.IsZero() {
		k.settle = k.a.cfg.Clock().Add(ackTime)
	}
}

// acknowledged notes that the rig has stored a receipt with both signatures.
func (k *link) acknowledged(ctx context.Context, seq uint32) error {
	k.l.writing.Lock()
	defer k.l.writing.Unlock()
	return k.acknowledgedLocked(ctx, seq)
}

func (k *link) acknowledgedLocked(ctx context.Context, seq uint32) error {
	r, _ := k.l.get()
	k.theirs = max(k.theirs, min(seq, r.Head.Seq))
	if r.Head.Kind != market.ReceiptFinal || seq != r.Head.Seq || r.State.Acked {
		return nil
	}
	return k.a.commitLocked(ctx, k.l, func(r *Record) { r.State.Acked = true })
}

// refuted reports whether the rig has said, for good, that it does not have a lease that this side signed and of which
// nothing was heard since. Nothing is owed then.
func (k *link) refuted(ctx context.Context, err error) bool {
	r, _ := k.l.get()
	if err == nil || r.State.Job != market.JobGranted {
		return false
	}
	switch market.CodeOf(err) {
	case market.CodeHoldExpired, market.CodeLeaseUnknown, market.CodeLeaseEnded, market.CodeNotYours, market.CodeBadRecord,
		market.CodeBadSignature, market.CodeBadEncoding, market.CodeWrongNetwork:
	default:
		return false
	}
	return k.a.commit(ctx, k.l, func(r *Record) {
		r.State.Job, r.State.Reason, r.State.Refused, r.Env = market.JobEnded, market.ReasonHoldExpired, market.Public(err), nil
	}) == nil
}
