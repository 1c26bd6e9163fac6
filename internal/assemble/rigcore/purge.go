package rigcore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"haggle/internal/config"
	"haggle/internal/store"
)

// Purger is an engine that can be taken off a machine.
type Purger interface {
	// Purge ends every job and removes all that the engine ever made.
	Purge(ctx context.Context) error
	Close() error
}

// Purge ends every job of a rig whose daemon does not run, and removes all that its engine ever made. The rig's key and its
// database, with every receipt, stay. It is refused while the daemon runs.
func Purge[E Purger](ctx context.Context, cfg config.Rig, log *slog.Logger, open func(config.Rig, *slog.Logger) (E, error)) (err error) {
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
	engine, err := open(cfg, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	if err := engine.Purge(ctx); err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	return os.RemoveAll(cfg.Paths.Run)
}
