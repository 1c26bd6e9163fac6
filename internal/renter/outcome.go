package renter

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// Bounds of asking a rig for the outcome of a lease that is over.
const (
	outcomeTime = 5 * time.Second
	outcomeWait = 64 // messages that may come before it
)

// Outcome returns the rig's signed word on what became of what a lease's job left behind. The rig is asked where it may have more
// to say than is kept; one that does not answer is no error. nil where nothing is known.
func (a *Agent) Outcome(ctx context.Context, id string) (*view.Outcome, error) {
	r, err := a.find(ctx, id)
	if err != nil {
		return nil, err
	}
	return a.outcomeView(a.concluded(ctx, r)), nil
}

func (a *Agent) outcomeView(r Record) *view.Outcome {
	o, found := a.outcomeOf(r)
	if !found {
		return nil
	}
	return view.OutcomeOf(o)
}

// outcomeOf opens the outcome that is kept.
func (a *Agent) outcomeOf(r Record) (market.Outcome, bool) {
	if r.Outcome == nil {
		return market.Outcome{}, false
	}
	o, _, err := market.OpenOutcome(a.cfg.Network, r.Outcome, r.Terms)
	return o, err == nil // our own bytes: the disk is damaged, and the rest must still be shown
}

// conclude takes an outcome that a rig sent into a record, and reports whether it says anything new. One that takes back what the
// rig has signed before is an error.
func (a *Agent) conclude(r *Record, raw []byte) (bool, error) {
	o, _, err := market.OpenOutcome(a.cfg.Network, raw, r.Terms)
	if err != nil {
		return false, err
	}
	bad := func(why string) error {
		return market.NewError(market.CodeBadRecord, "kind", string(market.KindOutcome), "why", why)
	}
	old, kept := a.outcomeOf(*r)
	switch {
	case o.Lease != r.Lease:
		return false, bad("it belongs to another lease")
	case bytes.Equal(raw, r.Outcome), kept && old.Follows(o):
		return false, nil
	case kept && !o.Follows(old):
		return false, bad("it takes back what was signed before")
	}
	r.Outcome = raw
	return true, nil
}

// outcome keeps the rig's word on what became of what the job left behind.
func (k *link) outcome(ctx context.Context, raw []byte) error {
	k.l.writing.Lock()
	defer k.l.writing.Unlock()
	r, _ := k.l.get()
	news, err := k.a.conclude(&r, raw)
	if err != nil || !news {
		return err
	}
	return k.a.commitLocked(ctx, k.l, func(old *Record) { old.Outcome = raw })
}

// accepted returns a record's outcome with this side's signature beside the rig's, where it agrees with the result and has not signed
// yet. Before the debt stands there is nothing to agree with.
func (a *Agent) accepted(r Record) ([]byte, bool) {
	if r.Outcome == nil || r.State.Job != market.JobEnded || r.debt() == market.DebtOpen || !r.State.Serves.IsZero() {
		return nil, false
	}
	o, s, err := market.OpenOutcome(a.cfg.Network, r.Outcome, r.Terms)
	if err != nil || s.SignedBy(market.RoleRenter) || o.Result == "" {
		return nil, false
	}
	if mine := market.ResultOf(r.State.Reason, r.Head.BilledMs, r.State.Disputed); o.Result != mine {
		a.cfg.Log.Debug("outcome not accepted", "lease", r.Lease.Short(), "rig", o.Result, "renter", mine)
		return nil, false
	}
	return market.AcceptOutcome(s, a.cfg.Key).Encode(), true
}

// keepOutcome stores an outcome that both have signed.
func (a *Agent) keepOutcome(ctx context.Context, r Record) error {
	kept, err := a.cfg.Store.Papers(ctx, r.Lease, market.KindOutcome)
	if err != nil || len(kept) >= maxPapers {
		return err
	}
	return a.cfg.Store.File(ctx, r, market.Paper{Lease: r.Lease, Kind: market.KindOutcome, Seq: uint32(len(kept)) + 1, Sealed: r.Outcome})
}

// consent accepts the outcome of a lease that has ended, where this side agrees with it.
func (k *link) consent(ctx context.Context, s Stream) error {
	k.l.writing.Lock()
	r, _ := k.l.get()
	raw, agrees := k.a.accepted(r)
	if !agrees {
		k.l.writing.Unlock()
		return nil
	}
	r.Outcome = raw
	err := k.a.keepOutcome(ctx, r)
	if err == nil {
		k.a.show(k.l, r)
	}
	k.l.writing.Unlock()
	if err != nil {
		return fmt.Errorf("accept the outcome of lease %s: %w", k.id.Short(), err)
	}
	return s.Send(ctx, market.OutcomeMessage{Outcome: raw})
}

// concluded returns a record with the newest outcome that can be had.
func (a *Agent) concluded(ctx context.Context, r Record) Record {
	if a.opened(r.Bid) != nil || !a.mayConclude(r) {
		return r // the lease's own link hears of it, or there is nothing to hear
	}
	ctx, cancel := context.WithTimeout(ctx, outcomeTime)
	defer cancel()
	next, err := a.askOutcome(ctx, r)
	if err != nil {
		a.cfg.Log.Debug("no outcome", "lease", r.Lease.Short(), "peer", r.Terms.Rig.String(), "err", err)
	}
	return next
}

// awaitOutcome hears what became of what a job left behind, where its rig had not said it yet when all else was done.
func (a *Agent) awaitOutcome(ctx context.Context, r Record) {
	for _, d := range []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute} {
		if !a.mayConclude(r) || !r.State.Serves.IsZero() || !rest(ctx, d) {
			return
		}
		r = a.concluded(ctx, r)
	}
}

// mayConclude reports whether the rig of a lease that is over may know more than is kept.
func (a *Agent) mayConclude(r Record) bool {
	if r.Lease.IsZero() || r.State.void() || r.State.Job != market.JobEnded {
		return false
	}
	o, found := a.outcomeOf(r)
	return !found || o.DiskAt == 0 && a.cfg.Clock().UnixMilli() >= r.State.Since+market.RetentionMs
}

// askOutcome asks a rig for the outcome of a lease, keeps it and tells the rig whether this side accepts it. Whatever the rig says
// before that is known already, or will be heard another time.
func (a *Agent) askOutcome(ctx context.Context, r Record) (Record, error) {
	s, err := a.cfg.Net.OpenLease(ctx, r.Terms.Rig)
	if err != nil {
		return r, err
	}
	defer func() { _ = s.Close() }() // nothing that was sent needs to arrive
	if _, err := a.greet(ctx, s, r.Terms.Rig, r); err != nil {
		return r, err
	}
	for range outcomeWait {
		m, err := s.Receive(ctx)
		if err != nil {
			return r, err
		}
		if o, ok := m.(market.OutcomeMessage); ok {
			return a.hearOutcome(ctx, s, r, o.Outcome)
		}
	}
	return r, fmt.Errorf("lease %s: %d messages and no outcome", r.Lease.Short(), outcomeWait)
}

// hearOutcome keeps an outcome of a lease that is over, and accepts it where this side agrees with it.
func (a *Agent) hearOutcome(ctx context.Context, s Stream, r Record, raw []byte) (Record, error) {
	next := r
	news, err := a.conclude(&next, raw)
	if err != nil || !news {
		return r, err
	}
	signed, agrees := a.accepted(next)
	if !agrees {
		return next, a.cfg.Store.Save(ctx, next)
	}
	next.Outcome = signed
	if err := a.keepOutcome(ctx, next); err != nil {
		return r, err
	}
	return next, s.Send(ctx, market.OutcomeMessage{Outcome: signed})
}
