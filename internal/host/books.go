package host

import (
	"context"

	"haggle/internal/view"
	"haggle/market"
)

// facts returns what the rig knows of the money and the ends of its leases, or of those with one owner, oldest first, with the
// payments of each.
func (d *Daemon) facts(ctx context.Context, owner *market.Key) ([]view.Invoiced, error) {
	records, err := d.cfg.Store.Records(ctx, true)
	if err != nil {
		return nil, err
	}
	paid, err := d.allPayments(ctx)
	if err != nil {
		return nil, err
	}
	var list []view.Invoiced
	for _, r := range records {
		if owner != nil && r.Lease.Terms.RenterOwner != *owner {
			continue
		}
		if l := d.lease(r.Lease.ID); l != nil {
			r.Lease = l.snapshot()
		}
		if r.Lease.Job == market.JobGranted || r.Lease.Reason == market.ReasonHoldExpired {
			continue // only this rig signed it
		}
		i, err := d.factsOf(ctx, r.Lease, paid[r.Lease.ID])
		if err != nil {
			return nil, err
		}
		list = append(list, i)
	}
	return list, nil
}

func (d *Daemon) factsOf(ctx context.Context, s market.Lease, papers []market.Paper) (view.Invoiced, error) {
	i := view.Invoiced{
		Head: s.Head,
		Facts: market.LeaseFacts{
			Lease: s.ID, Terms: s.Current(), Job: s.Job, Debt: s.Debt, Reason: s.Reason, BilledMs: s.Meter.BilledMs,
			Begun: s.Terms.Issued, Used: s.Total(), Signed: s.Head.Total, Paid: s.Paid,
		},
	}
	if s.Job == market.JobEnded {
		i.Facts.Ended = s.Since
	}
	if s.Attempt == 0 && s.Meter.BilledMs > 0 {
		for _, g := range s.Gaps {
			if g.Reason == market.UnbilledPull || g.Reason == market.UnbilledStart {
				i.Facts.StartMs += g.Ms
			}
		}
	}
	for _, paper := range papers {
		p, _, err := market.OpenPayment(d.cfg.Network, paper.Sealed, s.Terms)
		if err != nil || p.Seq > s.PaidSeq {
			continue // newer than the state that was read
		}
		i.Payments = append(i.Payments, p)
		if p.Method == market.PayBalance {
			i.Facts.FromBalance += p.Amount
		}
	}
	var err error
	i.Facts.Decided, err = d.verdict(ctx, s)
	return i, err
}

// Ledger returns what owners and this rig's owner owe each other.
func (d *Daemon) Ledger(ctx context.Context) (view.Ledger, error) {
	v := view.Ledger{Side: string(market.RoleRig), Entries: []view.LedgerEntry{}}
	if err := d.await(ctx); err != nil {
		return v, err
	}
	list, err := d.facts(ctx, nil)
	if err != nil {
		return v, err
	}
	ledger := market.NewLedger(market.RoleRig, d.cfg.Clock().Wall)
	for _, i := range list {
		if err := ledger.Add(i.Facts); err != nil {
			return v, err
		}
	}
	s := d.settings()
	guaranteed := d.guaranteed()
	for _, a := range ledger.Accounts() {
		e := view.LedgerEntryOf(a)
		t, _ := s.trusted(a.Owner)
		e.Name = market.Printable(t.Name)
		e.Credit = limit(d.owed(account{a.Owner, a.Currency}), d.creditOf(s, a.Owner), a.Currency)
		e.Guaranteed = view.MoneyOf(guaranteed[account{a.Owner, a.Currency}], a.Currency)
		v.Entries = append(v.Entries, e)
	}
	return v, nil
}

// guaranteed returns what is reserved from guarantees for the leases of each account.
func (d *Daemon) guaranteed() map[account]market.Micro {
	d.mu.Lock()
	defer d.mu.Unlock()
	sums := map[account]market.Micro{}
	for a, m := range d.past {
		sums[a] += m.pledged
	}
	for _, l := range d.leases {
		seen := l.seen.Load()
		sums[accountOf(seen.lease)] += pledgeOf(seen)
	}
	return sums
}

// Invoice returns the account with an owner in a currency as a document; an empty currency is that of the rig's prices.
func (d *Daemon) Invoice(ctx context.Context, owner, currency string) (view.Invoice, error) {
	list, key, err := d.factsWith(ctx, owner)
	if err != nil {
		return view.Invoice{}, err
	}
	if currency == "" {
		currency = d.prices(d.settings()).Currency
	}
	var leases []view.Invoiced
	for _, i := range list {
		if i.Facts.Terms.Prices.Currency == currency {
			leases = append(leases, i)
		}
	}
	return view.InvoiceOf(d.self, key, currency, d.cfg.Clock().Wall, leases)
}

// History returns what this rig has lived through with an owner.
func (d *Daemon) History(ctx context.Context, owner string) (view.History, error) {
	list, key, err := d.factsWith(ctx, owner)
	if err != nil {
		return view.History{}, err
	}
	var facts []market.LeaseFacts
	for _, i := range list {
		facts = append(facts, i.Facts)
	}
	return view.HistoryOf(key, market.HistoryOf(facts)), nil
}

// factsWith returns the leases with one owner, named by its key or its name here.
func (d *Daemon) factsWith(ctx context.Context, owner string) ([]view.Invoiced, market.Key, error) {
	if err := d.await(ctx); err != nil {
		return nil, market.Key{}, err
	}
	key, err := d.ownerOf(owner)
	if err != nil {
		return nil, key, err
	}
	list, err := d.facts(ctx, &key)
	return list, key, err
}

// ownerOf finds an owner by its key, or by the name under which it is trusted.
func (d *Daemon) ownerOf(name string) (market.Key, error) {
	for _, t := range d.settings().Trusted {
		if t.Name != "" && t.Name == name {
			return t.Owner, nil
		}
	}
	return market.ParseKey(name)
}

// Evidence returns everything about one lease that was signed, as a file that anyone can judge.
func (d *Daemon) Evidence(ctx context.Context, id string) ([]byte, error) {
	if err := d.await(ctx); err != nil {
		return nil, err
	}
	r, err := d.find(ctx, id)
	if err != nil {
		return nil, err
	}
	lease := r.Lease.ID
	receipts, err := d.cfg.Store.Receipts(ctx, lease, 0)
	if err != nil {
		return nil, err
	}
	e := market.Evidence{Network: d.cfg.Network, Offer: r.Offer, Bid: r.Bid, Lease: r.Sealed, Outcome: r.Outcome}
	if e.Extensions, err = d.cfg.Store.Extensions(ctx, lease); err != nil {
		return nil, err
	}
	for _, k := range receipts {
		e.Receipts = append(e.Receipts, k.Sealed)
	}
	for _, kind := range []market.Kind{
		market.KindReject, market.KindPayment, market.KindNotice, market.KindGuarantee, market.KindDispute, market.KindOutcome,
	} {
		papers, err := d.cfg.Store.Papers(ctx, lease, kind)
		if err != nil {
			return nil, err
		}
		for _, p := range papers {
			if kind == market.KindReject {
				e.Rejects = append(e.Rejects, p.Sealed)
			} else {
				e.Papers = append(e.Papers, p)
			}
		}
	}
	return e.Encode(), nil
}
