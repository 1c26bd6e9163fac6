//go:build linux

package main

import (
	"context"

	"github.com/spf13/cobra"

	"haggle/internal/assemble/rig"
	"haggle/internal/cli"
)

func (p *program) doctorCommand() *cobra.Command {
	var asJSON bool
	c := p.action(&cobra.Command{
		Use: "doctor", Short: "Check what a rig needs, and say how to get what is missing",
		Example: "  haggled doctor\n  haggled doctor --home /srv/rig-2 --json",
	}, func(ctx context.Context, _ []string) error { return p.doctor(ctx, asJSON) })
	c.Flags().BoolVar(&asJSON, "json", false, "print for programs")
	return c
}

// doctor prints every finding and fails if one of them keeps the rig from serving.
func (p *program) doctor(ctx context.Context, asJSON bool) error {
	cfg, err := p.config(nil)
	if err != nil {
		return err
	}
	findings := rig.Diagnose(ctx, cfg)
	bad := false
	rows := make([][]string, 0, len(findings))
	for _, f := range findings {
		bad = bad || f.Level == rig.LevelBad
		rows = append(rows, []string{string(f.Level), f.Name, f.Found, f.Fix})
	}
	if asJSON {
		err = p.JSON(findings)
	} else {
		err = p.Table("STATE WHAT FOUND FIX", rows)
	}
	if err == nil && bad {
		err = cli.Exit(1)
	}
	return err
}
