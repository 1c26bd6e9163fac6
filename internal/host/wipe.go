package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"haggle/market"
	"haggle/nvml"
)

// Times of what is done to a card around a job.
const (
	wipeMost    = 2 * time.Minute // to overwrite a card's memory
	powerAnswer = 5 * time.Second // to set a power limit
)

// wipe overwrites the memory of a lease's cards and gives them their own power limits back. A card whose memory could not be
// overwritten is withheld before its slot is free. An error without an event is one that passes.
func (d *Daemon) wipe(ctx context.Context, r Record) ([]market.Event, error) {
	slots := r.Lease.Terms.Slots
	cards, errs := make([]market.CardWipe, len(slots)), make([]error, len(slots))
	var wg sync.WaitGroup
	for i, s := range slots {
		wg.Go(func() { cards[i], errs[i] = d.wipeCard(ctx, s) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return []market.Event{market.Scrubbed{Cards: cards}}, nil
}

func (d *Daemon) wipeCard(ctx context.Context, s market.GrantedSlot) (market.CardWipe, error) {
	c, found := d.rack.card(s.Card)
	if !found {
		return market.NotWiped(s.Index, "the card is not in the rig any more"), nil
	}
	d.setPower(ctx, c, 0)
	scrubber, can := d.cfg.Cards.(nvml.Scrubber)
	if !can {
		if c.Simulated {
			return market.NotWiped(s.Index, "a simulated card has no memory"), nil
		}
		return market.NotWiped(s.Index, "the driver of this rig's cards cannot overwrite their memory"), nil
	}
	soon, cancel := context.WithTimeout(ctx, wipeMost)
	defer cancel()
	bytes, err := scrubber.Scrub(soon, c.UUID)
	switch {
	case err == nil:
		return market.CardWipe{Index: s.Index, Bytes: max(0, bytes)}, nil
	case errors.Is(err, nvml.ErrUnsupported):
		return market.NotWiped(s.Index, "this card's memory cannot be overwritten here"), nil
	case ctx.Err() != nil:
		return market.CardWipe{}, ctx.Err() // this program ends, and its next life begins again
	}
	d.log.Error("card is withheld: its memory was not overwritten", slog.String("gpu", c.UUID), slog.Any("err", err))
	if err := d.withhold(ctx, c.UUID, "its memory could not be overwritten: "+market.Printable(err.Error())); err != nil {
		return market.CardWipe{}, fmt.Errorf("withhold card %s: %w", c.UUID, err)
	}
	why := "it failed"
	switch {
	case errors.Is(err, nvml.ErrLost) || errors.Is(err, nvml.ErrNoCard):
		why = "the card does not answer any more"
	case errors.Is(err, context.DeadlineExceeded):
		why = "it took longer than " + wipeMost.String()
	}
	return market.NotWiped(s.Index, why+"; the card is not rented out again until its owner has seen to it"), nil
}

// limitPower bounds the power of a lease's cards as the owner wishes. A failure is the owner's matter, not the renter's: the job
// runs, and the rig's status says so.
func (d *Daemon) limitPower(ctx context.Context, r Record) {
	for _, s := range r.Lease.Terms.Slots {
		if c, found := d.rack.card(s.Card); found {
			d.setPower(ctx, c, d.cfg.PowerLimitMW)
		}
	}
}

// setPower sets a card's power limit, 0 its own default, where the owner wishes any limits.
func (d *Daemon) setPower(ctx context.Context, c nvml.Card, milliwatt int64) {
	if d.cfg.PowerLimitMW == 0 || ctx.Err() != nil {
		return
	}
	soon, cancel := context.WithTimeout(ctx, powerAnswer)
	defer cancel()
	_, err := d.cfg.Power.SetPowerLimit(soon, c.UUID, milliwatt)
	if err != nil {
		d.log.Warn("power limit", slog.String("gpu", c.UUID), slog.Int64("milliwatt", milliwatt), slog.Any("err", err))
	}
	d.rack.noteUnruly(c.UUID, err)
}

// noteUnruly remembers whether a card took its power limit.
func (r *rack) noteUnruly(uuid string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.cards {
		if c.UUID != uuid {
			continue
		}
		if c.unruly = ""; err != nil {
			c.unruly = market.Printable(err.Error())
		}
	}
}

// unruly returns the cards that did not take their power limit, with the reason.
func (r *rack) unruly() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := map[string]string{}
	for _, c := range r.cards {
		if c.unruly != "" {
			list[c.UUID] = c.unruly
		}
	}
	return list
}
