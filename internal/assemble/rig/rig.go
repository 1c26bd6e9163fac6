//go:build linux

// Package rig plugs a rig of its own machine together: cards, containerd, and the core that every rig shares. It reads no
// flags, handles no signals and never exits.
package rig

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"haggle/internal/assemble"
	"haggle/internal/assemble/rigcore"
	"haggle/internal/config"
	"haggle/market"
	"haggle/nvml"
	"haggle/p2p"
	"haggle/runtime/containerd"
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
// jobs go on after the rig's Run. The error is ErrNoCards if there is nothing to offer.
func New(ctx context.Context, cfg Config) (*rigcore.Rig, error) {
	return rigcore.New(ctx, rigcore.Config{
		Rig: cfg.Rig, Version: cfg.Version, Log: cfg.Log,
		Cards: func(key market.Key) (nvml.Driver, error) { return openCards(ctx, cfg.Rig, key, cfg.Log) },
		Engine: func(log *slog.Logger) (rigcore.Engine, error) {
			e, err := Engine(cfg.Rig, log)
			if err != nil {
				return nil, err // not e: a nil *Engine in an interface is not nil
			}
			return e, nil
		},
	})
}

// Engine makes the rig's container engine, without starting it.
func Engine(cfg config.Rig, log *slog.Logger) (*containerd.Engine, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program, which writes the jobs' logs: %w", err)
	}
	p := cfg.Paths.Containerd
	return containerd.New(containerd.Config{
		Root: p.Root, State: p.State, Socket: p.Socket, RuncRoot: p.Runc,
		Address: cfg.Containerd.Address, Namespace: cfg.Containerd.Namespace, Binary: cfg.Containerd.Binary,
		LoggerPath: self, LoggerArgs: []string{LoggerCommand}, LogDir: filepath.Join(cfg.Paths.Jobs, "logs"),
		CgroupParent: cgroupParent(cfg.Paths), Log: log,
	})
}

// cgroupParent names the cgroup of all jobs of a rig. Several rigs on one machine, as in a lab, each have their own.
func cgroupParent(p config.Paths) string {
	if p.Home == "" {
		return "/haggle"
	}
	sum := sha256.Sum256([]byte(p.Home))
	return fmt.Sprintf("/haggle-%x", sum[:4])
}

// Purge ends every job of a rig whose daemon does not run, and removes all that its engine ever made. The rig's key and its
// database, with every receipt, stay. It is refused while the daemon runs.
func Purge(ctx context.Context, cfg config.Rig, log *slog.Logger) error {
	return rigcore.Purge(ctx, cfg, log, Engine)
}

// Explain puts into words what keeps a rig from starting.
func Explain(err error) (market.Explanation, bool) {
	return assemble.Explain(err, "haggled status")
}

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
