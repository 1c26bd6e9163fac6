package lab

import (
	"context"
	"log/slog"

	"haggle/internal/assemble/labrig"
	"haggle/internal/config"
)

// LoadRig reads the configuration of a lab's rig from its home, and from nothing else.
func LoadRig(home string) (config.Rig, error) {
	return config.LoadRig(config.Flags{Home: home, Env: noEnvironment})
}

// ServeRig runs a rig without containers until ctx ends or it is told to end. Jobs go on.
func ServeRig(ctx context.Context, cfg config.Rig, version string, log *slog.Logger) error {
	r, err := labrig.New(ctx, labrig.Config{Rig: cfg, Version: version, JobCommand: jobCommand(), Log: log})
	if err != nil {
		return err
	}
	return r.Run(ctx)
}

// PurgeRig ends every job of such a rig and removes all that its engine made; key and receipts stay. The rig must not run.
func PurgeRig(ctx context.Context, cfg config.Rig, log *slog.Logger) error {
	return labrig.Purge(ctx, labrig.Config{Rig: cfg, JobCommand: jobCommand(), Log: log})
}

// RunJob supervises a job of such a rig; its daemon starts it with the job's folder.
func RunJob(dir string) error { return labrig.RunJob(dir) }

func jobCommand() []string { return []string{RigCommand, "job"} }
