package renter

import (
	"haggle/internal/view"
	"haggle/market"
)

// States that a lease has for people beside those of its job.
const (
	stateBidding = "bidding"
	stateRefused = "refused"
)

// leaseView shows a record. What the rig says and what both signed stay apart in it.
func (a *Agent) leaseView(r Record, connected bool) view.Lease {
	v := view.Lease{
		Bid: r.Bid.String(), Rig: market.Printable(r.RigName), Renter: a.renterOf(r).String(), Model: market.Printable(r.Model),
		Image: market.Printable(r.Image), Args: []string{}, State: string(r.State.Job), Reason: market.Printable(string(r.State.Reason)),
		Debt: string(r.debt()), BilledMs: max(r.State.BilledMs, r.Head.BilledMs), Receipts: r.Head.Seq,
		Created: r.State.Created, Since: r.State.Since, Connected: connected,
		Isolation: market.Printable(r.State.Isolation), Cards: r.Cards,
		In: max(r.State.In, r.Head.Usage.InBytes), Out: max(r.State.Out, r.Head.Usage.OutBytes),
		DiskUsed: r.State.DiskUsed, DiskFull: r.State.DiskFull, Outcome: a.outcomeView(r),
	}
	if r.State.Job == market.JobStopping {
		v.EndsBy = r.State.KillAt
	}
	a.insideView(r, &v)
	if !r.State.Serves.IsZero() {
		v.Serves = r.State.Serves.String()
	}
	if r.State.Code != "" {
		p := view.ProblemOf(market.NewError(r.State.Code))
		v.Error = &p
	}
	for _, arg := range r.Job.Args {
		v.Args = append(v.Args, market.Printable(arg))
	}
	if r.State.Exit != nil {
		code := r.State.Exit.Code
		v.Exit = &code
	}
	for _, why := range []*market.Error{r.State.Refused, r.Inside.Failed} {
		if why != nil {
			p := view.ProblemOf(why)
			v.Error = &p
		}
	}
	prices := a.agreed(r, &v)
	v.Price = view.MoneyOf(market.Micro(prices.Slot), prices.Currency)
	v.Spent = view.MoneyOf(max(r.State.Total, r.Head.Total), prices.Currency)
	v.Signed = view.MoneyOf(r.Head.Total, prices.Currency)
	a.moneyView(r, &v)
	switch {
	case r.Lease.IsZero() && r.State.Refused != nil:
		v.State = stateRefused
	case r.Lease.IsZero():
		v.State = stateBidding
	case r.vanished(a.cfg.Clock().UnixMilli()) && r.State.Job != market.JobEnded:
		v.State, v.Reason = string(market.JobEnded), string(market.ReasonLost)
	}
	return v
}

// renterOf returns whose lease a record is: a deputy's is its agent's.
func (a *Agent) renterOf(r Record) market.Key {
	if r.Lease.IsZero() {
		return a.self
	}
	return r.Terms.Renter
}

// insideView shows what is done inside a lease.
func (a *Agent) insideView(r Record, v *view.Lease) {
	in := r.Inside
	v.Name, v.Labels, v.Attempt, v.KeptMs = in.Name, in.Labels, int(r.State.Attempt), max(r.State.KeptMs, r.Head.KeptMs)
	for _, p := range in.Ports {
		v.Ports = append(v.Ports, view.Port(p))
	}
	for _, c := range in.Collects {
		v.Collects = append(v.Collects, view.Collected{
			Remote: market.Printable(c.Remote), Local: market.Printable(c.Local), Done: c.Over || c.After > r.State.Attempt, Error: c.Error,
			Files: c.Files, Bytes: c.Bytes,
		})
	}
	v.Checkpoints = checkpointViews(in)
	if in.Resumed != nil {
		v.Resumed = in.Resumed.Lease.String()
	}
	if l := a.opened(r.Bid); l != nil {
		v.Uploading = l.progress()
	}
}

// agreed fills in what the terms say, or the bid where there are none yet, and returns the prices.
func (a *Agent) agreed(r Record, v *view.Lease) market.Prices {
	if !r.Lease.IsZero() {
		t := r.terms()
		v.ID, v.RigKey, v.Slots, v.Duration, v.Simulated = r.Lease.String(), t.Rig.String(), len(t.Slots), t.DurationMs, t.Simulated
		v.Budget = view.MoneyOf(t.Budget, t.Prices.Currency)
		v.DiskMB, v.Egress = t.Resources.DiskMB, t.Egress
		return t.Prices
	}
	b, _, err := market.OpenBid(a.cfg.Network, r.SealedBid)
	if err != nil {
		return market.Prices{} // our own bytes: the disk is damaged, and the list must still be shown
	}
	v.RigKey, v.Slots, v.Duration = b.Rig.String(), int(b.Count), b.DurationMs
	v.Budget = view.MoneyOf(b.Budget, b.Prices.Currency)
	if o, _, err := market.OpenOffer(a.cfg.Network, r.Offer); err == nil {
		v.Simulated = o.Simulated
	}
	return b.Prices
}
