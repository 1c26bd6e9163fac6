package renter

import (
	"context"
	"fmt"
	"slices"
	"time"

	"haggle/market"
)

// Spans of budgets over all leases.
const (
	spanDay   = "day"
	spanMonth = "month"
)

// Percents of a budget at which the user is told. Each is told once.
const (
	alertHalf  = 50
	alertMost  = 80
	alertWhole = 100
)

// noLimit is a budget that is none.
const noLimit = market.Micro(market.Unlimited)

// maxAlerts is how many alerts of days and months are kept.
const maxAlerts = 32

// span is a stretch of this machine's calendar.
type span struct {
	name       string
	since, end time.Time
	longest    time.Duration // of such a stretch
}

// spans returns the day and the month of a moment.
func spans(now time.Time) [2]span {
	y, m, d := now.Date()
	day := time.Date(y, m, d, 0, 0, 0, 0, now.Location())
	month := time.Date(y, m, 1, 0, 0, 0, 0, now.Location())
	return [2]span{
		{spanDay, day, day.AddDate(0, 0, 1), 24 * time.Hour},
		{spanMonth, month, month.AddDate(0, 1, 0), 31 * 24 * time.Hour},
	}
}

// sent is the money that is with the rig's owner for the lease: what this side has sent, and what it had left there before.
func (s State) sent() market.Micro { return s.Sent + s.Moved }

// known is the money that is with the rig's owner for the lease as far as this side knows: the rig signed for it, or it was sent.
func (s State) known() market.Micro { return max(s.Paid, s.sent()) }

// cost is what a lease costs so far: what both signed, or what the rig says within the budget, whichever is more.
func (r Record) cost() market.Micro { return max(r.Head.Total, min(r.State.Total, r.terms().Budget)) }

// outlay is what this side has spent on a lease: what it sent, or signed for, whichever is more. Money that was left from another
// lease was spent there. A deputy spends what it sends itself.
func (r Record) outlay() market.Micro {
	if !r.State.Serves.IsZero() {
		return r.State.Sent
	}
	return max(r.State.Sent, r.Head.Total-r.State.Moved)
}

// booked notes by a change of a record on which day and in which month something was spent, and of which part of the lease's budget
// the user is told.
func (a *Agent) booked(before Record, next *Record) {
	now := a.cfg.Clock()
	if next.outlay() > before.outlay() {
		s := spans(now)
		if day := s[0].since.UnixMilli(); next.State.Day != day {
			next.State.Day, next.State.DayBase = day, before.outlay()
		}
		if month := s[1].since.UnixMilli(); next.State.Month != month {
			next.State.Month, next.State.MonthBase = month, before.outlay()
		}
	}
	if next.Lease.IsZero() || next.Head.Total == before.Head.Total {
		return
	}
	if p := reached(next.Head.Total, next.terms().Budget); p > next.State.Alerted {
		next.State.Alerted = p
		next.State.Alerts = append(slices.Clone(next.State.Alerts), Alerted{Percent: p, At: now.UnixMilli()})
	}
}

// reached returns the highest percent of a budget of which the user is told, or 0. What is left of a whole budget is less than the
// price of a moment.
func reached(used, budget market.Micro) int {
	for budget > 1e15 || used > 1e15 { // beyond it the products would overflow
		used, budget = used/1000, budget/1000
	}
	if budget <= 0 {
		return 0
	}
	for _, p := range []int{alertWhole, alertMost, alertHalf} {
		if used*1000+budget*5 >= market.Micro(p*10)*budget {
			return p
		}
	}
	return 0
}

// spentIn returns what was spent on a lease since the beginning of a span.
func (r Record) spentIn(s span) market.Micro {
	switch since := s.since.UnixMilli(); {
	case s.name == spanDay && r.State.Day == since:
		return r.outlay() - r.State.DayBase
	case s.name == spanMonth && r.State.Month == since:
		return r.outlay() - r.State.MonthBase
	}
	return 0
}

// onTheWay is the money of a lease that a payment program was told to send, or will be, and that is not known to have left.
func (s State) onTheWay() market.Micro {
	if p := s.Paying; p != nil {
		switch p.State {
		case payAsked, payPending, payWaiting:
			return p.Amount
		}
	}
	return 0
}

// need is what a lease, or a bid that may become one, can still spend.
type need struct {
	prices market.Prices
	slots  int
	diskMB int64
	left   market.Micro // of its budget
}

// within returns what can be spent in a time at most.
func (n need) within(d time.Duration) market.Micro {
	if n.prices.In > 0 || n.prices.Out > 0 {
		return n.left // nobody knows the traffic
	}
	bill, err := n.prices.Bill(market.UsageAt(max(0, d.Milliseconds()), n.slots, n.diskMB, 0, 0))
	if err != nil {
		return n.left
	}
	return min(n.left, bill.Total)
}

// claim is the most that is spent in the span of a moment, or in any later one like it, where so much is spent already.
func (n need) claim(s span, now time.Time, spent market.Micro) market.Micro {
	return max(spent+n.within(s.end.Sub(now)), n.within(s.longest))
}

