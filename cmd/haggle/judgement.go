package main

import (
	"strconv"
	"strings"

	"haggle/internal/view"
	"haggle/market"
)

// judgement is a market.Judgement for programs.
type judgement struct {
	Verdict  string            `json:"verdict"`
	Code     int               `json:"code"`
	Network  string            `json:"network,omitempty"`
	Lease    string            `json:"lease,omitempty"`
	Rig      string            `json:"rig_key,omitempty"`
	RigOwner string            `json:"rig_owner_key,omitempty"`
	Renter   string            `json:"renter_key,omitempty"`
	Owner    string            `json:"renter_owner_key,omitempty"`
	Deputies []string          `json:"deputy_keys,omitempty"`
	Slots    int               `json:"slots,omitempty"`
	Model    string            `json:"gpu_name,omitempty"`
	Receipts int               `json:"receipts"` // that both signed
	BilledMs int64             `json:"billed_ms"`
	Budget   view.Money        `json:"budget,omitzero"`
	Bill     []billLine        `json:"bill,omitempty"`
	Total    view.Money        `json:"total,omitzero"` // that both signed
	Claim    view.Money        `json:"claim,omitzero"` // of the rig's newest receipt
	Gaps     []market.Unbilled `json:"unbilled,omitempty"`
	Exit     *market.Exit      `json:"exit,omitempty"`
	Outcome  *view.Outcome     `json:"outcome,omitempty"`
	Result   string            `json:"result,omitempty"`
	Accepted bool              `json:"accepted,omitempty"` // the renter's side signed the result

	Payments []payment    `json:"payments,omitempty"`
	Paid     view.Money   `json:"paid,omitzero"`
	Due      view.Money   `json:"due,omitzero"`
	Balance  view.Money   `json:"balance,omitzero"`
	Notices  []notice     `json:"notices,omitempty"`
	Refusals []refusal    `json:"refusals,omitempty"`
	Disputes []dispute    `json:"disputes,omitempty"`
	Promise  *view.Money  `json:"guaranteed,omitempty"`
	Decided  *view.Money  `json:"decided,omitempty"` // by the guarantor
	Redacted []string     `json:"redacted,omitempty"`
	Frauds   []fraudProof `json:"frauds,omitempty"`

	Guilty string         `json:"guilty_key,omitempty"`
	Checks []market.Check `json:"checks"`

	simulated bool
}

type billLine struct {
	What     string     `json:"what"`
	Quantity string     `json:"quantity"`
	Rate     view.Money `json:"rate"`
	Amount   view.Money `json:"amount"`
}

type payment struct {
	Seq       uint32     `json:"seq"`
	Amount    view.Money `json:"amount"`
	Method    string     `json:"method"`
	Reference string     `json:"reference,omitempty"`
	At        int64      `json:"at_ms"`
}

type notice struct {
	Reason string `json:"reason"`
	At     int64  `json:"at_ms"`
	KillAt int64  `json:"kill_ms"`
}

type refusal struct {
	Seq   uint32     `json:"receipt"`
	Code  string     `json:"code"`
	Right view.Money `json:"agreed"`
	Wrong string     `json:"wrong,omitempty"` // with the receipt, where the file holds it
}

type dispute struct {
	By    string     `json:"by"`
	Code  string     `json:"code"`
	Right view.Money `json:"total"`
	Words string     `json:"words,omitempty"`
}

type fraudProof struct {
	Guilty string `json:"guilty_key"`
	Role   string `json:"role"`
	Why    string `json:"why"`
	First  string `json:"first_hash"`
	Second string `json:"second_hash"`
}

func judgementOf(j market.Judgement, verbose bool) judgement {
	v := judgement{
		Verdict: j.Verdict.String(), Code: int(j.Verdict), Network: clean(j.Network), Receipts: j.Receipts, Exit: j.Exit, Checks: j.Checks,
		Gaps: j.Gaps, Redacted: j.Redacted, Accepted: j.Accepted,
	}
	if !verbose {
		v.Checks = collapse(j.Checks)
	}
	if j.Outcome != nil {
		v.Outcome, v.Result = view.OutcomeOf(*j.Outcome), string(j.Outcome.Result)
	}
	for _, f := range j.Frauds {
		v.Frauds = append(v.Frauds, fraudProof{f.Guilty.String(), string(f.Role), f.Why, f.Proof[0].String(), f.Proof[1].String()})
	}
	if !j.Guilty.IsZero() {
		v.Guilty = j.Guilty.String()
	}
	if !j.Lease.IsZero() {
		v.parties(j)
		v.money(j)
		v.words(j)
	}
	return v
}

