//go:build linux

package main

import (
	"context"

	"github.com/spf13/cobra"

	"haggle/internal/assemble/rig"
	"haggle/internal/cli"
)

// purgeCommand is hidden: it is how a lab ends, and how a rig is taken off a machine.
func (p *program) purgeCommand() *cobra.Command {
	var yes bool
	c := p.action(&cobra.Command{
		Use: "purge", Hidden: true, Short: "End all jobs and remove all that the rig's engine made; keys and receipts stay",
		Example: "  haggled purge --yes",
	}, func(ctx context.Context, _ []string) error {
		if !yes {
			return cli.Usage("purge ends every job of this rig", "say --yes if that is what you want")
		}
		cfg, err := p.config(nil)
		if err != nil {
			return err
		}
		log, err := p.logger(cfg.LogLevel, cfg.LogFormat)
		if err != nil {
			return err
		}
		if err := rig.Purge(ctx, cfg, log); err != nil || cfg.Paths.Home != "" {
			return err
		}
		return p.purgeHelper(ctx) // which there is on a rig of two programs
	})
	c.Flags().BoolVar(&yes, "yes", false, "really")
	return c
}
