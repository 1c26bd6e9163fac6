package host

import (
	"context"
	"fmt"

	"haggle/market"
)

// guarantee opens the guarantee that a bid names, and reports whether it stands for the bid's lease: the rig's owner takes the
// guarantor's word, and enough of the amount is not reserved for other leases. The lock d.pledging is held.
func (d *Daemon) guarantee(s Settings, bid market.Bid, raw []byte) error {
	g, sealed, err := market.OpenGuarantee(d.cfg.Network, raw)
	if err != nil {
		return err
	}
	if sealed.Hash() != bid.Guarantee {
		return market.NewError(market.CodeGuarantee, "why", "it is not the one that the bid names")
	}
	if err := g.Covers(d.self, bid.Owner, bid.Prices.Currency, d.cfg.Clock().Wall); err != nil {
		return err
	}
	if !s.guarantees(g.Guarantor) {
		return market.NewError(market.CodeGuarantee, "why", "this rig's owner does not take that guarantor's word")
	}
	return d.reserve(g, bid.Guarantee, market.LeaseID{}, pledge(bid.Budget, bid.Limits.Credit))
}

// pledge is what a guarantee must stand for: what the lease can come to owe.
func pledge(budget market.Micro, credit int64) market.Micro {
	if credit == market.Unlimited {
		return budget
	}
	return min(budget, market.Micro(credit))
}

// reserve reports whether so much of a guarantee is left for a lease; the zero id is one that is to come.
func (d *Daemon) reserve(g market.Guarantee, hash market.Hash, lease market.LeaseID, amount market.Micro) error {
	left := g.Amount - d.reserved(hash, lease)
	if amount > left {
		return market.NewError(market.CodeGuaranteeSpent, "amount", g.Amount.String(), "left", max(0, left).String())
	}
	return nil
}

// reserved returns what leases but one hold of a guarantee: an open one all that it can come to owe, one that has ended what it
// owes still.
func (d *Daemon) reserved(hash market.Hash, but market.LeaseID) market.Micro {
	d.mu.Lock()
	defer d.mu.Unlock()
	sum := d.pledges[hash]
	for id, l := range d.leases {
		if seen := l.seen.Load(); id != but && seen.lease.Terms.Guarantee == hash {
			sum += pledgeOf(seen)
		}
	}
	return sum
}

func pledgeOf(seen *glance) market.Micro {
	t := seen.lease.Current()
	if t.Guarantee.IsZero() {
		return 0
	}
	if seen.lease.Job == market.JobEnded {
		return seen.money.pledged
	}
	return pledge(t.Budget, t.Limits.Credit)
}

// keepGuarantee files the guarantee of a lease with it.
func (d *Daemon) keepGuarantee(ctx context.Context, s market.Lease, raw []byte) error {
	if s.Terms.Guarantee.IsZero() {
		return nil
	}
	papers, err := d.cfg.Store.Papers(ctx, s.ID, market.KindGuarantee)
	if err != nil || len(papers) > 0 {
		return err
	}
	paper := market.Paper{Lease: s.ID, Kind: market.KindGuarantee, Sealed: raw}
	if err := d.cfg.Store.File(context.WithoutCancel(ctx), s, nil, []market.Paper{paper}); err != nil {
		return fmt.Errorf("file guarantee: %w", err)
	}
	return nil
}

// guarantor returns who stands for a lease; the zero key where nobody does, or the guarantee is not kept.
func (d *Daemon) guarantor(ctx context.Context, s market.Lease) (market.Key, error) {
	if s.Terms.Guarantee.IsZero() {
		return market.Key{}, nil
	}
	papers, err := d.cfg.Store.Papers(ctx, s.ID, market.KindGuarantee)
	if err != nil || len(papers) == 0 {
		return market.Key{}, err
	}
	g, sealed, err := market.OpenGuarantee(d.cfg.Network, papers[0].Sealed)
	if err != nil || sealed.Hash() != s.Terms.Guarantee {
		return market.Key{}, err
	}
	return g.Guarantor, nil
}

// widen reports whether a guarantee stands for a larger budget of its lease too. The lock d.pledging is held.
func (l *lease) widen(ctx context.Context, e market.Extension) error {
	t := l.state.Current()
	if e.Budget == t.Budget {
		return nil
	}
	papers, err := l.d.cfg.Store.Papers(ctx, l.id, market.KindGuarantee)
	if err != nil {
		return err
	}
	if len(papers) == 0 {
		return market.NewError(market.CodeGuarantee, "why", "it is not kept any more")
	}
	g, _, err := market.OpenGuarantee(l.d.cfg.Network, papers[0].Sealed)
	if err != nil {
		return err
	}
	return l.d.reserve(g, t.Guarantee, l.id, pledge(e.Budget, t.Limits.Credit))
}
