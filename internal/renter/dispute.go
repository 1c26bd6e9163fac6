package renter

import (
	"context"
	"fmt"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// Bounds of complaints.
const (
	maxSaid  = 16              // complaints of one side about one lease that are kept; rigs keep as many
	tellTime = 5 * time.Second // that an order to tell the rig waits for the rig's word that it has come
)

// Dispute signs that a lease's bill is wrong, files it, and tells the rig, now or as soon as it can be reached. By default what both
// signed is right.
func (a *Agent) Dispute(ctx context.Context, id string, req view.DisputeRequest) (view.Disputes, error) {
	r, err := a.findOwn(ctx, id)
	if err != nil {
		return view.Disputes{}, err
	}
	said, err := req.Signs(market.RoleRenter, r.Lease, r.Head, r.Head.Total, r.terms().Budget, a.cfg.Clock().UnixMilli())
	if err != nil {
		return view.Disputes{}, err
	}
	return a.tell(ctx, r, market.SealDispute(a.cfg.Network, a.cfg.Key, said).Encode())
}

// Decision takes the decision of the guarantor of a lease, which counts from then on, and tells the rig.
func (a *Agent) Decision(ctx context.Context, id string, sealed []byte) (view.Disputes, error) {
	r, err := a.findOwn(ctx, id)
	if err != nil {
		return view.Disputes{}, err
	}
	said, _, err := market.OpenDispute(a.cfg.Network, sealed, r.Terms, a.guarantorOf(r))
	switch {
	case err != nil:
		return view.Disputes{}, err
	case said.By != market.RoleGuarantor:
		return view.Disputes{}, badRequest("it is the complaint of the " + string(said.By) + ", and no decision")
	}
	return a.tell(ctx, r, sealed)
}

// Disputes tells what was said of a lease's bill.
func (a *Agent) Disputes(ctx context.Context, id string) (view.Disputes, error) {
	r, err := a.find(ctx, id)
	if err != nil {
		return view.Disputes{}, err
	}
	return a.disputes(ctx, r)
}

func (a *Agent) disputes(ctx context.Context, r Record) (view.Disputes, error) {
	r, _ = a.latest(r)
	kept, err := a.cfg.Store.Papers(ctx, r.Lease, market.KindDispute)
	if err != nil {
		return view.Disputes{}, fmt.Errorf("disputes of lease %s: %w", r.Lease.Short(), err)
	}
	guarantor := a.guarantorOf(r)
	var said []market.Dispute
	for _, p := range kept {
		d, _, err := market.OpenDispute(a.cfg.Network, p.Sealed, r.Terms, guarantor)
		if err != nil {
			return view.Disputes{}, fmt.Errorf("dispute %d of lease %s: %w", p.Seq, r.Lease.Short(), err)
		}
		said = append(said, d)
	}
	return view.DisputesOf(r.Lease, said, r.terms().Budget, r.Terms.Prices.Currency, !r.State.Untold), nil
}

// findOwn finds a lease of this agent's own that both have signed.
func (a *Agent) findOwn(ctx context.Context, id string) (Record, error) {
	r, err := a.find(ctx, id)
	switch {
	case err != nil:
		return r, err
	case !r.State.Serves.IsZero():
		return r, market.NewError(market.CodeNotYours)
	case r.State.void():
		return r, badRequest("a lease that is not signed costs nothing")
	}
	r, _ = a.latest(r)
	return r, nil
}

// tell files what this side has to say of a lease's bill, and waits a moment for the rig's word that it has come. A lease that is over
// is taken up again for it.
func (a *Agent) tell(ctx context.Context, r Record, raw []byte) (view.Disputes, error) {
	l := a.opened(r.Bid)
	if l == nil {
		l = newLease(r)
	}
	if err := a.say(ctx, l, raw); err != nil {
		return view.Disputes{}, err
	}
	l.hurry()
	wait, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	for failures := l.attempts(); ; {
		change := l.watch()
		now, connected := l.get()
		if !now.State.Untold || !connected && l.attempts() > failures {
			return a.disputes(ctx, now)
		}
		select {
		case <-change:
		case <-a.stopped:
			return a.disputes(ctx, now)
		case <-wait.Done():
			return a.disputes(ctx, now)
		}
	}
}

// say stores what is to be said, before the link says it.
func (a *Agent) say(ctx context.Context, l *lease, raw []byte) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if _, err := a.fileDispute(ctx, l, raw, true); err != nil {
		return err
	}
	if r, _ := l.get(); r.State.Released || a.opened(r.Bid) == l {
		return nil
	}
	a.enter(l)
	if err := a.spawn(ctx, func(ctx context.Context) { a.tend(ctx, l, nil) }); err != nil {
		a.leave(l) // the next life takes it up
		return err
	}
	return nil
}

