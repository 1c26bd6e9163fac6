//go:build linux

package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"haggle/internal/assemble/rig"
	"haggle/internal/cli"
	"haggle/market"
)

func (p *program) serveCommand() *cobra.Command {
	var values map[string]string
	c := p.action(&cobra.Command{
		Use:   "serve",
		Short: "Run the rig in the foreground until it is told to end; jobs go on without it",
		Example: "  haggled serve\n" +
			"  haggled serve --home /srv/rig-2\n" +
			"  haggled serve --set log_level=debug --set name=attic",
	}, func(ctx context.Context, _ []string) error { return p.serve(ctx, values) })
	c.Flags().StringToStringVar(&values, "set", nil, "set a key of the configuration for this run: --set KEY=VALUE")
	return c
}

func (p *program) serve(ctx context.Context, values map[string]string) error {
	cfg, err := p.config(values)
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 && rig.HelperSocket(cfg) == "" {
		return cli.Usage("haggled needs root to start containers", "run it with sudo, or as a service: `make install` brings units by which only a small helper is root")
	}
	if rig.OnWSL() && !market.IsLab(cfg.Network) {
		return cli.Usage("a rig needs Linux itself, this is the Windows Subsystem for Linux", "cards cannot be passed to containers or metered here; to rent cards use haggle")
	}
	log, err := p.logger(cfg.LogLevel, cfg.LogFormat)
	if err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		plainUmask()
	}
	r, err := rig.New(ctx, rig.Config{Rig: cfg, Version: p.version, Log: log})
	if err != nil {
		return err
	}
	p.notifyReady(log)
	return r.Run(ctx)
}

// logger makes the daemon's log on stderr, where systemd and the lab collect it.
func (p *program) logger(level, format string) (*slog.Logger, error) {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("log level: %w", err)
	}
	options := &slog.HandlerOptions{Level: least}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(p.Err, options)), nil
	}
	return slog.New(slog.NewTextHandler(p.Err, options)), nil
}
