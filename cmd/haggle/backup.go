package main

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/view"
)

func (p *program) backupCommand() *cobra.Command {
	var asJSON bool
	c := p.action(&cobra.Command{
		Use:   "backup FILE",
		Short: "copy the agent's database into a file: leases, receipts, payments; no key",
		Long: "Copy the agent's database into a file that does not exist yet. The copy holds every lease, receipt and payment, and no\n" +
			"environment of a job. The key is in no copy: keep it apart. The agent makes such a copy every day that it runs, and keeps\n" +
			"three, in the folder backups beside the database.",
		Example: "  haggle backup ~/haggle-2026-08.db",
		Args:    cli.Words(1, 1, "FILE"),
	}, func(ctx context.Context, args []string) error {
		path, err := filepath.Abs(args[0])
		if err != nil {
			return err
		}
		made, err := ask(ctx, p, func(c *api.AgentClient) (view.Backup, error) { return c.Backup(ctx, path) })
		if err != nil {
			return err
		}
		if asJSON {
			return p.JSON(made)
		}
		p.Show("%s, %s", made.Path, cli.Bytes(made.Bytes))
		return nil
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print for programs")
	return c
}