// fileDispute keeps a complaint that was checked, or a decision, and reports whether it is known already. Where it is this side's to
// say, the rig has to be told. l.writing is held.
func (a *Agent) fileDispute(ctx context.Context, l *lease, raw []byte, tell bool) (known bool, err error) {
	s, err := market.DecodeSealed(raw)
	if err != nil {
		return false, err
	}
	r, _ := l.get()
	kept, err := a.cfg.Store.Papers(ctx, r.Lease, market.KindDispute)
	if err != nil {
		return false, err
	}
	said := 0
	for _, p := range kept {
		old, err := market.DecodeSealed(p.Sealed)
		if err != nil {
			return false, err
		}
		known = known || old.Hash() == s.Hash()
		if old.SignedBy(s.Sigs[0].Role) {
			said++
		}
	}
	switch {
	case known && !tell:
		return true, nil
	case !known && said >= maxSaid && tell:
		return false, market.NewError(market.CodeTooMany)
	case !known && said >= maxSaid:
		return false, nil // what one side says cannot fill the disk, nor silence another
	}
	r.State.Untold = r.State.Untold || tell
	var papers []market.Paper
	if !known {
		papers = []market.Paper{{Lease: r.Lease, Kind: market.KindDispute, Seq: uint32(len(kept)) + 1, Sealed: raw}}
	}
	if err := a.cfg.Store.File(ctx, r, papers...); err != nil {
		return known, fmt.Errorf("keep a dispute of lease %s: %w", r.Lease.Short(), err)
	}
	a.show(l, r)
	return known, nil
}

// complaint keeps the rig's, or the guarantor's, signed word that the bill is wrong. A word of this side's that comes back has come.
func (k *link) complaint(ctx context.Context, raw []byte) error {
	r, _ := k.l.get()
	d, s, err := market.OpenDispute(k.a.cfg.Network, raw, r.Terms, k.a.guarantorOf(r))
	if err != nil {
		return err
	}
	if d.Lease != r.Lease {
		return ofAnotherLease(market.KindDispute)
	}
	k.l.writing.Lock()
	defer k.l.writing.Unlock()
	known, err := k.a.fileDispute(ctx, k.l, raw, false)
	if err != nil || !known {
		return err
	}
	k.heard[s.Hash()] = true
	return k.toldLocked(ctx)
}

// toldLocked notes that the rig has sent back all that this side had to say.
func (k *link) toldLocked(ctx context.Context) error {
	r, _ := k.l.get()
	if !r.State.Untold {
		return nil
	}
	mine, err := k.a.toSay(ctx, r)
	if err != nil {
		return err
	}
	for _, s := range mine {
		if !k.heard[s.hash] {
			return nil
		}
	}
	return k.a.commitLocked(ctx, k.l, func(r *Record) { r.State.Untold = false })
}

// saying is a complaint or a decision that the rig has to hear.
type saying struct {
	hash market.Hash
	raw  []byte
}

// toSay returns what the rig has to hear of a lease: all but what it said itself. The oldest come first.
func (a *Agent) toSay(ctx context.Context, r Record) ([]saying, error) {
	kept, err := a.cfg.Store.Papers(ctx, r.Lease, market.KindDispute)
	if err != nil {
		return nil, err
	}
	var list []saying
	for _, p := range kept {
		s, err := market.DecodeSealed(p.Sealed)
		if err != nil {
			return nil, err
		}
		if !s.SignedBy(market.RoleRig) {
			list = append(list, saying{s.Hash(), p.Sealed})
		}
	}
	return list, nil
}

// sayAll sends what the rig has to hear and was not sent yet on this connection.
func (k *link) sayAll(ctx context.Context, s Stream, sent map[market.Hash]bool) error {
	r, _ := k.l.get()
	if !r.State.Serves.IsZero() {
		return nil // that is its agent's affair
	}
	list, err := k.a.toSay(ctx, r)
	if err != nil {
		return err
	}
	for _, one := range list {
		if sent[one.hash] {
			continue
		}
		if err := s.Send(ctx, market.DisputeMessage{Dispute: one.raw}); err != nil {
			return err
		}
		sent[one.hash] = true
	}
	return nil
}

// Decide signs, as the guarantor that a lease names, what it costs: what both signed, where the request names nothing else. The
// evidence must hold.
func (a *Agent) Decide(_ context.Context, req view.DecideRequest) ([]byte, error) {
	j := market.Judge(req.Evidence)
	switch {
	case j.Verdict == market.VerdictInvalid:
		why := "it is not valid"
		if n := len(j.Checks); n > 0 {
			why = "a check fails: " + j.Checks[n-1].Name
		}
		return nil, badRequest("nothing is decided by this evidence: " + why)
	case j.Network != a.cfg.Network:
		return nil, market.NewError(market.CodeWrongNetwork, "network", market.Printable(j.Network))
	case j.Guarantee == nil || j.Guarantee.Guarantor != a.self:
		return nil, market.NewError(market.CodeGuarantee, "why", "the lease names none of this agent's, so its word decides nothing")
	}
	said, err := req.Signs(market.RoleGuarantor, j.Lease, j.Head, j.Head.Total, j.Terms.Budget, a.cfg.Clock().UnixMilli())
	if err != nil {
		return nil, err
	}
	return market.SealDispute(a.cfg.Network, a.cfg.Key, said).Encode(), nil
}
