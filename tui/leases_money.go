package tui

import (
	"strconv"
	"strings"

	"haggle/internal/view"
	"haggle/market"
)

// stakes tells what a lease's money stands at, the most important first: what is missing, what can be lost, what is paid.
func (l *leases) stakes(one view.Lease, width int, tall bool) []string {
	var out []string
	put := func(color paint, text string) {
		lines := wrap(text, max(1, width))
		for _, t := range lines[:min(len(lines), 2)] {
			out = append(out, color.on(t))
		}
	}
	now := l.Clock().UnixMilli()
	if p := one.Pay; p != nil && one.State != stateRefused {
		if text, urgent := asking(p, l.dryFor(one), now); text != "" {
			color := l.look.faint
			if urgent {
				color, text = l.look.warn, l.look.sign.warn+" "+text
			}
			put(color, text)
		}
	}
	risk := l.risk(one, width, tall)
	out = append(out, risk[:min(len(risk), 1)]...)
	if p := one.Pay; p != nil && one.State != stateRefused {
		put(paint{}, paidSoFar(p))
	} else if owed := owing(one); owed > 0 && !open(one) {
		put(l.look.warn, l.look.sign.warn+" you owe "+owed.String()+" "+one.Spent.Currency+" for it; p pays")
	}
	if n := len(one.Alerts); n > 0 && open(one) {
		put(l.look.warn, l.look.sign.warn+" "+one.Alerts[n-1].Text)
	}
	out = append(out, risk[min(len(risk), 1):]...)
	if text := unbilled(one.Unbilled); text != "" {
		put(l.look.faint, "not billed: "+text)
	}
	put(l.look.faint, l.standIns(one))
	return out
}

// dryFor returns how long a job runs without money by now. The rig's word of it is a while old.
func (l *leases) dryFor(one view.Lease) int64 {
	if one.Pay.DryMs <= 0 || one.State != string(market.JobRunning) {
		return 0
	}
	if d := l.dry[one.Bid]; d.ms == one.Pay.DryMs {
		return d.ms + max(0, l.Clock().UnixMilli()-d.at)
	}
	return one.Pay.DryMs
}

// asking says what money a rig waits for; urgent where the job ends without it or a person must act.
func asking(p *view.Pay, dry, now int64) (text string, urgent bool) {
	a := p.Asked
	left := ""
	if dry > 0 {
		left = "unpaid: ends in " + strconv.FormatInt(max(0, market.DryGraceMs-dry)/1000, 10) + " s"
	}
	if a == nil {
		return left, left != ""
	}
	what := money(a.Amount)
	if a.ForMs > 0 {
		what += " for " + lasting(a.ForMs)
	}
	switch a.State {
	case view.SliceWaiting:
		text, urgent = "waiting for you: pay "+what+"; p shows how", true
	case view.SliceHeld:
		text, urgent = what+" is held back: "+orReason(a.Why)+"; p tries again", true
	case view.SliceFailed:
		text, urgent = "paying "+what+" failed: "+orReason(a.Why)+"; p tries again", true
	case view.SliceSent:
		text = what + " is sent; the rig has not signed for it yet"
	default:
		text = "the next slice, " + what + ", is being paid"
		if p.Method != "" {
			text += " by " + p.Method
		}
	}
	switch {
	case left != "":
		return left + "; " + text, true
	case a.Deadline > 0:
		return text + "; the lease ends in " + lasting(a.Deadline-now) + " without it", true
	}
	return text, urgent
}

func orReason(why string) string {
	if why == "" {
		return "nobody says why"
	}
	return why
}

// paidSoFar says what is paid for a lease, and what of it is left.
func paidSoFar(p *view.Pay) string {
	text := "on credit, paid so far " + money(p.Paid)
	switch {
	case p.Method != "" && p.Paid.Micro == 0:
		text = "to be paid ahead by " + p.Method + ", nothing so far"
	case p.Method != "":
		text = "paid ahead by " + p.Method + " " + money(p.Paid) + ", of which " + p.Balance.Text + " is left"
	}
	if p.Payments > 1 {
		text += ", " + plural(p.Payments, "payment", "payments")
	}
	if way := p.Sent.Micro - p.Paid.Micro; way > 0 {
		text += ", " + market.Micro(way).String() + " on its way"
	}
	return text
}

// risk says what the user can lose now, and how its three limits stand: a line each where there is room.
func (l *leases) risk(one view.Lease, width int, tall bool) []string {
	r := one.Risk
	if r == nil || !open(one) && r.Lose.Micro == 0 {
		return nil
	}
	most := "most you can lose now " + money(r.Lose)
	unsigned, away, credit := timeLimit(r.Unsigned), timeLimit(r.Unattended), moneyLimit(r.Credit)
	if limits := clean("unsigned " + unsigned + ", away " + away + ", credit " + credit); !tall {
		if span(most)+2+span(limits) > width {
			return []string{l.look.strong.on(clean(most)), l.look.faint.on("limits: " + limits)}
		}
		return []string{l.look.strong.on(clean(most)) + "  " + l.look.faint.on(limits)}
	}
	row := func(label, value, what string) string {
		return fit("  "+label, 14, false, l.look.sign.more) + fit(value, 24, false, l.look.sign.more) + l.look.faint.on(what)
	}
	return []string{
		l.look.strong.on(clean(most)),
		row("unsigned", unsigned, "running time that you have not signed yet, while you answer"),
		row("away", away, "running time while this machine is off"),
		row("credit", credit, "used and not paid"),
	}
}

func timeLimit(t view.TimeLimit) string {
	if t.Unlimited {
		return lasting(t.NowMs) + ", no limit"
	}
	return lasting(t.NowMs) + " of " + lasting(t.MostMs)
}

func moneyLimit(m view.MoneyLimit) string {
	switch {
	case m.Unlimited:
		return m.Now.Text + ", no limit"
	case m.Most.Micro == 0 && m.Now.Micro == 0:
		return "none"
	}
	return m.Now.Text + " of " + money(m.Most)
}

// unbilled says which time is not billed, and why.
func unbilled(list []view.Unbilled) string {
	var parts []string
	for _, u := range list {
		if u.Ms >= 1000 {
			parts = append(parts, lasting(u.Ms)+" "+view.WhyUnbilled(u.Reason))
		}
	}
	return strings.Join(parts, ", ")
}

// standIns says who acts for the user, and what ends the job by itself.
func (l *leases) standIns(one view.Lease) string {
	var parts []string
	key := func(k string) string { return middle(k, 16, l.look.sign.more) }
	if one.Serves != "" {
		parts = append(parts, "this agent is its deputy, for "+key(one.Serves))
	}
	if n := len(one.Deputies); n == 1 {
		parts = append(parts, "deputy "+key(one.Deputies[0]))
	} else if n > 1 {
		parts = append(parts, strconv.Itoa(n)+" deputies")
	}
	if one.SignedBy != "" {
		parts = append(parts, "the newest receipt was signed by a "+clean(one.SignedBy))
	}
	if s := one.Idle; s != nil {
		parts = append(parts, "ends when no card is used above "+percent(s.Permille)+" % for "+lasting(s.ForMs))
	}
	return strings.Join(parts, "; ")
}

// percent writes permille as percent, with a digit behind the point only where there is one.
func percent(permille int64) string {
	return strings.TrimSuffix(strconv.FormatInt(permille/10, 10)+"."+strconv.FormatInt(permille%10, 10), ".0")
}
