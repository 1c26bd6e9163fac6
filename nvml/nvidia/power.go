package nvidia

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"haggle/nvml"
)

// SetPowerLimit implements nvml.PowerLimiter. A limit outside what the card allows becomes the nearest that it allows; compare
// the one that is returned, which is what the driver enforces. Only root may set it: without root the error wraps
// fs.ErrPermission. The driver forgets a limit when its last user leaves a card, so it is set again whenever a child of this
// driver is replaced; after Close it may be gone.
func (d *Driver) SetPowerLimit(ctx context.Context, uuid string, milliwatt int64) (int64, error) {
	if milliwatt < 0 || milliwatt > maxLimit {
		return 0, fmt.Errorf("limit power: card %.96q: %d mW is no limit", uuid, milliwatt)
	}
	r, err := d.askCard(ctx, request{Op: opPower, UUID: uuid, MilliWatt: milliwatt})
	if err == nil && r.MilliWatt == 0 {
		err = fmt.Errorf("card %.96q: the child process answered without a limit", uuid)
	}
	if err != nil {
		return 0, fmt.Errorf("limit power: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.limits, uuid)
	if milliwatt > 0 {
		d.limits[uuid] = milliwatt
	}
	return r.MilliWatt, nil
}

// limitAgain sets the limits of these cards anew. It does not wait.
func (d *Driver) limitAgain(uuids []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	for _, uuid := range uuids {
		limit := d.limits[uuid]
		if limit == 0 {
			continue
		}
		d.loops.Go(func() {
			_, err := d.askCard(d.life, request{Op: opPower, UUID: uuid, MilliWatt: limit})
			if err != nil && !errors.Is(err, nvml.ErrClosed) {
				d.cfg.Log.Warn("power limit is not set again", slog.String("gpu", uuid), slog.Any("err", err))
			}
		})
	}
}
