package main

import (
	"context"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/view"
	"haggle/market"
)

func (p *program) decideCommand() *cobra.Command {
	var f cli.Complaint
	var file string
	c := p.action(&cobra.Command{
		Use:   "decide FILE",
		Short: "decide, as the guarantor that a lease names, what it costs",
		Long: "Judge a file of evidence of a lease that names a guarantee of yours, show what it says, and sign what the lease costs. The rig's\n" +
			"owner and the renter both agreed to your word when they signed the lease. Send the file to both: `haggle dispute LEASE\n" +
			"--decision FILE` and `haggled dispute LEASE --decision FILE` hand it in, and either tells the other. You may decide again\n" +
			"when you know more: the newest decision counts.",
		Example: "  haggle decide lease-3f9a12c4.evidence\n" +
			"  haggle decide lease-3f9a12c4.evidence --total 0.20 --words 'its own log ends at 14:05' -o ada.decision",
		Args: cli.Words(1, 1, "FILE"),
	}, func(ctx context.Context, args []string) error {
		request, err := f.Request()
		if err != nil {
			return err
		}
		data, err := p.readEvidence(args[0])
		if err != nil {
			return err
		}
		return p.decide(ctx, data, request, file)
	})
	f.Register(c.Flags(), "what both signed")
	c.Flags().StringVarP(&file, "output", "o", "", "file to write, - for stdout (default lease-ID.decision)")
	return c
}

// decide shows what evidence says, has the agent sign the decision and writes it.
func (p *program) decide(ctx context.Context, data []byte, r view.DisputeRequest, file string) error {
	j := market.Judge(data)
	shown := *p
	if file == stdout {
		shown.Out = p.Err // the decision alone goes to stdout
	}
	if err := shown.printJudgement(j, false); err != nil {
		return err
	}
	if j.Verdict == market.VerdictInvalid {
		p.Say("nothing was signed: the evidence does not hold")
		return cli.Exit(int(j.Verdict))
	}
	e, err := market.DecodeEvidence(data)
	if err != nil {
		return err
	}
	small := e.Redact().Encode() // as valid, and all that the agent needs
	sealed, err := ask(ctx, p, func(c *api.AgentClient) ([]byte, error) {
		return c.Decide(ctx, view.DecideRequest{Evidence: small, DisputeRequest: r})
	})
	if err != nil {
		return err
	}
	if file == "" {
		file = "lease-" + j.Lease.Short() + ".decision"
	}
	if err := p.put(file, "decision", sealed); err != nil || file == stdout {
		return err
	}
	if len(j.Disputes)+len(j.Refusals) == 0 {
		p.Say("nobody has disputed this bill")
	}
	p.Say("wrote %s (hint: both sides take it by `dispute %s --decision %s`)", file, j.Lease.Short(), file)
	return nil
}
