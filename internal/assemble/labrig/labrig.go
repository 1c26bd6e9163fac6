// Package labrig plugs a rig for labs together, on every system and without root: simulated cards, jobs as plain processes,
// and the core that every rig shares. It reads no flags, handles no signals and never exits.
package labrig

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"haggle/internal/assemble/rigcore"
	"haggle/internal/config"
	"haggle/market"
	"haggle/nvml"
	"haggle/runtime/process"
)

// ErrNotLab says that the rig was asked to sell where real cards are paid for. Its jobs are not isolated from anything.
var ErrNotLab = errors.New("a rig without containers sells on lab networks only, whose names begin with lab-")

// ErrNoCards says that the rig has nothing to offer: real cards need containers.
var ErrNoCards = errors.New("a rig without containers offers simulated cards only: set cards.simulated")

// Config is what a rig is made from.
type Config struct {
	Rig     config.Rig
	Version string
	// JobCommand are the arguments by which this program calls RunJob with the folder that comes as the last argument.
	JobCommand []string
	Log        *slog.Logger // nil discards
}

// New opens what the rig keeps and makes its parts. See rigcore.New for what the caller must do with it; jobs go on after the
// rig's Run. The error is ErrNotLab on any other network than a lab's.
func New(ctx context.Context, cfg Config) (*rigcore.Rig, error) {
	switch {
	case !market.IsLab(cfg.Rig.Network):
		return nil, fmt.Errorf("%w; this one is %s", ErrNotLab, cfg.Rig.Network)
	case len(cfg.Rig.Cards.Simulated) == 0:
		return nil, ErrNoCards
	}
	return rigcore.New(ctx, rigcore.Config{
		Rig: cfg.Rig, Version: cfg.Version, Log: cfg.Log,
		Cards: func(key market.Key) (nvml.Driver, error) { return rigcore.SimulatedCards(cfg.Rig, key) },
		Engine: func(log *slog.Logger) (rigcore.Engine, error) {
			e, err := open(cfg.Rig, cfg.JobCommand, log)
			if err != nil {
				return nil, err
			}
			return engine{e}, nil
		},
	})
}

// Purge ends every job of a rig that does not run, and removes all that its engine ever made.
func Purge(ctx context.Context, cfg Config) error {
	return rigcore.Purge(ctx, cfg.Rig, cfg.Log, func(rig config.Rig, log *slog.Logger) (*process.Engine, error) {
		return open(rig, cfg.JobCommand, log)
	})
}

// RunJob supervises one job, in a process of its own that the rig starts, until the job has ended.
func RunJob(dir string) error { return process.Supervise(dir) }

func open(cfg config.Rig, command []string, log *slog.Logger) (*process.Engine, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program, which supervises the jobs: %w", err)
	}
	return process.New(process.Config{
		Root: cfg.Paths.Jobs, Command: slices.Concat([]string{self}, command), DoorProgram: []string{self, "inside", "door"}, Log: log,
	})
}

// engine is a process engine as the core wants it: there is nothing to wait for and nothing to look after.
type engine struct{ *process.Engine }

// Run implements rigcore.Engine.
func (engine) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Ready implements rigcore.Engine.
func (engine) Ready(ctx context.Context) error { return ctx.Err() }
