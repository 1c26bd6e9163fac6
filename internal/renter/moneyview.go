package renter

import (
	"strings"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// moneyView shows what a lease costs beyond its bill: what can be lost, how it is paid, what this side saw, and who signed.
func (a *Agent) moneyView(r Record, v *view.Lease) {
	v.Alerts = alertViews(r)
	if r.Lease.IsZero() {
		return
	}
	t := r.terms()
	v.Idle, v.Unbilled, v.Place = t.Idle, r.Head.Gaps, t.Residency
	for _, d := range t.Deputies {
		v.Deputies = append(v.Deputies, d.String())
	}
	if r.State.ByDeputy {
		v.SignedBy = "deputy"
	}
	if r.State.void() {
		return
	}
	v.Risk, v.Pay, v.Seen = a.riskView(r, t), a.payView(r, t), a.seenView(r)
}

// riskView shows what this side can lose: money that is with the rig and that nothing was had for, by its own count.
func (a *Agent) riskView(r Record, t market.Terms) *view.Risk {
	money := func(m market.Micro) view.Money { return view.MoneyOf(m, t.Prices.Currency) }
	risk := market.RiskOfRenter(max(r.State.Sent, r.State.Paid), a.used(r, t), r.cost())
	unsigned := max(0, r.State.BilledMs-r.Head.BilledMs)
	v := view.Risk{
		Unsigned:   view.TimeLimit{MostMs: t.Limits.UnsignedMs},
		Unattended: view.TimeLimit{MostMs: max(0, t.Limits.UnattendedMs), Unlimited: t.Limits.UnattendedMs == market.Unlimited},
		Credit: view.MoneyLimit{
			Now: money(risk.Unpaid), Most: money(max(0, market.Micro(t.Limits.Credit))), Unlimited: t.Limits.Credit == market.Unlimited,
		},
		Lose: money(risk.Lose),
	}
	if l := a.opened(r.Bid); l != nil && l.connection() > 0 {
		v.Unsigned.NowMs = unsigned
	} else {
		v.Unattended.NowMs = unsigned
	}
	if r.State.Job == market.JobEnded {
		v.Unsigned.NowMs, v.Unattended.NowMs = 0, 0
	}
	return &v
}

// used is what was used by this side's own count: what it signed, and of the rest what the rig says and its measure allows.
func (a *Agent) used(r Record, t market.Terms) market.Micro {
	ms := min(r.State.BilledMs, t.DurationMs)
	if seen := a.seen(r).RanMs; seen != market.Unlimited {
		ms = min(ms, seen)
	}
	bill, err := t.Prices.Bill(t.UsedBy(max(ms, r.Head.BilledMs), r.Head.KeptMs, r.Head.Usage.InBytes, r.Head.Usage.OutBytes))
	if err != nil {
		return r.Head.Total
	}
	return max(r.Head.Total, min(bill.Total, t.Budget))
}

func (a *Agent) payView(r Record, t market.Terms) *view.Pay {
	if t.Pay == "" && r.State.PaidSeq == 0 && r.State.Paying == nil {
		return nil
	}
	money := func(m market.Micro) view.Money { return view.MoneyOf(m, t.Prices.Currency) }
	v := view.Pay{
		Method: t.Pay, Paid: money(r.State.Paid), Sent: money(r.State.Sent), DryMs: r.State.DryMs, Payments: int(r.State.PaidSeq),
		Balance: money(max(0, r.State.Paid-max(r.Head.Total, min(r.State.Total, r.State.Paid)))),
	}
	p := r.State.Paying
	if l := a.opened(r.Bid); p == nil && l != nil && r.State.Job != market.JobEnded {
		p = l.overasked()
	}
	if p == nil {
		return &v
	}
	v.Asked = &view.PayAsked{
		Slice: p.Slice.Seq, Amount: money(p.Slice.Amount), ForMs: p.Slice.ForMs, AskedAt: p.Slice.AskedAt, State: p.State,
		Text: oneLine(p.Words), QR: market.Printable(p.QR), Why: market.Printable(p.Why), Deadline: a.payBy(r, *p),
	}
	if o, _, err := market.OpenOffer(a.cfg.Network, r.Offer); err == nil {
		settles, _ := o.Settles(p.Method)
		v.Asked.Settles = string(settles)
	}
	return &v
}

// oneLine writes what a program says in one line, fit to be shown.
func oneLine(text string) string { return market.Printable(strings.Join(strings.Fields(text), " ")) }

// payBy returns the wall time at which a lease ends without the money, by what the rig says; 0 where nobody knows.
func (a *Agent) payBy(r Record, p Paying) int64 {
	switch {
	case r.State.Job == market.JobPreparing && !r.funded():
		return max(p.Slice.AskedAt, r.State.Since) + market.FirstPayMs
	case r.State.Job == market.JobRunning && r.State.DryMs > 0:
		return r.State.Seen + max(0, market.DryGraceMs-r.State.DryMs)
	case r.State.Job == market.JobPaused && r.State.DryMs > 0:
		return r.State.Since + market.RetentionMs
	}
	return 0
}

// seenView says what this side measured of the running time.
func (a *Agent) seenView(r Record) string {
	m := r.State.Measure
	if m.IsZero() {
		return "nothing was measured: all is believed"
	}
	seen := a.seen(r).RanMs
	if r.State.Job == market.JobEnded {
		seen = m.Seen(market.Instant{Mono: m.At, Wall: m.Wall}).RanMs // as it was at the rig's last word
	}
	if seen == market.Unlimited {
		return "this machine's clock does not know: all is believed"
	}
	text := "at most " + (time.Duration(seen) * time.Millisecond).Round(time.Second).String()
	switch {
	case r.State.Job == market.JobEnded:
		return text
	case m.GapMs > 0:
		text += ", of which " + (time.Duration(m.GapMs) * time.Millisecond).Round(time.Second).String() + " were not watched"
	case m.Missed > 0:
		text += ", and it does not answer now"
	}
	return text
}
