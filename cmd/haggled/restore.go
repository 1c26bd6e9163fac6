//go:build linux

package main

import (
	"context"

	"github.com/spf13/cobra"

	"haggle/internal/assemble/rig"
	"haggle/internal/cli"
)

func (p *program) restoreCommand() *cobra.Command {
	return p.action(&cobra.Command{
		Use:   "restore FILE",
		Short: "Put a copy in the place of the rig's database, while the daemon does not run",
		Long: "Put a copy that `haggled backup` or the daemon made in the place of the rig's database. The daemon must not run. The copy is\n" +
			"checked first, and what is there now is kept beside it. Then the rig signs nothing for a lease before it has heard from its\n" +
			"renter what both signed since the copy was made. Leases that began since then are not in the copy: their jobs end.",
		Example: "  systemctl stop haggled\n  haggled restore /var/lib/haggled/backups/haggled-20260801-040000.db\n  systemctl start haggled",
		Args:    cli.Words(1, 1, "FILE"),
	}, func(ctx context.Context, args []string) error {
		cfg, err := p.config(nil)
		if err != nil {
			return err
		}
		done, err := rig.Restore(ctx, cfg, args[0])
		if err != nil {
			return err
		}
		p.ShowRestored(done.Path, done.Previous, done.Leases)
		return nil
	})
}
