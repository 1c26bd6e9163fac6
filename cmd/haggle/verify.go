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
	gpu, left := "", strings.Join(v.Redacted, ", ")
	if v.Slots > 0 {
		gpu = cards(v.Slots, v.Model, v.simulated, "")
	}
	if err := p.Facts("network", v.Network, "lease", v.Lease, "rig", v.Rig, "rig's owner", v.RigOwner, "renter", v.Renter,
		"renter's owner", v.Owner, "deputies", strings.Join(v.Deputies, ", "), "gpu", gpu, "left out", left); err != nil {
		return err
	}
	if err := p.printBill(v); err != nil {
		return err
	}
	return p.Facts(append(v.facts(), "verdict", v.Verdict+": "+meaning(j.Verdict))...)
}

// printBill shows what both sides signed, line by line.
func (p *program) printBill(v judgement) error {
	p.Show("")
	if v.Receipts == 0 {
		return nil
	}
	var rows [][]string
	for _, l := range v.Bill {
		rows = append(rows, []string{l.What, l.Quantity, money(l.Rate), money(l.Amount)})
	}
	if err := p.Table("BILL QUANTITY RATE AMOUNT", rows); err != nil {
		return err
	}
	p.Show("")
	return nil
}

// facts are the rest of a judgement, for Facts: what is signed, paid and due, and what was said.
func (v judgement) facts() []string {
	if v.Lease == "" {
		return nil
	}
	signed := "nothing"
	if v.Receipts > 0 {
		signed = fmt.Sprintf("%s for %s, %s signed by both", money(v.Total), lasting(v.BilledMs), plural(int64(v.Receipts), "receipt"))
	}
	list := []string{"total", signed}
	if v.Claim.Micro > v.Total.Micro {
		list = append(list, "claimed", money(v.Claim)+" by the rig's newest receipt, which the renter has not signed")
	}
	list = append(list, "not billed", unbilled(v.Gaps))
	if len(v.Payments) > 0 {
		list = append(list, "paid", money(v.Paid)+" in "+plural(int64(len(v.Payments)), "payment")+" that the rig signed, the last by "+v.Payments[len(v.Payments)-1].Method)
	}
	if v.Due.Micro > 0 && v.Code != int(market.VerdictInvalid) {
		list = append(list, "due", money(v.Due))
	}
	if v.Balance.Micro > 0 && v.Code != int(market.VerdictInvalid) {
		list = append(list, "left over", money(v.Balance))
	}
	for _, n := range v.Notices {
		list = append(list, "notice", n.Reason+" "+clock(n.At)+", killed at the latest "+clock(n.KillAt))
	}
	for _, r := range v.Refusals {
		words := fmt.Sprintf("receipt %d: %s; the renter agrees to %s", r.Seq, r.Code, money(r.Right))
		if r.Wrong != "" {
			words += "; by the terms the renter is right: " + r.Wrong
		}
		list = append(list, "refused", words)
	}
	for _, d := range v.Disputes {
		list = append(list, "dispute", "the "+d.By+" says "+money(d.Right)+" is right: "+strings.TrimRight(d.Code+" "+d.Words, " "))
	}
	if v.Promise != nil {
		list = append(list, "guarantee", "up to "+money(*v.Promise)+", over all leases that name it")
	}
	if v.Decided != nil {
		list = append(list, "decided", money(*v.Decided)+", by the guarantor")
	}
	return append(list, v.end()...)
}

// end says how the lease ended, and who cheated.
func (v judgement) end() []string {
	var list []string
	if v.Exit != nil {
		list = append(list, "end", fmt.Sprintf("%s, exit %d", v.Exit.Reason, v.Exit.Code))
	}
	if v.Outcome != nil {
		words := outcome(*v.Outcome)
		if v.Result != "" {
			words = resultWords(market.Result(v.Result)) + ", " + words
		}
		if v.Accepted {
			words += "; accepted by the renter"
		}
		list = append(list, "outcome", words)
	}
	list = append(list, "guilty", v.Guilty)
	for _, f := range v.Frauds {
		list = append(list, "fraud", f.Why+" ("+f.Role+" "+f.Guilty+"): "+f.First+" "+f.Second)
	}
	return list
}

// resultWords says how a lease ended.
func resultWords(r market.Result) string {
	words, ok := map[market.Result]string{
		market.ResultRenter: "ended by the renter", market.ResultRig: "ended by the rig", market.ResultFault: "a fault of the rig",
		market.ResultVoid: "nothing was billed",
	}[r]
	if !ok {
		return string(r)
	}
	return words
}

func meaning(v market.Verdict) string {
	return [...]string{
		"both sides signed everything, the final receipt included",
		"everything is valid, and something still waits for a signature",
		"the check above failed",
		"one key signed two statements that exclude each other",
	}[v]
}
