package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"haggle/nvml"
)

var (
	_ nvml.Scrubber     = (*Driver)(nil)
	_ nvml.PowerLimiter = (*Driver)(nil)
)

// scrubSpeed is how much memory a simulated card overwrites in a second, on the driver's clock.
const scrubSpeed = 500_000_000_000

// ErrScrub is the error of a scrub that FailScrubs lets fail.
var ErrScrub = errors.New("simulated fault while scrubbing")

// SetPowerLimit implements nvml.PowerLimiter. A card can be limited to between a quarter of its own limit, or what it draws
// when idle, and its own limit; outside of these the nearest is taken. A limited card draws no more, and runs slower under a
// load that would.
func (d *Driver) SetPowerLimit(ctx context.Context, uuid string, milliwatt int64) (int64, error) {
	c, err := d.known(ctx, uuid)
	if err == nil && milliwatt < 0 {
		err = fmt.Errorf("card %s: %d mW is no limit", uuid, milliwatt)
	}
	now := int64(0)
	if err == nil {
		err = d.with(ctx, c, func() {
			p := &c.physics
			now = p.busy
			if milliwatt > 0 {
				now = min(max(milliwatt, p.idle, p.busy/4), p.busy)
			}
			p.cap = now
		})
	}
	if err != nil {
		return 0, fmt.Errorf("limit power: %w", err)
	}
	return now, nil
}

// Scrub implements nvml.Scrubber. It takes a short time on the driver's clock and reaches all memory that the load leaves free.
func (d *Driver) Scrub(ctx context.Context, uuid string) (int64, error) {
	c, err := d.known(ctx, uuid)
	bytes := int64(0)
	if err == nil {
		bytes, err = d.scrub(ctx, c)
	}
	if err != nil {
		return 0, fmt.Errorf("scrub: %w", err)
	}
	return bytes, nil
}

func (d *Driver) scrub(ctx context.Context, c *card) (int64, error) {
	end := time.Duration(-1)
	for {
		var bytes int64
		var left time.Duration
		var changed <-chan struct{}
		var fault error
		err := d.with(ctx, c, func() {
			usable, _ := c.info.MemoryUsableBytes.Get()
			bytes = usable - c.mem
			if end < 0 {
				end = c.body.at + time.Duration(float64(bytes)/scrubSpeed*float64(time.Second))
			}
			left, changed = end-c.body.at, d.changed
			if c.noScrub {
				fault = fmt.Errorf("card %s: %w", c.info.UUID, ErrScrub)
			}
		})
		switch {
		case err != nil:
			return 0, err
		case fault != nil:
			return 0, fault
		case left <= 0:
			return bytes, nil
		}
		if err := d.wait(ctx, c, changed, left, false); err != nil {
			return 0, err
		}
	}
}

// known returns the card, unless the call has ended before it began.
func (d *Driver) known(ctx context.Context, uuid string) (*card, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, err := d.find(uuid)
	switch {
	case d.closed:
		return nil, nvml.ErrClosed
	case ctx.Err() != nil && err == nil:
		return nil, d.late(ctx, c, false)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return c, err
}

// FailScrubs lets every scrub of the card fail with ErrScrub, also one that runs, until Reset. It returns nvml.ErrNoCard for an
// unknown card.
func (d *Driver) FailScrubs(uuid string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, err := d.find(uuid)
	if err != nil {
		return fmt.Errorf("fail scrubs: %w", err)
	}
	if d.closed {
		return fmt.Errorf("fail scrubs: %w", nvml.ErrClosed)
	}
	c.noScrub = true
	d.wake()
	return nil
}
