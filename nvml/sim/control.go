package sim

import (
	"fmt"
	"time"

	"haggle/nvml"
)

// SetLoad gives the card a load from now on: permille of its time, 0 to 1000, and memory, from 0 to what is usable. It
// returns nvml.ErrNoCard for an unknown card and works on a card that hangs or is lost, whose readings then show it
// later.
func (d *Driver) SetLoad(uuid string, permille int, memBytes int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, err := d.find(uuid)
	if err != nil {
		return fmt.Errorf("set load: %w", err)
	}
	if d.closed {
		return fmt.Errorf("set load: %w", nvml.ErrClosed)
	}
	if usable, _ := c.info.MemoryUsableBytes.Get(); permille < 0 || permille > 1000 || memBytes < 0 || memBytes > usable {
		return fmt.Errorf("set load of card %s: %d permille and %d of %d bytes", uuid, permille, memBytes, usable)
	}
	c.body = c.physics.advance(c.body, d.now())
	c.body.permille, c.mem = permille, memBytes
	return nil
}

// Inject makes the card fail from now on and sends the event that the fault causes: at once for xid, ecc and lost, and
// at every missed deadline for hang. Xid 79, "fell off the bus", loses the card as well. It returns ErrFault for a
// fault that the card cannot have, such as ecc on a card without error correction.
func (d *Driver) Inject(uuid string, f Fault) error {
	if err := f.Validate(); err != nil {
		return fmt.Errorf("inject fault: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	c, err := d.find(uuid)
	if err != nil {
		return fmt.Errorf("inject fault: %w", err)
	}
	if d.closed {
		return fmt.Errorf("inject fault: %w", nvml.ErrClosed)
	}
	now := d.now()
	until := forever
	if f.For > 0 {
		until = now + f.For
	}
	e := nvml.HealthEvent{UUID: uuid, Kind: f.Kind, Code: f.Code, At: now}
	switch f.Kind {
	case nvml.EventXid:
		d.publish(e)
		if f.Code == 79 {
			d.lose(c, now, forever)
		}
	case nvml.EventECC:
		if on, ok := c.info.ECC.Get(); !ok || !on {
			return fmt.Errorf("inject fault: %w: card %s has no error correction", ErrFault, uuid)
		}
		c.ecc += int64(f.Code)
		d.publish(e)
	case nvml.EventLost:
		d.lose(c, now, until)
	case nvml.EventHang:
		c.hungUntil = max(c.hungUntil, until)
	}
	d.wake()
	return nil
}

// lose takes the card away until the given time. A job's work ends with it. The lock must be held.
func (d *Driver) lose(c *card, now, until time.Duration) {
	c.body = c.physics.advance(c.body, now)
	c.body.permille, c.mem = 0, 0
	c.lostUntil = max(c.lostUntil, until)
	d.publish(nvml.HealthEvent{UUID: c.info.UUID, Kind: nvml.EventLost, At: now})
}

// Reset ends every fault of the card, as a reset by its owner does: calls that hang go on, the count of memory errors
// starts again and the load is gone. The energy counter goes on.
func (d *Driver) Reset(uuid string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, err := d.find(uuid)
	if err != nil {
		return fmt.Errorf("reset: %w", err)
	}
	if d.closed {
		return fmt.Errorf("reset: %w", nvml.ErrClosed)
	}
	c.body = c.physics.advance(c.body, d.now())
	c.body.permille, c.mem, c.ecc = 0, 0, 0
	c.lostUntil, c.hungUntil, c.misses, c.noScrub = 0, 0, 0, false
	d.wake()
	return nil
}
