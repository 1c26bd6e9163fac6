package rigcore

import (
	"context"
	"errors"
	"fmt"
	"os"

	"haggle/internal/assemble"
	"haggle/internal/config"
	"haggle/internal/store"
	"haggle/internal/view"
)

// Backup copies the database of a rig whose daemon does not run into a file that must not exist yet.
func Backup(ctx context.Context, cfg config.Rig, path string) (_ view.Backup, err error) {
	if _, err := os.Stat(cfg.Paths.Database); err != nil {
		return view.Backup{}, fmt.Errorf("there is nothing to copy: %w", err)
	}
	s, err := store.OpenRig(ctx, cfg.Paths.Database)
	if err != nil {
		return view.Backup{}, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return assemble.Backup(s.Backup(ctx, path))
}

// Restore puts a copy in the place of the database of a rig whose daemon does not run.
func Restore(ctx context.Context, cfg config.Rig, from string) (store.Restored, error) {
	return assemble.Restore(ctx, from, cfg.Network, cfg.Paths, store.RestoreRig)
}

// copies makes a copy of the rig's database every day.
func (r *Rig) copies() store.Keeper {
	return store.Keeper{Folder: assemble.Copies(r.cfg.Rig.Paths), Name: "haggled-", Backup: r.store.Backup, Log: r.log}
}
