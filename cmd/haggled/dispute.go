//go:build linux

package main

import (
	"context"

	"github.com/spf13/cobra"

	"haggle/internal/cli"
)

func (p *program) disputeCommand() *cobra.Command {
	var f cli.Dispute
	c := p.action(&cobra.Command{
		Use: "dispute LEASE", Short: "Sign that a lease's bill is wrong, or hand in the guarantor's decision",
		Long: cli.DisputeHelp,
		Example: "  haggled dispute 3f9a12c4 --words 'the renter refused a receipt that its own log bears out'\n" +
			"  haggled dispute 3f9a12c4 --decision lease-3f9a12c4.decision\n  haggled dispute 3f9a12c4 --list",
		Args: cli.Words(1, 1, "LEASE"),
	}, func(ctx context.Context, args []string) error {
		daemon, err := p.daemon()
		if err != nil {
			return err
		}
		return f.Run(ctx, p.Terminal, daemon, args[0])
	})
	f.Register(c.Flags(), "what the rig counted")
	return c
}
