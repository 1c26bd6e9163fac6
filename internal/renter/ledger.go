package renter

import (
	"context"
	"fmt"

	"haggle/internal/index"
	"haggle/internal/view"
	"haggle/market"
)

// Ledger tells what this owner and the owners of rigs owe each other. Leases in care are their agents' own.
func (a *Agent) Ledger(ctx context.Context) (view.Ledger, error) {
	ledger := market.NewLedger(market.RoleRenter, a.cfg.Clock().UnixMilli())
	records, err := a.owned(ctx)
	if err != nil {
		return view.Ledger{}, err
	}
	limits := map[account]limit{}
	for _, r := range records {
		if err := ledger.Add(a.facts(ctx, r)); err != nil {
			return view.Ledger{}, fmt.Errorf("ledger: lease %s: %w", r.Lease.Short(), err)
		}
		k := account{r.Terms.RigOwner, r.Terms.Prices.Currency}
		limits[k] = limits[k].with(r)
	}
	v := view.Ledger{Side: string(market.RoleRenter), Entries: []view.LedgerEntry{}}
	for _, entry := range ledger.Accounts() {
		e := view.LedgerEntryOf(entry)
		l := limits[account{entry.Owner, entry.Currency}]
		e.Name = l.rig
		e.Credit.Most, e.Credit.Unlimited = view.MoneyOf(l.credit, entry.Currency), l.unlimited
		e.Guaranteed = view.MoneyOf(l.guaranteed, entry.Currency)
		v.Entries = append(v.Entries, e)
	}
	return v, nil
}

// account names an account: currencies are never added.
type account struct {
	owner    market.Key
	currency string
}

// limit is what the open leases of an owner may owe, and the name of a rig of his.
type limit struct {
	credit     market.Micro
	guaranteed market.Micro // of that: somebody stands for it
	unlimited  bool
	rig        string
}

func (l limit) with(r Record) limit {
	if l.rig == "" {
		l.rig = market.Printable(r.RigName)
	}
	if r.State.Job == market.JobEnded {
		return l
	}
	if r.Terms.Limits.Credit == market.Unlimited {
		l.unlimited = true
	} else {
		l.credit += market.Micro(r.Terms.Limits.Credit)
	}
	if !r.Terms.Guarantee.IsZero() {
		l.guaranteed += max(0, market.Micro(r.Terms.Limits.Credit))
	}
	return l
}

