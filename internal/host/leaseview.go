package host

import (
	"context"

	"haggle/internal/view"
	"haggle/market"
)

// Leases returns the leases whose job has not ended, or all there ever were, oldest first.
func (d *Daemon) Leases(ctx context.Context, all bool) ([]view.Lease, error) {
	if err := d.await(ctx); err != nil {
		return nil, err
	}
	records, err := d.cfg.Store.Records(ctx, all)
	if err != nil {
		return nil, err
	}
	views := []view.Lease{}
	for _, r := range records {
		if v := d.leaseNow(r); all || v.State != string(market.JobEnded) {
			views = append(views, v)
		}
	}
	return views, nil
}

// leaseNow is a lease as it is now, not only as it was stored.
func (d *Daemon) leaseNow(r Record) view.Lease {
	var seen glance
	if l := d.lease(r.Lease.ID); l != nil {
		seen = *l.seen.Load()
		r.Lease = seen.lease
	}
	v := d.leaseView(r)
	v.Connected, v.SignedBy = seen.linked, seen.signer
	d.moneyView(&v, r.Lease, seen.asked)
	return v
}

func (d *Daemon) leaseView(r Record) view.Lease {
	s := r.Lease
	t := s.Current()
	v := view.Lease{
		ID: s.ID.String(), Bid: t.Bid.String(), Rig: d.cfg.Name, RigKey: d.self.String(), Renter: t.Renter.String(),
		Model: t.Slots[0].Model, Slots: len(t.Slots), Image: market.Printable(r.Image.Name), Args: []string{},
		State: string(s.Job), Reason: string(s.Reason), Debt: string(s.Debt),
		Price:  view.MoneyOf(market.Micro(t.Prices.Slot), t.Prices.Currency),
		Budget: view.MoneyOf(t.Budget, t.Prices.Currency), Spent: view.MoneyOf(s.Total(), t.Prices.Currency),
		Signed: view.MoneyOf(s.Head.Total, t.Prices.Currency), BilledMs: s.Meter.BilledMs, Duration: t.DurationMs,
		Receipts: s.Head.Seq, Created: t.Issued, Since: s.Since, Simulated: t.Simulated,
		DiskMB: t.Resources.DiskMB, Egress: t.Egress, Attempt: int(s.Attempt), KeptMs: s.Meter.KeptMs, In: s.Meter.In, Out: s.Meter.Out,
	}
	if s.Job == market.JobStopping {
		v.EndsBy = s.KillAt
	}
	if s.Code != "" {
		why := view.ProblemOf(market.NewError(s.Code))
		v.Error = &why
	}
	if o, said := s.Outcome(); said {
		v.Outcome = view.OutcomeOf(o)
	}
	for _, a := range r.Job.Args {
		v.Args = append(v.Args, market.Printable(a))
	}
	if s.Exit != nil {
		v.Exit = &s.Exit.Code
	}
	return v
}

// moneyView adds what a lease's money is, and what the rig can lose by it.
func (d *Daemon) moneyView(v *view.Lease, s market.Lease, asked *view.PayAsked) {
	t := s.Current()
	money := func(m market.Micro) view.Money { return view.MoneyOf(m, t.Prices.Currency) }
	v.Idle, v.Unbilled, v.Place = t.Idle, s.Gaps, t.Residency
	for _, k := range t.Deputies {
		v.Deputies = append(v.Deputies, k.String())
	}
	r := s.RiskOfRig()
	v.Risk = &view.Risk{
		Unsigned: view.TimeLimit{NowMs: r.UnsignedMs, MostMs: t.Limits.UnsignedMs},
		Unattended: view.TimeLimit{
			NowMs: r.UnattendedMs, MostMs: max(0, t.Limits.UnattendedMs), Unlimited: t.Limits.UnattendedMs == market.Unlimited,
		},
		Credit: limit(r.Unpaid, t.Limits.Credit, t.Prices.Currency), Lose: money(r.Lose),
	}
	if t.Pay == "" && s.Paid == 0 {
		return
	}
	v.Pay = &view.Pay{
		Method: t.Pay, Paid: money(s.Paid), Sent: money(s.Paid), Balance: money(max(0, s.Paid-s.Total())), Asked: asked, DryMs: s.DryMs,
		Payments: int(s.PaidSeq),
	}
}
