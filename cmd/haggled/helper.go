//go:build linux

package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"haggle/internal/assemble/rig"
	"haggle/internal/cli"
	"haggle/internal/config"
)

// helperCommand is hidden: the service units start it.
func (p *program) helperCommand() *cobra.Command {
	var values map[string]string
	c := p.action(&cobra.Command{
		Use: rig.HelperCommand, Hidden: true, Short: "Start containers as root for a rig that is not root",
		Long: "Start containers as root for a rig that is not root. It reads the rig's configuration file, keeps its own files in\n" +
			"/var/lib/haggled-helper, and answers one user, `helper.user`, on the socket /run/haggled-helper/helper.sock.",
		Example: "  haggled helper\n  haggled helper --home /srv/helper --set helper.user=haggled",
	}, func(ctx context.Context, _ []string) error { return p.helper(ctx, values) })
	c.Flags().StringToStringVar(&values, "set", nil, "set a key of the configuration for this run: --set KEY=VALUE")
	c.AddCommand(p.helperPurgeCommand())
	return c
}

func (p *program) helper(ctx context.Context, values map[string]string) error {
	cfg, log, err := p.helperConfig(values)
	if err != nil {
		return err
	}
	plainUmask()
	h, err := rig.NewHelper(ctx, rig.HelperConfig{Rig: cfg, Log: log})
	if err != nil {
		return err
	}
	p.notifyReady(log)
	return h.Run(ctx)
}

// plainUmask makes folders as they are meant to be: jobs have users of their own, who pass through some of ours, and all that is
// started inherits the umask. Whoever starts the engine's program may be stricter, as service managers are.
func plainUmask() { unix.Umask(0o022) }

func (p *program) helperPurgeCommand() *cobra.Command {
	var yes bool
	c := p.action(&cobra.Command{
		Use: "purge", Short: "End all jobs of the helper and remove all that its engine made", Example: "  haggled helper purge --yes",
	}, func(ctx context.Context, _ []string) error {
		if !yes {
			return cli.Usage("purge ends every job of this rig", "say --yes if that is what you want")
		}
		return p.purgeHelper(ctx)
	})
	c.Flags().BoolVar(&yes, "yes", false, "really")
	return c
}

// purgeHelper takes away what a helper made, if there is anything.
func (p *program) purgeHelper(ctx context.Context) error {
	cfg, log, err := p.helperConfig(nil)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Dir(cfg.Paths.Containerd.Root)); os.IsNotExist(err) {
		return nil
	}
	return rig.PurgeHelper(ctx, cfg, log)
}

func (p *program) helperConfig(values map[string]string) (config.Rig, *slog.Logger, error) {
	cfg, err := config.LoadHelper(config.Flags{Home: p.home, File: p.file, Values: values})
	if err != nil {
		return cfg, nil, err
	}
	log, err := p.logger(cfg.LogLevel, cfg.LogFormat)
	return cfg, log, err
}
