package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"haggle/internal/cli"
	"haggle/internal/view"
	"haggle/market"
)

func (p *program) verifyCommand() *cobra.Command {
	var asJSON, verbose bool
	c := p.action(&cobra.Command{
		Use:   "verify FILE",
		Short: "check a bill offline",
		Long: "Check a file of evidence from its bytes alone: every signature, every link, every line of the bill. It needs no agent\n" +
			"and no network. Exit codes: 0 both signed everything, 1 valid but something waits for a signature, 2 a check failed,\n" +
			"3 one side signed two statements that exclude each other, 125 the file could not be read.",
		Example:     "  haggle verify lease-3f9a12c4.evidence\n  haggle verify -v --json bill.evidence",
		Args:        cli.Words(1, 1, "FILE"),
		Annotations: map[string]string{cli.OwnFailure: strconv.Itoa(cli.ExitOwn)},
	}, func(_ context.Context, args []string) error {
		data, err := p.readEvidence(args[0])
		if err != nil {
			return err
		}
		j := market.Judge(data)
		if asJSON {
			err = p.JSON(judgementOf(j, verbose))
		} else {
			err = p.printJudgement(j, verbose)
		}
		if err != nil {
			return err
		}
		return cli.Exit(int(j.Verdict))
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "list the checks of every receipt")
	return c
}

// readEvidence reads a file, or stdin for "-", of bounded size.
func (p *program) readEvidence(path string) ([]byte, error) {
	from := p.in
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("read the evidence: %w", err)
		}
		defer f.Close()
		from = f
	}
	data, err := io.ReadAll(io.LimitReader(from, market.MaxEvidence+1))
	if err != nil {
		return nil, fmt.Errorf("read the evidence: %w", err)
	}
	return data, nil // one byte too many is for Judge to find
}

// judgement is a market.Judgement for programs.
type judgement struct {
	Verdict  string         `json:"verdict"`
	Code     int            `json:"code"`
	Network  string         `json:"network,omitempty"`
	Lease    string         `json:"lease,omitempty"`
	Rig      string         `json:"rig_key,omitempty"`
	Renter   string         `json:"renter_key,omitempty"`
	Slots    int            `json:"slots,omitempty"`
	Model    string         `json:"gpu_name,omitempty"`
	Receipts int            `json:"receipts"` // that both signed
	BilledMs int64          `json:"billed_ms"`
	Total    view.Money     `json:"total,omitzero"`
	Exit     *market.Exit   `json:"exit,omitempty"`
	Outcome  *view.Outcome  `json:"outcome,omitempty"`
	Guilty   string         `json:"guilty_key,omitempty"`
	Checks   []market.Check `json:"checks"`

	simulated bool
}

func judgementOf(j market.Judgement, verbose bool) judgement {
	v := judgement{
		Verdict: j.Verdict.String(), Code: int(j.Verdict), Network: clean(j.Network), Receipts: j.Receipts, Exit: j.Exit, Checks: j.Checks,
	}
	if !verbose {
		v.Checks = collapse(j.Checks)
	}
	if j.Outcome != nil {
		v.Outcome = view.OutcomeOf(*j.Outcome)
	}
	if !j.Guilty.IsZero() {
		v.Guilty = j.Guilty.String()
	}
	if j.Lease.IsZero() {
		return v
	}
	v.Lease, v.Rig, v.Renter = j.Lease.String(), j.Terms.Rig.String(), j.Terms.Renter.String()
	v.BilledMs, v.Total = j.Head.BilledMs, view.MoneyOf(j.Head.Total, j.Terms.Prices.Currency)
	v.Slots, v.simulated = len(j.Terms.Slots), j.Terms.Simulated
	if v.Slots > 0 {
		v.Model = clean(j.Terms.Slots[0].Model)
	}
	return v
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
	if n == 1 {
		return "1 receipt " + what
	}
	if many, ok := map[string]string{"is signed": "are signed", "follows and adds up": "follow and add up"}[what]; ok {
		what = many
	}
	return strconv.Itoa(n) + " receipts " + what
}

// receiptCheck splits the name of a check of one receipt: "receipt 3 is signed".
func receiptCheck(name string) (what string, ok bool) {
	rest, ok := strings.CutPrefix(name, "receipt ")
	if !ok {
		return "", false
	}
	number, what, ok := strings.Cut(rest, " ")
	if _, err := strconv.Atoi(number); err != nil {
		return "", false
	}
	return what, ok
}

func (p *program) printJudgement(j market.Judgement, verbose bool) error {
	v := judgementOf(j, verbose)
	for _, c := range v.Checks {
		if c.OK {
			p.Show("ok    %s", clean(c.Name))
		} else {
			p.Show("FAIL  %s: %s", clean(c.Name), clean(c.Detail))
		}
	}
	p.Show("")
	total, end := "", ""
	if v.Lease != "" {
		total = fmt.Sprintf("%s for %s, %d receipts signed by both", money(v.Total), lasting(v.BilledMs), v.Receipts)
	}
	if v.Exit != nil {
		end = fmt.Sprintf("%s, exit %d", v.Exit.Reason, v.Exit.Code)
	}
	left := ""
	if v.Outcome != nil {
		left = outcome(*v.Outcome)
	}
	gpu := ""
	if v.Slots > 0 {
		gpu = cards(v.Slots, v.Model, v.simulated, "")
	}
	return p.Facts("network", v.Network, "lease", v.Lease, "rig", v.Rig, "renter", v.Renter, "gpu", gpu,
		"total", total, "end", end, "outcome", left, "guilty", v.Guilty, "verdict", v.Verdict+": "+meaning(j.Verdict))
}

func meaning(v market.Verdict) string {
	return [...]string{
		"both sides signed everything, the final receipt included",
		"everything is valid, and something still waits for a signature",
		"the check above failed",
		"one key signed two statements that exclude each other",
	}[v]
}
