package main

import (
	"context"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
)

func (p *program) disputeCommand() *cobra.Command {
	var f cli.Dispute
	c := p.action(&cobra.Command{
		Use:   "dispute LEASE",
		Short: "sign that a lease's bill is wrong, or hand in the guarantor's decision",
		Long:  cli.DisputeHelp,
		Example: "  haggle dispute 3f9a12c4 --total 0.20 --words 'the card stood still from 14:05 on'\n" +
			"  haggle dispute 3f9a12c4 --decision lease-3f9a12c4.decision\n  haggle dispute 3f9a12c4 --list",
		Args: cli.Words(1, 1, "LEASE"),
	}, func(ctx context.Context, args []string) error {
		_, err := ask(ctx, p, func(c *api.AgentClient) (struct{}, error) {
			return struct{}{}, f.Run(ctx, p.Terminal, c, args[0])
		})
		return err
	})
	f.Register(c.Flags(), "what both signed")
	return c
}
