package renter

import (
	"context"
	"slices"

	"haggle/market"
)

// ahead returns what is paid for a slice: more than it asks for where the user wants the job to go on for longer without this agent.
// The first slice is paid as it is: nobody knows yet whether the job will run.
func (a *Agent) ahead(r Record, s market.Slice) market.Micro {
	t := r.terms()
	known := r.State.known()
	if known == 0 && s.ForMs <= market.FirstSliceMs || !r.State.Serves.IsZero() || !longAway(t) {
		return s.Amount
	}
	return max(s.Amount, a.covering(r, awayFor(t))-known)
}

// longAway reports whether the user wants a lease to go on without this agent for longer than slices pay for anyway.
func longAway(t market.Terms) bool {
	return t.Limits.UnattendedMs == market.Unlimited || t.Limits.UnattendedMs > defaultUnattendedMs
}

// awayFor is the time for which a lease is paid ahead, so that it goes on without this agent: a quarter more than the user asked for,
// so that little is paid at a time.
func awayFor(t market.Terms) int64 {
	if t.Limits.UnattendedMs == market.Unlimited {
		return t.DurationMs
	}
	return t.Limits.UnattendedMs + t.Limits.UnattendedMs/4
}

// covering is what must be paid, in all, for a lease to run on for a time.
func (a *Agent) covering(r Record, ms int64) market.Micro {
	t := r.terms()
	billed := max(r.Head.BilledMs, min(r.State.BilledMs, t.DurationMs))
	bill, err := t.Prices.Bill(t.UsedBy(min(billed+ms, t.DurationMs), r.Head.KeptMs, r.Head.Usage.InBytes, r.Head.Usage.OutBytes))
	if err != nil {
		return t.Budget
	}
	return min(bill.Total, t.Budget)
}

// topUp pays ahead what the user's absence needs, where the rig has not asked for it: it asks for the next stretch only.
func (a *Agent) topUp(ctx context.Context, l *lease) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	r, _ := l.get()
	t := r.terms()
	if !longAway(t) || !t.PaysAhead() || !r.State.Serves.IsZero() ||
		r.State.Job != market.JobRunning || r.State.Paying != nil || r.State.PaidSeq < 2 || l.connection() == 0 || !l.has(speaksPay) {
		return nil
	}
	known := r.State.known()
	least := a.covering(r, t.DurationMs)
	if t.Limits.UnattendedMs != market.Unlimited {
		least = a.covering(r, t.Limits.UnattendedMs)
	}
	if known >= least {
		return nil
	}
	a.spending.Lock()
	amount := a.covering(r, awayFor(t)) - known
	left, over, err := a.room(ctx, t.Prices.Currency, amount)
	a.spending.Unlock()
	if over != nil || err != nil || left != noLimit && left < amount {
		return err // the rig's own requests are held then, and shown
	}
	p := Paying{Slice: r.wishFor(amount, a.cfg.Clock().UnixMilli()), Method: t.Pay, Amount: amount, State: payWished}
	return a.commitLocked(ctx, l, func(r *Record) { r.State.wish(p) })
}

// wishFor is a slice that the renter wants to pay and the rig has not asked for.
func (r Record) wishFor(amount market.Micro, now int64) market.Slice {
	return market.Slice{Seq: wishBit | (max(r.State.PaidSeq, r.State.Wishes) + 1), Amount: amount, AskedAt: now}
}

// wish notes such a slice. Its number is never used again: a payment program knows it by that.
func (s *State) wish(p Paying) { s.Paying, s.Wishes = &p, p.Slice.Seq&^wishBit }

// has reports whether the rig of the present connection speaks something.
func (l *lease) has(what string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.speaks, what)
}
