//go:build linux

package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/assemble/rig"
	"haggle/internal/cli"
	"haggle/internal/view"
)

func (p *program) backupCommand() *cobra.Command {
	var asJSON bool
	c := p.action(&cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the rig's database into a file: leases, receipts, payments; no key",
		Long: "Copy the rig's database into a file that does not exist yet, while the daemon runs or while it does not. The copy holds\n" +
			"every lease, receipt and payment, and no environment of a job. The rig's key is in no copy: keep it apart.\n" +
			"The daemon makes such a copy every day, and keeps three, in the folder backups beside the database.",
		Example: "  haggled backup /mnt/usb/haggled.db",
		Args:    cli.Words(1, 1, "FILE"),
	}, func(ctx context.Context, args []string) error {
		made, err := p.backup(ctx, args[0])
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

// backup asks the daemon, which works on the database, or does it itself where no daemon runs.
func (p *program) backup(ctx context.Context, file string) (view.Backup, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return view.Backup{}, err
	}
	cfg, err := p.config(nil)
	if err != nil {
		return view.Backup{}, err
	}
	made, err := api.DialRig(cfg.Paths.Socket).Backup(ctx, path)
	if errors.Is(err, api.ErrNotRunning) {
		return rig.Backup(ctx, cfg, path)
	}
	return made, err
}
