//go:build linux

package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"haggle/internal/assemble/rigcore"
	"haggle/internal/config"
	"haggle/market"
	"haggle/nvml"
	"haggle/nvml/nvidia"
)

// DriverCommand is the hidden subcommand by which this program reads the cards: the driver's library can end or hang the
// process that calls it.
const DriverCommand = "nvml-child"

// RunDriver is what DriverCommand does. The process must end when it returns, and nothing else may use its standard output.
func RunDriver(in io.Reader, out io.Writer) error { return nvidia.RunChild(in, out) }

// ErrNoCards says that the rig has nothing to offer: it wraps what the driver said.
var ErrNoCards = errors.New("this machine has no card to offer")

// openCards opens the driver of the rig's cards. Simulated ones are never a fallback: they are asked for by name, and the
// configuration takes them on lab networks only.
func openCards(ctx context.Context, cfg config.Rig, key market.Key, log *slog.Logger) (nvml.Driver, error) {
	if len(cfg.Cards.Simulated) > 0 {
		return rigcore.SimulatedCards(cfg, key)
	}
	d, err := openNvidia(ctx, cfg, log)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoCards, err)
	}
	return d, nil
}

// openNvidia opens the driver of the machine's own cards, in a child process.
func openNvidia(ctx context.Context, cfg config.Rig, log *slog.Logger) (*nvidia.Driver, error) {
	return nvidia.Open(ctx, nvidia.Config{Command: []string{"/proc/self/exe", DriverCommand}, Library: cfg.Cards.Library, Log: log})
}
