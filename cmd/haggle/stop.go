package main

import (
	"context"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/view"
)

func (p *program) stopCommand() *cobra.Command {
	var kill, keep, asJSON bool
	c := p.action(&cobra.Command{
		Use:   "stop LEASE",
		Short: "end a job and its lease",
		Long: "End a job: SIGTERM, and SIGKILL after the lease's notice. Billing ends at once. With --keep the job's disk stays at its\n" +
			"own price, and the cards are free for others: resume starts the job again, rm destroys the disk.",
		Example: "  haggle stop 3f9a12c4\n  haggle stop 3f9a12c4 --kill\n  haggle stop train --keep",
		Args:    cli.Words(1, 1, "LEASE"),
	}, func(ctx context.Context, args []string) error {
		if kill && keep {
			return cli.Usage("--kill and --keep exclude each other", "a job whose disk is kept ends with a notice")
		}
		l, err := ask(ctx, p, func(c *api.AgentClient) (view.Lease, error) {
			if keep {
				return c.Keep(ctx, args[0])
			}
			return c.Stop(ctx, args[0], kill)
		})
		if err != nil {
			return err
		}
		if err := p.showLease(l, asJSON); err != nil || !keep || asJSON {
			return err
		}
		p.Say("`haggle resume %s` starts the job again, `haggle rm %s` destroys its disk", called(l), called(l))
		return nil
	})
	c.Flags().BoolVar(&kill, "kill", false, "SIGKILL at once")
	c.Flags().BoolVar(&keep, "keep", false, "keep the job's disk, for its price")
	c.Flags().BoolVar(&asJSON, "json", false, "print the lease as JSON")
	return c
}
