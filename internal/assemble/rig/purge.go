//go:build linux

package rig

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"haggle/internal/assemble"
	"haggle/internal/config"
	"haggle/internal/store"
	"haggle/market"
	"haggle/p2p"
)

// Purge ends every job of a rig whose daemon does not run, and removes all that its engine ever made. The rig's key and its
// database, with every receipt, stay. It is refused while the daemon runs.
func Purge(ctx context.Context, cfg config.Rig, log *slog.Logger) (err error) {
	if _, err := os.Stat(cfg.Paths.Database); err == nil {
		// Whoever holds the database is the rig: nobody can start it while its jobs are being ended.
		held, err := store.OpenRig(ctx, cfg.Paths.Database)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, held.Close()) }()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("purge: %w", err)
	}
	engine, err := Engine(cfg, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	if err := engine.Purge(ctx); err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	return os.RemoveAll(cfg.Paths.Run)
}

// Explain puts into words what keeps a rig from starting.
func Explain(err error) (market.Explanation, bool) { return assemble.Explain(err) }

// MakeKey makes a rig's key, if there is none yet, and returns its public half.
func MakeKey(cfg config.Rig) (market.Key, error) {
	if err := cfg.Paths.Make(); err != nil {
		return market.Key{}, err
	}
	private, err := p2p.LoadOrCreateKey(cfg.Paths.Key)
	if err != nil {
		return market.Key{}, err
	}
	return market.KeyOf(private), nil
}
