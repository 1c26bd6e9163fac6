//go:build linux

package rig

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"haggle/internal/config"
	"haggle/nvml"
	"haggle/nvml/nvidia"
	"haggle/runtime"
	"haggle/runtime/remote"
)

// driverRetry is how long the helper waits before it looks for a driver again.
const driverRetry = time.Minute

// helperCards is the driver of the helper's cards, which may be installed later or never.
type helperCards struct {
	open     func(ctx context.Context) (*nvidia.Driver, error) // nil where the cards are simulated
	describe *descriptions
	log      *slog.Logger

	mu     sync.Mutex
	driver *nvidia.Driver
}

func newHelperCards(cfg config.Rig, describe *descriptions, log *slog.Logger) *helperCards {
	h := &helperCards{describe: describe, log: log}
	if len(cfg.Cards.Simulated) == 0 {
		h.open = func(ctx context.Context) (*nvidia.Driver, error) { return openNvidia(ctx, cfg, log) }
	}
	return h
}

// Run opens the driver as soon as there is one, and keeps it until ctx ends.
func (h *helperCards) Run(ctx context.Context) error {
	told := false
	for h.open != nil && ctx.Err() == nil {
		driver, err := h.open(ctx)
		if err == nil {
			h.set(driver)
			h.describe.use(driver)
			<-ctx.Done()
			h.set(nil)
			return driver.Close()
		}
		if !told && ctx.Err() == nil {
			h.log.Info("no driver of cards; the helper looks for one again and again", "err", err)
			told = true
		}
		select {
		case <-time.After(driverRetry):
		case <-ctx.Done():
		}
	}
	<-ctx.Done()
	return nil
}

func (h *helperCards) set(d *nvidia.Driver) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.driver = d
}

// SetPowerLimit implements remote.Power.
func (h *helperCards) SetPowerLimit(ctx context.Context, uuid string, milliwatt int64) (int64, error) {
	h.mu.Lock()
	driver := h.driver
	h.mu.Unlock()
	if driver == nil {
		return 0, fmt.Errorf("power limit of card %s: there is no driver here: %w", uuid, runtime.ErrUnsupported)
	}
	now, err := driver.SetPowerLimit(ctx, uuid, milliwatt)
	return now, translate(err, nvml.ErrNoCard, runtime.ErrNoDevice, nvml.ErrUnsupported, runtime.ErrUnsupported)
}

// dividedCards are cards that this program reads, and whose power the helper sets, because it is root.
type dividedCards struct {
	*nvidia.Driver
	helper *remote.Client
}

var _ interface {
	nvml.Driver
	nvml.PowerLimiter
} = dividedCards{}

// SetPowerLimit implements nvml.PowerLimiter.
func (d dividedCards) SetPowerLimit(ctx context.Context, uuid string, milliwatt int64) (int64, error) {
	now, err := d.helper.SetPowerLimit(ctx, uuid, milliwatt)
	return now, translate(err, runtime.ErrNoDevice, nvml.ErrNoCard, runtime.ErrUnsupported, nvml.ErrUnsupported)
}

// translate adds to an error of a class the class that stands for it on the other side. pairs are such classes, two by two.
func translate(err error, pairs ...error) error {
	for i := 0; i+1 < len(pairs); i += 2 {
		if errors.Is(err, pairs[i]) {
			return fmt.Errorf("%w: %w", pairs[i+1], err)
		}
	}
	return err
}
