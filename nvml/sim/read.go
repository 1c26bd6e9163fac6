package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"haggle/nvml"
)

var _ nvml.Driver = (*Driver)(nil)

// Info implements nvml.Driver. No fault touches it.
func (d *Driver) Info(ctx context.Context) (nvml.DriverInfo, error) {
	if err := ctx.Err(); err != nil {
		return nvml.DriverInfo{}, fmt.Errorf("describe driver: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nvml.DriverInfo{}, fmt.Errorf("describe driver: %w", nvml.ErrClosed)
	}
	return nvml.DriverInfo{Version: "simulated", CUDA: nvml.Some(12040), Library: "haggle/nvml/sim"}, nil
}

// Cards implements nvml.Driver. Like a real driver's list it waits for every card: one that hangs holds it up.
func (d *Driver) Cards(ctx context.Context) ([]nvml.Card, error) {
	var list []nvml.Card
	for _, c := range d.cards { // the slice itself never changes
		err := d.with(ctx, c, func() {
			list = append(list, c.describe())
		})
		if err != nil && !errors.Is(err, nvml.ErrLost) {
			return nil, fmt.Errorf("list cards: %w", err)
		}
	}
	if len(d.cards) == 0 {
		_, err := d.Info(ctx)
		return nil, err
	}
	return list, nil
}

// Sample implements nvml.Driver.
func (d *Driver) Sample(ctx context.Context, uuid string) (nvml.Sample, error) {
	d.mu.Lock()
	c, err := d.find(uuid)
	closed := d.closed
	d.mu.Unlock()
	if closed {
		err = nvml.ErrClosed
	} else if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return nvml.Sample{}, fmt.Errorf("sample: %w", err)
	}
	var s nvml.Sample
	if err := d.with(ctx, c, func() { s = c.sample() }); err != nil {
		return nvml.Sample{}, fmt.Errorf("sample: %w", err)
	}
	return s, nil
}

// with brings the card up to now and calls read under the lock, as soon as the card answers.
func (d *Driver) with(ctx context.Context, c *card, read func()) error {
	for {
		changed, left, err := d.try(ctx, c, read)
		if err != nil || changed == nil {
			return err
		}
		if err := d.wait(ctx, c, changed, left, true); err != nil {
			return err
		}
	}
}

// try calls read unless the card hangs; then it returns what to wait for and for how long at most.
func (d *Driver) try(ctx context.Context, c *card, read func()) (<-chan struct{}, time.Duration, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, 0, nvml.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, 0, d.late(ctx, c, false)
	}
	now := d.now()
	if now < c.lostUntil {
		return nil, 0, fmt.Errorf("card %s: %w", c.info.UUID, nvml.ErrLost)
	}
	if now < c.hungUntil {
		return d.changed, c.hungUntil - now, nil
	}
	c.misses = 0
	c.body = c.physics.advance(c.body, now)
	read()
	return nil, 0, nil
}

// wait returns nil when the card should be tried again. The end is counted on the driver's clock; should that be slower than
// the system's, the next try waits again. A deadline that passes while the card hangs is an event.
func (d *Driver) wait(ctx context.Context, c *card, changed <-chan struct{}, left time.Duration, hung bool) error {
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-changed:
		return nil
	case <-timer.C:
		return nil
	case <-ctx.Done():
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.late(ctx, c, hung)
	}
}

// late returns the error of a call whose context ended. A deadline missed because the card hung is an event: a real
// driver's watchdog reports it so. The lock must be held.
func (d *Driver) late(ctx context.Context, c *card, hung bool) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ctx.Err()
	}
	if hung && !d.closed {
		c.misses++
		d.publish(nvml.HealthEvent{UUID: c.info.UUID, Kind: nvml.EventHang, Code: c.misses, At: d.now()})
	}
	return fmt.Errorf("card %s: %w: %w", c.info.UUID, nvml.ErrTimeout, ctx.Err())
}

// describe returns the card with what depends on its load and limit: an idle link rests at its lowest generation.
func (c *card) describe() nvml.Card {
	info := c.info
	info.PowerLimitMilliWatt = nvml.Some(c.physics.most())
	info.PCIeGen = nvml.Some(1)
	if c.body.permille > 0 {
		info.PCIeGen = info.PCIeGenMax
	}
	return info
}

func (c *card) sample() nvml.Sample {
	p, b := c.physics, c.body
	usable, _ := c.info.MemoryUsableBytes.Get()
	s := nvml.Sample{
		UUID:             c.info.UUID,
		At:               b.at,
		UtilPermille:     nvml.Some(b.permille),
		MemUsedBytes:     nvml.Some(c.info.MemoryBytes - usable + c.mem),
		PowerMilliWatt:   nvml.Some(p.power(b)),
		EnergyMilliJoule: nvml.Some(b.energy),
		TemperatureC:     nvml.Some(int(b.temp)),
		ClockMHz:         nvml.Some(p.clock(b)),
		ThrottleReasons:  nvml.Some(p.throttle(b)),
		ECCUncorrected:   nvml.None[int64](nvml.NotSupported),
		ECCCorrected:     nvml.None[int64](nvml.NotSupported),
	}
	if on, ok := c.info.ECC.Get(); ok && on {
		s.ECCUncorrected, s.ECCCorrected = nvml.Some(c.ecc), nvml.Some[int64](0)
	}
	return s
}
