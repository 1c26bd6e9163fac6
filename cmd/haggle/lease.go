package main

import (
	"strconv"
	"strings"

	"haggle/internal/cli"
	"haggle/internal/view"
	"haggle/market"
)

// printLease shows one lease with all that is known of its money.
func (p *program) printLease(l view.Lease) error {
	exit := ""
	if l.Exit != nil {
		exit = strconv.FormatInt(*l.Exit, 10)
	}
	connected := "no: the rig is not reached"
	if l.Connected {
		connected = "yes"
	}
	if l.State == string(market.JobEnded) {
		connected = ""
	}
	facts := []string{
		"lease", l.ID, "name", l.Name, "labels", strings.Join(l.Labels, ", "), "rig", l.Rig + "  " + l.RigKey,
		"gpu", cards(l.Slots, l.Model, l.Simulated, l.Isolation), "image", l.Image, "state", state(l), "exit", exit, "connected", connected,
		"time", lasting(l.BilledMs) + " billed of at most " + lasting(l.Duration), "debt", l.Debt,
		"budget", money(l.Budget), "spent", money(l.Spent) + ", as the rig says", "signed", money(l.Signed) + " in #" + strconv.FormatUint(uint64(l.Receipts), 10) + signer(l),
	}
	facts = append(facts, payFacts(l)...)
	facts = append(facts, riskFacts(l)...)
	facts = append(facts, "not billed", unbilled(l.Unbilled), "seen", l.Seen, "idle stop", idle(l.Idle), "runs", place(l.Place), "deputies", strings.Join(l.Deputies, ", "),
		"disk", diskUse(l), "traffic", traffic(l))
	for _, a := range l.Alerts {
		facts = append(facts, "alert", a.Text+", since "+moment(a.At))
	}
	return p.Facts(facts...)
}

func signer(l view.Lease) string {
	if l.SignedBy == "" {
		return ""
	}
	return ", the newest by a deputy"
}

// payFacts says how a lease is paid.
func payFacts(l view.Lease) []string {
	if l.Pay == nil {
		return nil
	}
	method := "ahead by " + l.Pay.Method
	if l.Pay.Method == "" {
		method = "on credit"
	}
	facts := []string{
		"paying", method, "sent", money(l.Pay.Sent),
		"paid", money(l.Pay.Paid) + " in " + strconv.Itoa(l.Pay.Payments) + " signed payments", "left", money(l.Pay.Balance),
	}
	if l.Pay.DryMs > 0 {
		facts = append(facts, "used up", "for "+lasting(l.Pay.DryMs)+": the rig waits for money")
	}
	if l.Pay.Asked != nil {
		facts = append(facts, "asked", asked(*l.Pay.Asked))
	}
	return facts
}

// riskFacts says what can be lost, by the three limits.
func riskFacts(l view.Lease) []string {
	if l.Risk == nil {
		return nil
	}
	r := *l.Risk
	limit := func(t view.TimeLimit) string {
		if t.Unlimited {
			return lasting(t.NowMs) + ", without limit"
		}
		return lasting(t.NowMs) + " of at most " + lasting(t.MostMs)
	}
	credit := money(r.Credit.Now) + " of at most " + money(r.Credit.Most)
	if r.Credit.Unlimited {
		credit = money(r.Credit.Now) + ", without limit"
	}
	return []string{
		"can be lost", money(r.Lose) + ": the most that you can lose now", "unsigned", limit(r.Unsigned), "unattended", limit(r.Unattended), "not paid", credit,
	}
}

// unbilled says which time is not billed, and why.
func unbilled(gaps []view.Unbilled) string {
	parts := make([]string, 0, len(gaps))
	for _, g := range gaps {
		if g.Ms > 0 {
			parts = append(parts, view.WhyUnbilled(g.Reason)+" "+lasting(g.Ms))
		}
	}
	return strings.Join(parts, ", ")
}

func idle(s *market.IdleStop) string {
	if s == nil {
		return ""
	}
	return "below " + strconv.FormatFloat(float64(s.Permille)/perMille, 'f', -1, 64) + " % for " + lasting(s.ForMs)
}

// paidAndLeft are the cells of a lease about what was paid.
func paidAndLeft(l view.Lease) []string {
	if l.Pay == nil {
		return []string{"", ""}
	}
	return []string{l.Pay.Paid.Text, l.Pay.Balance.Text}
}

// atRisk is the cell of a lease about what can be lost.
func atRisk(l view.Lease) string {
	if l.Risk == nil {
		return ""
	}
	return cli.Amount(l.Risk.Lose)
}
