package rig

import (
	"context"

	"haggle/internal/assemble/rigcore"
	"haggle/internal/config"
	"haggle/internal/store"
	"haggle/internal/view"
)

// Backup copies the database of a rig whose daemon does not run into a file that must not exist yet.
func Backup(ctx context.Context, cfg config.Rig, path string) (view.Backup, error) {
	return rigcore.Backup(ctx, cfg, path)
}

// Restore puts a copy in the place of the database of a rig whose daemon does not run: see store.RestoreRig.
func Restore(ctx context.Context, cfg config.Rig, from string) (store.Restored, error) {
	return rigcore.Restore(ctx, cfg, from)
}
