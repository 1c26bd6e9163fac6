package main

import (
	"context"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/view"
)

func (p *program) stopCommand() *cobra.Command {
	var kill, asJSON bool
	c := p.action(&cobra.Command{
		Use:     "stop LEASE",
		Short:   "end a job and its lease",
		Long:    "End a job: SIGTERM, and SIGKILL after the lease's notice. Billing ends at once.",
		Example: "  haggle stop 3f9a12c4\n  haggle stop 3f9a12c4 --kill",
		Args:    cli.Words(1, 1, "LEASE"),
	}, func(ctx context.Context, args []string) error {
		l, err := ask(ctx, p, func(c *api.AgentClient) (view.Lease, error) { return c.Stop(ctx, args[0], kill) })
		if err != nil {
			return err
		}
		if asJSON {
			return p.JSON(l)
		}
		p.Show("lease %s on %s, %s: %s", short(l.ID), clean(l.Rig), clean(cards(l.Slots, l.Model, l.Simulated, l.Isolation)), clean(l.State))
		return nil
	})
	c.Flags().BoolVar(&kill, "kill", false, "SIGKILL at once")
	c.Flags().BoolVar(&asJSON, "json", false, "print the lease as JSON")
	return c
}
