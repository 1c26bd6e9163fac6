package host

import (
	"context"
	"errors"
	"sync"

	"haggle/internal/view"
	"haggle/market"
	"haggle/nvml"
)

// Status returns the rig at a glance. What the program around it knows (version, home, network) is left empty.
func (d *Daemon) Status(ctx context.Context) (view.RigStatus, error) {
	if err := d.await(ctx); err != nil {
		return view.RigStatus{}, err
	}
	s := d.settings()
	v := view.RigStatus{
		Name: d.cfg.Name, Engine: d.engine.String(), Paused: s.Paused, Draining: s.Draining, Prices: d.prices(s),
		Leases: []view.Lease{}, Images: []string{}, Warnings: d.warnings(), Bidders: d.bidders(), Trusted: d.owners(s),
		Pays: d.pays(), Credit: limit(d.owedByAll(d.prices(s).Currency), d.cfg.Rules.Credit, d.prices(s).Currency),
	}
	var host market.HostFacts
	d.engine.describe(&host)
	v.Isolation, v.Protections, v.Weak = market.Printable(host.Isolation), host.Protections, host.Weak
	until := d.heldUntil(true)
	v.Cards = len(d.rack.all())
	for _, slot := range d.rentable(s, until) {
		if slot.LeasedUntil == 0 {
			v.Free++
		}
	}
	images, _ := d.engine.facts()
	for _, i := range images {
		v.Images = append(v.Images, market.Printable(i.Name))
	}
	leases, err := d.Leases(ctx, false)
	v.Leases = append(v.Leases, leases...)
	return v, err
}

// Cards returns the cards and what was last read of them.
func (d *Daemon) Cards(ctx context.Context) ([]view.Card, error) {
	if err := d.await(ctx); err != nil {
		return nil, err
	}
	holder := map[market.Hash]string{}
	for _, l := range d.all() {
		if s := l.snapshot(); s.Holds() {
			for _, slot := range s.Terms.Slots {
				holder[slot.Card] = s.ID.String()
			}
		}
	}
	withheld := map[string]string{}
	for _, w := range d.settings().Withheld {
		withheld[w.UUID] = market.Printable(w.Why)
	}
	d.rack.mu.Lock()
	defer d.rack.mu.Unlock()
	cards := []view.Card{}
	for _, c := range d.rack.cards {
		v := view.Card{
			Slot: int(c.index), UUID: c.UUID, Vendor: c.Vendor, Model: c.Model, MemoryGiB: (c.MemoryBytes + 1<<29) >> 30,
			Health: c.verdict.Health.String(), Simulated: c.Simulated, Lease: holder[c.hash],
			Passable: d.engine.passes(c.Card), Withheld: withheld[c.UUID], PowerLimitW: scaled(c.PowerLimitMilliWatt, 1000),
		}
		if !v.Passable {
			v.Why = "no description of how to give it to a job was found, or it is refused: `haggled doctor` says which"
		}
		if limit := (d.rack.power + 500) / 1000; limit > 0 && (v.PowerLimitW == nil || *v.PowerLimitW > limit) {
			v.PowerLimitW = &limit
		}
		if c.fresh {
			v.UtilPercent = scaled(c.last.UtilPermille, 10)
			v.MemUsedMiB = scaled(c.last.MemUsedBytes, 1<<20)
			v.PowerW = scaled(c.last.PowerMilliWatt, 1000)
			v.TempC = scaled(c.last.TemperatureC, 1)
		}
		cards = append(cards, v)
	}
	return cards, nil
}

// scaled turns a reading into whole units, rounded.
func scaled[T int | int64](o nvml.Opt[T], unit int64) *int64 {
	n := number(o)
	if n != nil {
		*n = (*n + unit/2) / unit
	}
	return n
}

// SetPrices changes the prices of leases to come. Offers that are out already are still honoured until they expire.
func (d *Daemon) SetPrices(ctx context.Context, p market.Prices) error {
	if err := p.Validate(); err != nil {
		return err
	}
	return d.decide(ctx, func(s *Settings) { s.Prices = p })
}

// Pause takes no new leases until Resume. Leases that run go on.
func (d *Daemon) Pause(ctx context.Context) error {
	return d.decide(ctx, func(s *Settings) { s.Paused = true })
}

// Resume ends Pause and Drain.
func (d *Daemon) Resume(ctx context.Context) error {
	return d.decide(ctx, func(s *Settings) { s.Paused, s.Draining = false, false })
}

// Drain takes no new leases until Resume, so that the rig is empty when the last one ends: Status shows it draining
// without leases then. With now every job is told to end, after the notice of its terms.
func (d *Daemon) Drain(ctx context.Context, now bool) error {
	if err := d.decide(ctx, func(s *Settings) { s.Draining = true }); err != nil || !now {
		return err
	}
	// A bid that passed the check before the choice is stored and listed once this lock is free.
	d.grants.Lock()
	leases := d.all()
	d.grants.Unlock()
	var wg sync.WaitGroup
	errs := make([]error, len(leases))
	for i, l := range leases {
		wg.Go(func() {
			errs[i] = l.call(func(ctx context.Context) error { return l.stop(ctx, market.Stop{Reason: market.ReasonRig}) })
			if errors.Is(errs[i], errClosed) {
				errs[i] = nil
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (d *Daemon) decide(ctx context.Context, change func(*Settings)) error {
	if err := d.await(ctx); err != nil {
		return err
	}
	return d.choose(ctx, change)
}
