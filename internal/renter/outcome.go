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
	r, _ := k.l.get()
	news, err := k.a.conclude(&r, raw)
	if err != nil || !news {
		return err
	}
	return k.a.commit(ctx, k.l, func(old *Record) { old.Outcome = raw })
}

// concluded returns a record with the newest outcome that can be had.
func (a *Agent) concluded(ctx context.Context, r Record) Record {
	if a.opened(r.Bid) != nil || !a.mayConclude(r) {
		return r // the lease's own link hears of it, or there is nothing to hear
	}
	ctx, cancel := context.WithTimeout(ctx, outcomeTime)
	defer cancel()
	raw, err := a.askOutcome(ctx, r)
	next := r
	if err == nil {
		var news bool
		if news, err = a.conclude(&next, raw); err == nil && news {
			err = a.cfg.Store.Save(ctx, next)
		}
	}
	if err != nil {
		a.cfg.Log.Debug("no outcome", "lease", r.Lease.Short(), "peer", r.Terms.Rig.String(), "err", err)
		return r
	}
	return next
}

// mayConclude reports whether the rig of a lease that is over may know more than is kept.
func (a *Agent) mayConclude(r Record) bool {
	if r.Lease.IsZero() || r.State.void() || r.State.Job != market.JobEnded {
		return false
	}
	o, found := a.outcomeOf(r)
	return !found || o.DiskAt == 0 && a.cfg.Clock().UnixMilli() >= r.State.Since+market.RetentionMs
}

// askOutcome asks a rig for the outcome of a lease. Whatever it says before that is known already, or will be heard another time.
func (a *Agent) askOutcome(ctx context.Context, r Record) ([]byte, error) {
	s, err := a.cfg.Net.OpenLease(ctx, r.Terms.Rig)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }() // nothing that was sent needs to arrive
	if _, err := a.greet(ctx, s, r.Terms.Rig, r.Lease, r.Head); err != nil {
		return nil, err
	}
	for range outcomeWait {
		m, err := s.Receive(ctx)
		if err != nil {
			return nil, err
		}
		if o, ok := m.(market.OutcomeMessage); ok {
			return o.Outcome, nil
		}
	}
	return nil, fmt.Errorf("lease %s: %d messages and no outcome", r.Lease.Short(), outcomeWait)
}
