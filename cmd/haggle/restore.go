package main

import (
	"context"

	"github.com/spf13/cobra"

	"haggle/internal/assemble/agent"
	"haggle/internal/cli"
)

func (p *program) restoreCommand() *cobra.Command {
	return p.action(&cobra.Command{
		Use:   "restore FILE",
		Short: "put a copy in the place of the agent's database, while the agent does not run",
		Long: "Put a copy that `haggle backup` or the agent made in the place of the agent's database. The agent must not run. The copy is\n" +
			"checked first, and what is there now is kept beside it. What you signed since the copy was made comes back from the rigs.\n" +
			"Leases that began since then are not in the copy: they end by their own terms.",
		Example: "  haggle agent stop\n  haggle restore ~/haggle-2026-08.db",
		Args:    cli.Words(1, 1, "FILE"),
	}, func(ctx context.Context, args []string) error {
		cfg, err := p.config()
		if err != nil {
			return err
		}
		done, err := agent.Restore(ctx, cfg, args[0])
		if err != nil {
			return err
		}
		p.ShowRestored(done.Path, done.Previous, done.Leases)
		return nil
	})
}