// needOf returns what a record can still spend.
func (a *Agent) needOf(r Record) need {
	if r.State.void() || r.State.Job == market.JobEnded || !r.State.Serves.IsZero() {
		return need{left: r.State.onTheWay()} // with no prices it costs nothing more
	}
	if r.Lease.IsZero() {
		return a.needOfBid(r.SealedBid)
	}
	t := r.terms()
	return need{t.Prices, len(t.Slots), t.Resources.DiskMB, max(0, t.Budget-r.outlay())}
}

func (a *Agent) needOfBid(sealed []byte) need {
	b, _, err := market.OpenBid(a.cfg.Network, sealed)
	if err != nil {
		return need{} // our own bytes: the disk is damaged
	}
	return need{b.Prices, int(b.Count), max(b.Resources.DiskMB, market.DefaultDiskMB), b.Budget}
}

// currencyOf returns the currency of a record's money.
func (a *Agent) currencyOf(r Record) string {
	if !r.Lease.IsZero() {
		return r.Terms.Prices.Currency
	}
	return a.needOfBid(r.SealedBid).prices.Currency
}

// budgets returns the budgets that hold, one a currency: the user's, and the configured ones where the user has set none.
func (a *Agent) budgets(set Settings) []Budget {
	list := slices.Clone(set.Budgets)
	for _, b := range a.cfg.Budgets {
		if !slices.ContainsFunc(list, func(held Budget) bool { return held.Currency == b.Currency }) {
			list = append(list, b)
		}
	}
	return list
}

// capsIn returns the budgets of a currency, noLimit where there is none.
func (a *Agent) capsIn(set Settings, currency string) [2]market.Micro {
	for _, b := range a.budgets(set) {
		if b.Currency == currency {
			return [2]market.Micro{b.Day, b.Month}
		}
	}
	return [2]market.Micro{noLimit, noLimit}
}

// caps is capsIn by the user's present choices.
func (a *Agent) caps(ctx context.Context, currency string) ([2]market.Micro, error) {
	set, err := a.settings(ctx)
	if err != nil {
		return [2]market.Micro{}, err
	}
	return a.capsIn(set, currency), nil
}

// spending is what was spent in the day and the month of now, and what may be, over all leases in a currency.
type spending struct {
	spent   [2]market.Micro // it has left, or is on its way
	claimed [2]market.Micro // spent, and what the open leases can still spend
}

func (a *Agent) spendingOf(ctx context.Context, currency string) (spending, error) {
	var sum spending
	records, err := a.cfg.Store.Records(ctx)
	if err != nil {
		return sum, fmt.Errorf("weigh the budgets: %w", err)
	}
	now := a.cfg.Clock()
	for _, r := range records {
		r, _ = a.latest(r)
		if a.currencyOf(r) != currency {
			continue
		}
		n := a.needOf(r)
		for i, s := range spans(now) {
			spent := r.spentIn(s) + r.State.onTheWay()
			sum.spent[i] += spent
			sum.claimed[i] += n.claim(s, now, spent)
		}
	}
	return sum, nil
}

// afford reports whether a bid can be paid whatever it comes to: what all open leases can spend in a day, or in a month, stays within
// the budgets. The error has code CodeOverCap. The caller holds a.spending, and has not stored the bid yet.
func (a *Agent) afford(ctx context.Context, r Record) error {
	n := a.needOfBid(r.SealedBid)
	caps, err := a.caps(ctx, n.prices.Currency)
	if err != nil || caps == [2]market.Micro{noLimit, noLimit} {
		return err
	}
	sum, err := a.spendingOf(ctx, n.prices.Currency)
	if err != nil {
		return err
	}
	now := a.cfg.Clock()
	for i, s := range spans(now) {
		if want := n.claim(s, now, 0); caps[i] != noLimit && sum.claimed[i]+want > caps[i] {
			return overCap(s, want, caps[i]-sum.claimed[i], caps[i])
		}
	}
	return nil
}

// room returns what may be sent now within the budgets, noLimit where there are none, and with code CodeOverCap why an
// amount may not. The caller holds a.spending.
func (a *Agent) room(ctx context.Context, currency string, amount market.Micro) (left market.Micro, over, err error) {
	caps, err := a.caps(ctx, currency)
	if err != nil || caps == [2]market.Micro{noLimit, noLimit} {
		return noLimit, nil, err
	}
	sum, err := a.spendingOf(ctx, currency)
	if err != nil {
		return 0, nil, err
	}
	left = noLimit
	for i, s := range spans(a.cfg.Clock()) {
		if caps[i] == noLimit {
			continue
		}
		rest := max(0, caps[i]-sum.spent[i])
		if left == noLimit || rest < left {
			left = rest
		}
		if amount > rest && over == nil {
			over = overCap(s, amount, rest, caps[i])
		}
	}
	return left, over, nil
}

func overCap(s span, amount, left, limit market.Micro) error {
	return market.NewError(market.CodeOverCap, "amount", amount.String(), "left", max(0, left).String(), "span", s.name, "cap", limit.String())
}
