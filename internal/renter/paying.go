package renter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"haggle/internal/pay"
	"haggle/market"
)

// States of a slice on its way.
const (
	payWished  = "wished"  // the user wants to pay, and the rig has not said yet how
	payAsked   = "asked"   // stored; the payment program has not answered yet
	payPending = "pending" // the money is on its way, or nobody knows
	payWaiting = "waiting" // a person must act
	payFailed  = "failed"  // nothing was taken
	payHeld    = "held"    // a budget keeps it back
	paySent    = "sent"    // it has left; the rig has not signed for it yet
)

// Times of paying.
const (
	firstPoll = time.Second
	lastPoll  = 30 * time.Second
	heldPause = 30 * time.Second
	sentPause = 15 * time.Second // for the rig to sign; then the program is asked whether it is still sure
	lastTry   = 5 * time.Minute  // between two attempts of a payment that failed, or for which the rig does not sign
)

// payer runs the payment program for a lease, beside its link, until nothing is left to pay or ctx ends. What is to be paid is in the
// record before the program is asked: after a crash the same order is given again, and a program pays an order once.
func (a *Agent) payer(ctx context.Context, l *lease) {
	var last turn
	var due time.Time
	var wait time.Duration
	for ctx.Err() == nil {
		change := l.watch()
		r, _ := l.get()
		if r.over() {
			return
		}
		now := a.cfg.Clock()
		if t := l.turn(); t != last {
			last, due, wait = t, now, 0
			if t.state == paySent {
				due, wait = now.Add(sentPause), sentPause
			}
		}
		p := r.State.Paying
		switch {
		case p != nil && r.overdue(now.UnixMilli()):
			if err := a.settle(ctx, l, *p, func(r *Record) { r.State.Paying = p.lost() }); err != nil {
				awaitChange(ctx, change, lastTry)
			}
			continue
		case a.cfg.Purse != nil && p == nil:
			if err := a.topUp(ctx, l); err != nil && ctx.Err() == nil {
				a.cfg.Log.Debug("nothing is paid ahead", "lease", r.Lease.Short(), "err", err)
			}
			awaitChange(ctx, change, lastTry)
			continue
		case a.cfg.Purse == nil || !p.waits():
			awaitChange(ctx, change, lastTry)
			continue
		case due.After(now):
			awaitChange(ctx, change, due.Sub(now))
			continue
		}
		if err := a.pay(ctx, l, *p); err != nil && ctx.Err() == nil {
			a.cfg.Log.Warn("payment stands still", "lease", r.Lease.Short(), "slice", p.Slice.Seq, "err", err)
		}
		if last = l.turn(); last.state == paySent {
			wait = max(sentPause/2, wait)
		}
		wait = min(max(firstPoll, 2*wait), mostPause(last.state))
		due = a.cfg.Clock().Add(wait)
	}
}

// overdue reports whether nobody waits any more for the rig of a lease that has ended to sign for money.
func (r Record) overdue(now int64) bool {
	return r.State.Job == market.JobEnded && r.State.pays() && now > max(r.State.Since, r.State.Paying.Slice.AskedAt)+market.RetentionMs
}

// lost is a slice that the rig has never signed for.
func (p Paying) lost() *Paying {
	p.State, p.Final, p.Why = payFailed, true, "the rig has not signed for it"
	return &p
}

// tried is a slice that the payment program is told to send.
func (p Paying) tried() *Paying {
	p.Tried = true
	return &p
}

// turn says what a payer works at: when it is another one, there is something to do at once.
type turn struct {
	slice  uint32
	state  string
	amount market.Micro
	urge   int
}

func (l *lease) turn() turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.record.State.Paying
	if p == nil {
		return turn{}
	}
	return turn{p.Slice.Seq, p.State, p.Amount, l.urged}
}

// waits reports whether the payment program has something to do.
func (p Paying) waits() bool {
	switch p.State {
	case payAsked, payPending, payWaiting, payHeld, paySent:
		return true
	case payFailed:
		return !p.Final
	}
	return false
}

func mostPause(state string) time.Duration {
	switch state {
	case payHeld:
		return heldPause
	case payFailed, paySent:
		return lastTry
	}
	return lastPoll
}

// awaitChange waits for a change, for a time where it is not negative, or for the end of ctx.
func awaitChange(ctx context.Context, change <-chan struct{}, d time.Duration) {
	var after <-chan time.Time
	if d >= 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		after = t.C
	}
	select {
	case <-change:
	case <-after:
	case <-ctx.Done():
	}
}

