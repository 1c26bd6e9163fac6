//go:build linux

// Package rig plugs a rig of its own machine together: cards, containerd, and the core that every rig shares. It reads no
// flags, handles no signals and never exits.
package rig

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"

	"haggle/internal/assemble"
	"haggle/internal/assemble/rigcore"
	"haggle/internal/config"
	"haggle/market"
	"haggle/nvml"
	"haggle/nvml/nvidia"
	"haggle/p2p"
	"haggle/runtime/remote"
)

// LoggerCommand is the hidden subcommand by which this program writes the log of a job.
const LoggerCommand = "logger"

// Config is what a rig is made from.
type Config struct {
	Rig     config.Rig
	Version string
	Log     *slog.Logger // nil discards
}

// New opens what the rig keeps and makes its parts. See rigcore.New for what the caller must do with it; containerd and the
// jobs go on after the rig's Run. The engine is in this program, which must be root then, or in the helper that HelperSocket
// names. The error is ErrNoCards if there is nothing to offer.
func New(ctx context.Context, cfg Config) (*rigcore.Rig, error) {
	if socket := HelperSocket(cfg.Rig); socket != "" {
		return newSplit(ctx, cfg, remote.Dial(ctx, socket))
	}
	describe := newDescriptions(orNone(cfg.Log))
	return rigcore.New(ctx, rigcore.Config{
		Rig: cfg.Rig, Version: cfg.Version, Log: cfg.Log, Warnings: warnings(cfg.Rig),
		Cards: func(key market.Key) (nvml.Driver, error) {
			cards, err := openCards(ctx, cfg.Rig, key, cfg.Log)
			if real, ok := cards.(*nvidia.Driver); ok {
				describe.use(real)
			}
			return cards, err
		},
		Engine: func(log *slog.Logger) (rigcore.Engine, error) {
			e, err := openEngine(cfg.Rig, describe, log)
			if err != nil {
				return nil, err // not e: a nil *engine in an interface is not nil
			}
			return e, nil
		},
	})
}

// newSplit makes a rig that leaves to the helper what needs root.
func newSplit(ctx context.Context, cfg Config, helper *remote.Client) (*rigcore.Rig, error) {
	r, err := rigcore.New(ctx, rigcore.Config{
		Rig: cfg.Rig, Version: cfg.Version, Log: cfg.Log, Warnings: warnings(cfg.Rig),
		Cards: func(key market.Key) (nvml.Driver, error) {
			cards, err := openCards(ctx, cfg.Rig, key, cfg.Log)
			if real, ok := cards.(*nvidia.Driver); ok {
				return dividedCards{real, helper}, err
			}
			return cards, err
		},
		Engine: func(*slog.Logger) (rigcore.Engine, error) { return helper, nil },
	})
	if err != nil {
		return nil, errors.Join(err, helper.Close())
	}
	return r, nil
}

// Purge ends every job of a rig whose daemon does not run, and removes all that its engine ever made. The rig's key and its
// database, with every receipt, stay. It is refused while the daemon runs.
func Purge(ctx context.Context, cfg config.Rig, log *slog.Logger) error {
	return rigcore.Purge(ctx, cfg, log, bareEngine)
}

// bareEngine makes the rig's engine for taking away what it made.
func bareEngine(cfg config.Rig, log *slog.Logger) (*engine, error) {
	return openEngine(cfg, newDescriptions(orNone(log)), log)
}

// orNone returns a log that discards where there is none.
func orNone(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}

// Explain puts into words what keeps a rig from starting.
func Explain(err error) (market.Explanation, bool) {
	for _, h := range []struct {
		is   error
		hint string
	}{
		{ErrNotRoot, "it is the part of a rig that is root: run it with sudo, or as the service haggled-helper"},
		{ErrHelperRuns, "`systemctl status haggled-helper` shows it; stop it first"},
		{remote.ErrInUse, "`systemctl status haggled-helper` shows it; stop it first"},
		{ErrUnsafe, "the helper works as root only where nobody else can put things: `chown root:root` and `chmod go-w` it, or choose another --home"},
	} {
		if errors.Is(err, h.is) {
			return market.Explanation{Message: err.Error(), Hint: h.hint, Class: market.ClassFailed}, true
		}
	}
	return assemble.Explain(err, "haggled status")
}

// MakeKey makes a rig's key, if there is none yet, and returns its public half. Where root makes it in the system's own place
// and the user of the service is there already, the key becomes that user's, as the daemon will be.
func MakeKey(cfg config.Rig) (market.Key, error) {
	if err := cfg.Paths.Make(); err != nil {
		return market.Key{}, err
	}
	private, err := p2p.LoadOrCreateKey(cfg.Paths.Key)
	if err != nil {
		return market.Key{}, err
	}
	if cfg.Paths.Home == "" && os.Geteuid() == 0 {
		if err := handOver(cfg.Helper.User, filepath.Dir(cfg.Paths.Key), cfg.Paths.Key); err != nil {
			return market.Key{}, err
		}
	}
	return market.KeyOf(private), nil
}

// handOver gives files to a user, if there is such a one.
func handOver(name string, files ...string) error {
	if _, err := user.Lookup(name); err != nil {
		return nil // all of the rig is root then
	}
	uid, gid, err := lookUp(name)
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := os.Lchown(file, uid, gid); err != nil {
			return fmt.Errorf("give the rig's key to user %s: %w", name, err)
		}
	}
	return nil
}
