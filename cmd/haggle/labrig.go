package main

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"haggle/internal/cli"
	"haggle/internal/config"
	"haggle/internal/lab"
)

// labRigCommand is hidden: a lab without containers starts its rigs, and they their jobs' supervisors, by it.
func (p *program) labRigCommand() *cobra.Command {
	c := &cobra.Command{Use: lab.RigCommand, Hidden: true, Short: "a rig of a lab without containers", Example: "  haggle lab up --engine process"}
	c.AddCommand(p.labRigServeCommand(), p.labRigPurgeCommand(), p.labRigJobCommand())
	return c
}

func (p *program) labRigServeCommand() *cobra.Command {
	return p.action(&cobra.Command{
		Use: "serve", Short: "run the rig in the foreground", Example: "  haggle lab-rig serve --home lab/rig-1",
	}, func(ctx context.Context, _ []string) error {
		cfg, log, err := p.labRig()
		if err != nil {
			return err
		}
		return lab.ServeRig(ctx, cfg, p.version, log)
	})
}

func (p *program) labRigPurgeCommand() *cobra.Command {
	var yes bool
	c := p.action(&cobra.Command{
		Use: "purge", Short: "end all jobs of the rig and remove all that its engine made", Example: "  haggle lab-rig purge --yes --home lab/rig-1",
	}, func(ctx context.Context, _ []string) error {
		if !yes {
			return cli.Usage("purge ends every job of this rig", "say --yes if that is what you want")
		}
		cfg, log, err := p.labRig()
		if err != nil {
			return err
		}
		return lab.PurgeRig(ctx, cfg, log)
	})
	c.Flags().BoolVar(&yes, "yes", false, "really")
	return c
}

func (p *program) labRigJobCommand() *cobra.Command {
	return p.action(&cobra.Command{
		Use: "job FOLDER", Short: "supervise one job", Example: "  haggle lab-rig job lab/rig-1/jobs/jobs/0a1b", Args: cli.Words(1, 1, "FOLDER"),
	}, func(_ context.Context, args []string) error { return lab.RunJob(args[0]) })
}

// labRig reads the rig's configuration and makes its log.
func (p *program) labRig() (config.Rig, *slog.Logger, error) {
	if p.home == "" {
		return config.Rig{}, nil, cli.Usage("a lab's rig needs --home", "`haggle lab up` starts rigs by itself")
	}
	cfg, err := lab.LoadRig(p.home)
	if err != nil {
		return cfg, nil, err
	}
	log, err := logger(p.Err, cfg.LogLevel, cfg.LogFormat)
	return cfg, log, err
}