// owned returns the leases of this owner that both signed, as they are now.
func (a *Agent) owned(ctx context.Context) ([]Record, error) {
	records, err := a.cfg.Store.Records(ctx)
	if err != nil {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	var list []Record
	for _, r := range records {
		r, _ = a.latest(r)
		if !r.Lease.IsZero() && r.State.Serves.IsZero() && !r.State.void() {
			list = append(list, r)
		}
	}
	return list, nil
}

// facts returns what is known of a lease's money and end.
func (a *Agent) facts(ctx context.Context, r Record) market.LeaseFacts {
	t := r.terms()
	f := market.LeaseFacts{
		Lease: r.Lease, Terms: t, Job: r.State.Job, Debt: r.debt(), Reason: r.State.Reason, BilledMs: max(r.Head.BilledMs, min(r.State.BilledMs, t.DurationMs)),
		Begun: t.Issued, Used: r.cost(), Signed: r.Head.Total, Paid: r.State.Paid, FromBalance: r.State.Moved,
	}
	if r.State.RunningAt > 0 {
		f.StartMs = max(0, r.State.RunningAt-r.State.SignedAt)
	}
	if r.State.Job == market.JobEnded {
		f.Ended = r.State.Since
	}
	if r.Head.Kind == market.ReceiptFinal {
		f.Used = r.Head.Total
	}
	f.Decided = a.decided(ctx, r)
	return f
}

// decided returns the total that a guarantor's word fixes, the newest by its own clock, or nil. It is never more than the budget.
func (a *Agent) decided(ctx context.Context, r Record) *market.Micro {
	guarantor := a.guarantorOf(r)
	if guarantor.IsZero() {
		return nil
	}
	papers, err := a.cfg.Store.Papers(ctx, r.Lease, market.KindDispute)
	if err != nil {
		return nil
	}
	var total *market.Micro
	var wall int64
	for _, p := range papers {
		d, _, err := market.OpenDispute(a.cfg.Network, p.Sealed, r.Terms, guarantor)
		if err == nil && d.By == market.RoleGuarantor && d.Wall > wall {
			d.Total = min(d.Total, r.terms().Budget)
			total, wall = &d.Total, d.Wall
		}
	}
	return total
}

// Invoice lists what this side has used and paid of an owner's rigs in one currency. An empty currency is the only one there is.
func (a *Agent) Invoice(ctx context.Context, owner, currency string) (view.Invoice, error) {
	key, err := a.whoOwns(owner)
	if err != nil {
		return view.Invoice{}, err
	}
	records, err := a.owned(ctx)
	if err != nil {
		return view.Invoice{}, err
	}
	var list []view.Invoiced
	for _, r := range records {
		if r.Terms.RigOwner != key {
			continue
		}
		switch c := r.Terms.Prices.Currency; {
		case currency == "":
			currency = c
		case currency != c && len(list) > 0 && list[0].Facts.Terms.Prices.Currency != currency:
			return view.Invoice{}, badRequest("there are several currencies: name one")
		}
		if r.Terms.Prices.Currency != currency {
			continue
		}
		payments, err := a.payments(ctx, r)
		if err != nil {
			return view.Invoice{}, err
		}
		list = append(list, view.Invoiced{Facts: a.facts(ctx, r), Head: r.Head, Payments: payments})
	}
	return view.InvoiceOf(key, a.self, currency, a.cfg.Clock().UnixMilli(), list)
}

// payments returns the payments of a lease that its rig has signed, by number.
func (a *Agent) payments(ctx context.Context, r Record) ([]market.Payment, error) {
	papers, err := a.cfg.Store.Papers(ctx, r.Lease, market.KindPayment)
	if err != nil {
		return nil, fmt.Errorf("payments of lease %s: %w", r.Lease.Short(), err)
	}
	var list []market.Payment
	for _, paper := range papers {
		p, _, err := market.OpenPayment(a.cfg.Network, paper.Sealed, r.Terms)
		if err == nil && paper.Seq&forkBit == 0 {
			list = append(list, p)
		}
	}
	return list, nil
}

// History counts what this agent verified of an owner of rigs.
func (a *Agent) History(ctx context.Context, owner string) (view.History, error) {
	key, err := a.whoOwns(owner)
	if err != nil {
		return view.History{}, err
	}
	records, err := a.owned(ctx)
	if err != nil {
		return view.History{}, err
	}
	var facts []market.LeaseFacts
	for _, r := range records {
		if r.Terms.RigOwner == key {
			facts = append(facts, a.facts(ctx, r))
		}
	}
	v := view.HistoryOf(key, market.HistoryOf(facts))
	a.offersNow(func(k *index.Known) {
		if k.Offer.Owner == key && k.Offer.History != nil {
			v.Shown = max(v.Shown, k.Offer.History.Count)
		}
	})
	return v, nil
}

// Guarantee signs that this owner owes a rig's owner what a renter's owner does not pay, and returns the sealed guarantee.
func (a *Agent) Guarantee(_ context.Context, r view.GuaranteeRequest) ([]byte, error) {
	rig, err := market.ParseKey(r.Rig)
	if err != nil {
		return nil, err
	}
	renter, err := market.ParseKey(r.Renter)
	if err != nil {
		return nil, err
	}
	g := market.Guarantee{
		Guarantor: a.self, Rig: rig, Renter: renter, Currency: r.Currency, Amount: market.Micro(r.AmountMicro),
		Issued: a.cfg.Clock().UnixMilli(), Until: r.Until,
	}
	if err := a.draw(&g.Nonce); err != nil {
		return nil, err
	}
	sealed := market.SealGuarantee(a.cfg.Network, a.cfg.Key, g).Encode()
	_, _, err = market.OpenGuarantee(a.cfg.Network, sealed) // it is refused here rather than by the rig
	return sealed, err
}