func (v *judgement) parties(j market.Judgement) {
	t := j.Terms
	v.Lease, v.Rig, v.Renter = j.Lease.String(), t.Rig.String(), t.Renter.String()
	if t.RigOwner != t.Rig {
		v.RigOwner = t.RigOwner.String()
	}
	if t.RenterOwner != t.Renter {
		v.Owner = t.RenterOwner.String()
	}
	for _, d := range t.Deputies {
		v.Deputies = append(v.Deputies, d.String())
	}
	v.Slots, v.simulated = len(t.Slots), t.Simulated
	if v.Slots > 0 {
		v.Model = clean(t.Slots[0].Model)
	}
}

func (v *judgement) money(j market.Judgement) {
	is := func(m market.Micro) view.Money { return view.MoneyOf(m, j.Terms.Prices.Currency) }
	v.BilledMs, v.Budget, v.Total, v.Claim = j.Head.BilledMs, is(j.Terms.Budget), is(j.Head.Total), is(j.Claim)
	v.Paid, v.Due, v.Balance = is(j.Paid), is(j.Due), is(j.Balance)
	lines, err := j.Terms.Prices.Lines(j.Head.Usage)
	if err == nil { // the judge has counted the same numbers
		for _, l := range lines {
			v.Bill = append(v.Bill, billLine{l.What, l.Quantity, is(market.Micro(l.Rate)), is(l.Amount)})
		}
	}
	for _, p := range j.Payments {
		v.Payments = append(v.Payments, payment{p.Seq, is(p.Amount), clean(p.Method), clean(p.Reference), p.Wall})
	}
	if j.Guarantee != nil {
		promise := is(j.Guarantee.Amount)
		v.Promise = &promise
	}
	if j.Decided != nil {
		decided := is(j.Decided.Total)
		v.Decided = &decided
	}
}

// words takes what the parties said to each other.
func (v *judgement) words(j market.Judgement) {
	is := func(m market.Micro) view.Money { return view.MoneyOf(m, j.Terms.Prices.Currency) }
	for _, n := range j.Notices {
		v.Notices = append(v.Notices, notice{clean(string(n.Reason)), n.At, n.KillAt})
	}
	for _, r := range j.Refusals {
		v.Refusals = append(v.Refusals, refusal{r.Seq, clean(string(r.Code)), is(r.Total), r.Wrong})
	}
	for _, d := range j.Disputes {
		v.Disputes = append(v.Disputes, dispute{string(d.By), clean(string(d.Code)), is(d.Total), clean(d.Words)})
	}
}

// collapse counts the checks of receipts that held, in place of listing them.
func collapse(checks []market.Check) []market.Check {
	var list []market.Check
	counts, order := map[string]int{}, []string{}
	for _, c := range checks {
		what, ok := receiptCheck(c.Name)
		if !ok || !c.OK {
			list = append(list, c)
			continue
		}
		if counts[what] == 0 {
			order = append(order, what)
		}
		counts[what]++
	}
	var held []market.Check
	for _, what := range order {
		held = append(held, market.Check{Name: several(counts[what], what), OK: true})
	}
	if n := len(list); n > 0 && !list[n-1].OK { // the failed check is the last
		return append(append(list[:n-1:n-1], held...), list[n-1])
	}
	return append(list, held...)
}

// several words a check that a number of receipts passed.
func several(n int, what string) string {
	noun, check, _ := strings.Cut(what, " ")
	if n == 1 {
		return "1 " + what
	}
	if many, ok := map[string]string{
		"is signed": "are signed", "is signed by the rig": "are signed by the rig", "follows and adds up": "follow and add up", "adds up": "add up",
	}[check]; ok {
		check = many
	}
	return strconv.Itoa(n) + " " + noun + "s " + check
}

// receiptCheck takes the number out of the name of a check of one receipt or payment: "receipt 3 is signed".
func receiptCheck(name string) (what string, ok bool) {
	noun, rest, _ := strings.Cut(name, " ")
	if noun != "receipt" && noun != "payment" {
		return "", false
	}
	number, what, ok := strings.Cut(rest, " ")
	if _, err := strconv.Atoi(number); err != nil {
		return "", false
	}
	return noun + " " + what, ok
}
