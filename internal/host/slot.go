package host

import (
	"haggle/market"
	"haggle/nvml"
)

// fit reports whether a card's health lets it be rented.
func (c *card) fit() bool { return c.verdict.Health != nvml.Fence && !c.verdict.Drain }

// rentable describes the cards that may be rented, with the wall time until which leases hold them: those that are fit, that the
// owner does not withhold, and that the engine can give to a job.
func (d *Daemon) rentable(s Settings, until map[market.Hash]int64) []market.Slot {
	return d.rack.describe(until, func(c *card) bool { return c.fit() && !s.withholds(c.UUID) && d.engine.passes(c.Card) })
}

// shown describes the cards that could be rented if the engine could give them to a job.
func (d *Daemon) shown(s Settings, until map[market.Hash]int64) []market.Slot {
	return d.rack.describe(until, func(c *card) bool { return c.fit() && !s.withholds(c.UUID) })
}

// everything describes all cards, the unfit too.
func (r *rack) everything(until map[market.Hash]int64) []market.Slot {
	return r.describe(until, func(*card) bool { return true })
}

func (r *rack) describe(until map[market.Hash]int64, take func(*card) bool) []market.Slot {
	r.mu.Lock()
	defer r.mu.Unlock()
	var slots []market.Slot
	for _, c := range r.cards {
		if take(c) {
			s := slotOf(c, until[c.hash])
			if r.power > 0 && (s.PowerLimit == nil || *s.PowerLimit > r.power) {
				limit := r.power
				s.PowerLimit = &limit
			}
			slots = append(slots, s)
		}
	}
	return slots
}

func slotOf(c *card, until int64) market.Slot {
	s := market.Slot{
		Index: c.index, Kind: market.SlotCard, Card: c.hash, Vendor: c.Vendor, Model: c.Model, RawModel: c.RawName,
		Memory: c.MemoryBytes, Usable: c.MemoryBytes, Health: c.verdict.Health.String(), LeasedUntil: until,
		Compute: number(c.ComputeCapability), PCIeGen: number(c.PCIeGenMax), PCIeWidth: number(c.PCIeWidthMax),
		PowerLimit: number(c.PowerLimitMilliWatt), ECC: known(c.ECC), Display: known(c.DisplayAttached),
	}
	if usable, ok := c.MemoryUsableBytes.Get(); ok {
		s.Usable = usable
	}
	return s
}

// loader is what a driver of simulated cards has beside nvml.Driver: no real job makes them busy.
type loader interface {
	SetLoad(uuid string, permille int, memBytes int64) error
}

// The load that a job puts on a simulated card.
const (
	simulatedPermille = 900
	simulatedMemory   = 2 // one part in
)

// setLoad makes a simulated card as busy as a job would, or idle.
func (r *rack) setLoad(hash market.Hash, busy bool) error {
	c, found := r.card(hash)
	driver, ok := r.driver.(loader)
	if !found || !ok || !c.Simulated {
		return nil
	}
	if !busy {
		return driver.SetLoad(c.UUID, 0, 0)
	}
	return driver.SetLoad(c.UUID, simulatedPermille, slotOf(&card{Card: c}, 0).Usable/simulatedMemory)
}

// number turns a reading into an optional number of a record.
func number[T int | int64](o nvml.Opt[T]) *int64 {
	v, ok := o.Get()
	if !ok {
		return nil
	}
	n := int64(v)
	return &n
}

// known turns a reading into an optional fact of a record.
func known[T any](o nvml.Opt[T]) *T {
	v, ok := o.Get()
	if !ok {
		return nil
	}
	return &v
}
