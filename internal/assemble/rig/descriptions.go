//go:build linux

package rig

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"haggle/runtime/device"
)

// describeEvery is how often the driver is asked how its cards reach a job. It answers from memory unless its version or the list
// of cards has changed.
const describeEvery = time.Minute

// describer is a driver that knows how its cards reach a job.
type describer interface {
	// Specs returns CDI specs, as JSON.
	Specs(ctx context.Context) ([][]byte, error)
}

// descriptions hand the driver's own descriptions of its cards to the engine. The driver may come later, or never.
type descriptions struct {
	log     *slog.Logger
	devices *device.Devices // set before keep runs

	mu     sync.Mutex
	driver describer
	came   chan struct{} // closed when the driver is there
}

func newDescriptions(log *slog.Logger) *descriptions {
	return &descriptions{log: log, came: make(chan struct{})}
}

// use tells which driver it is. The first one stays.
func (d *descriptions) use(driver describer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.driver == nil {
		d.driver = driver
		close(d.came)
	}
}

// specs asks the driver; without one there are only the files.
func (d *descriptions) specs(ctx context.Context) ([][]byte, error) {
	d.mu.Lock()
	driver := d.driver
	d.mu.Unlock()
	if driver == nil {
		return nil, nil
	}
	return driver.Specs(ctx)
}

// keep follows what the driver says, from the moment that there is one until ctx ends.
func (d *descriptions) keep(ctx context.Context) {
	select {
	case <-d.came:
	case <-ctx.Done():
		return
	}
	for told := ""; ctx.Err() == nil; {
		now := ""
		if err := d.devices.Refresh(ctx); err != nil && ctx.Err() == nil {
			now = err.Error()
		}
		if now != told && now != "" {
			d.log.Warn("cards cannot all be passed to jobs", "err", now)
		}
		told = now
		select {
		case <-time.After(describeEvery):
		case <-ctx.Done():
		}
	}
}