// pay takes a slice one step on.
func (a *Agent) pay(ctx context.Context, l *lease, p Paying) error {
	if p.State == payHeld || p.State == payFailed {
		return a.readmit(ctx, l, p)
	}
	r, _ := l.get()
	drop := func(r *Record) { r.State.Paying = nil }
	if !p.Tried && !r.State.wants(p) {
		return a.settle(ctx, l, p, drop) // the job is over, and nothing was sent
	}
	if p.State == paySent && !r.State.wants(p) {
		return nil // what was sent is known, and no more is
	}
	order := a.orderOf(r, p)
	answer, err := pay.Answer{State: pay.Unknown}, error(nil)
	if p.Tried {
		answer, err = a.cfg.Purse.Status(ctx, order)
	}
	nothing := err == nil && answer.State == pay.Unknown // no call before this one has sent anything
	switch {
	case nothing && !r.State.wants(p):
		return a.settle(ctx, l, p, drop)
	case nothing:
		p.Tried = true
		if err := a.settle(ctx, l, p, func(r *Record) { r.State.Paying = r.State.Paying.tried() }); err != nil {
			return err
		}
		if r, _ := l.get(); r.State.Paying == nil || *r.State.Paying != p {
			return nil // it was paid, or given up, meanwhile
		}
		answer, err = a.cfg.Purse.Pay(ctx, order) // an order that was paid already is not paid again
	}
	if ctx.Err() != nil {
		return ctx.Err() // the next life asks again
	}
	return a.settle(ctx, l, p, func(r *Record) { r.State = r.State.answered(p, answer, err, nothing) })
}

// wants reports whether a slice that was not sent yet is still to be sent.
func (s State) wants(p Paying) bool { return s.Job != market.JobEnded || wished(p.Slice.Seq) }

// settle changes a slice that is still the one on its way. The rig's signature may have come first.
func (a *Agent) settle(ctx context.Context, l *lease, p Paying, change func(*Record)) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	r, _ := l.get()
	if now := r.State.Paying; now == nil || now.Slice.Seq != p.Slice.Seq {
		return nil
	}
	before := *r.State.Paying
	err := a.commitLocked(ctx, l, change)
	if r, _ := l.get(); err == nil && r.State.Paying != nil && r.State.Paying.State != before.State {
		args := []any{"lease", r.Lease.Short(), "slice", p.Slice.Seq, "state", r.State.Paying.State}
		if why := r.State.Paying.Why; why != "" {
			args = append(args, "why", why)
		}
		a.cfg.Log.Info("payment", args...)
	}
	return err
}

// answered takes the payment program's answer into a state. Where nobody knows whether money has left, it is asked again: a no is one
// to this call, and counts only where nothing was sent by those before.
func (s State) answered(p Paying, answer pay.Answer, err error, nothing bool) State {
	var no *pay.RefusedError
	switch {
	case p.State == paySent: // its program was only asked again: what it said first counts until the rig signs
		return s
	case nothing && (errors.As(err, &no) || errors.Is(err, pay.ErrMissing)):
		p.State, p.Tried = payFailed, false
	case err != nil:
		p.State = payPending
	default:
		p.Reference, p.Words, p.QR = answer.Reference, answer.Text, answer.QR
		switch answer.State {
		case pay.Settled:
			p.State = paySent
			s.Sent += market.Micro(answer.Amount)
		case pay.Waiting:
			p.State = payWaiting
		case pay.Failed:
			p.State, p.Final = payFailed, true
		default:
			p.State = payPending
		}
	}
	p.Why = ""
	switch {
	case err != nil:
		p.Why = market.Explain(payFault(p.Method, err)).Message
	case p.State == payFailed:
		p.Why = market.Explain(market.NewError(market.CodePayFailed, "method", p.Method, "why", orWords(answer.Text))).Message
	}
	s.Paying = &p
	return s
}

func orWords(text string) string {
	if text == "" {
		return "the program does not say why"
	}
	return text
}

// readmit tries again what a budget kept back, or what failed without anything being taken.
func (a *Agent) readmit(ctx context.Context, l *lease, p Paying) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	r, _ := l.get()
	if now := r.State.Paying; now == nil || now.Slice.Seq != p.Slice.Seq {
		return nil
	}
	if !r.State.wants(p) {
		return a.commitLocked(ctx, l, func(r *Record) { r.State.Paying = nil })
	}
	a.spending.Lock()
	defer a.spending.Unlock()
	next, err := a.admit(ctx, r, *r.State.Paying)
	if err != nil || next == *r.State.Paying {
		return err
	}
	return a.commitLocked(ctx, l, func(r *Record) { r.State.Paying = &next })
}

// admit reports whether a slice is paid now or held. More than the slice is paid ahead only where the budgets have room for it. The
// caller holds the lease's lock and a.spending until the slice is stored.
func (a *Agent) admit(ctx context.Context, r Record, p Paying) (Paying, error) {
	p.State, p.Why = payAsked, ""
	if !r.State.Serves.IsZero() {
		if p.Slice.Amount > r.State.Cap-r.State.Sent {
			p.State, p.Why = payHeld, fmt.Sprintf("the agent that this one acts for lets it pay %s for the lease in all", r.State.Cap)
			return p, nil
		}
		p.Amount = min(p.Amount, r.State.Cap-r.State.Sent)
	}
	left, over, err := a.room(ctx, r.Terms.Prices.Currency, p.Slice.Amount)
	switch {
	case err != nil:
		return p, err
	case over != nil:
		p.State, p.Why = payHeld, market.Explain(over).Message
	case left != noLimit:
		p.Amount = min(p.Amount, left)
	}
	return p, nil
}
