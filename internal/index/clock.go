package index

import (
	"cmp"
	"slices"
	"time"

	"haggle/market"
)

// clock is what is known of a rig's clock: how far it is ahead of this side's, 0 while it is near enough.
type clock struct {
	skew  time.Duration
	exact bool // the rig said what time it is; otherwise its offers told
}

// skewOf returns how far a rig's clock must be ahead or behind, by the newest offer of an answer that has just come: rigs
// renew their offers every few minutes. It is 0 where the offers look right.
func skewOf(answer []*Statement, now time.Time) time.Duration {
	var newest *market.Offer
	for _, s := range answer {
		if s != nil && s.Offer.State == market.OfferOpen && (newest == nil || s.Offer.Issued > newest.Issued) {
			newest = &s.Offer
		}
	}
	if newest == nil {
		return 0
	}
	ahead := time.Duration(newest.Issued-now.UnixMilli()) * time.Millisecond
	if ahead > market.MaxClockSkew || now.UnixMilli() >= newest.Expires {
		return ahead
	}
	return 0
}

// guess notes what a rig's answer tells of its clock. What the rig itself said of it is better known. The index is locked.
func (x *Index) guess(key market.Key, r *rig, skew time.Duration) {
	if skew != 0 || !r.clock.exact {
		x.note(key, r, clock{skew: skew})
	}
}

// Timed notes what time a rig said it is: how far its clock is ahead of this side's.
func (x *Index) Timed(key market.Key, skew time.Duration) {
	if skew.Abs() <= market.MaxClockSkew {
		skew = 0
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if r := x.rigs[key]; r != nil {
		x.note(key, r, clock{skew: skew, exact: true})
	}
}

// note keeps what is known of a clock and logs it when a clock goes wrong or right.
func (x *Index) note(key market.Key, r *rig, c clock) {
	switch before := r.clock.skew; {
	case before == 0 && c.skew != 0:
		x.log.Warn("clocks differ", "peer", key.String(), "skew", c.skew.Round(time.Second))
	case before != 0 && c.skew == 0:
		x.log.Info("clocks agree again", "peer", key.String())
	}
	r.clock = c
}

// Skewed is a rig whose clock differs.
type Skewed struct {
	Rig  string        // key and, where it is known, name; printable
	Skew time.Duration // how far it is ahead
}

// Skews returns the rigs that answer and whose clocks differ, in a fixed order.
func (x *Index) Skews() []Skewed {
	x.mu.Lock()
	defer x.mu.Unlock()
	var list []Skewed
	for key, r := range x.rigs {
		if r.clock.skew == 0 || r.failures >= silentRig {
			continue
		}
		name := key.Short()
		if r.called != "" {
			name = market.Printable(r.called) + " (" + name + ")"
		}
		list = append(list, Skewed{name, r.clock.skew.Round(time.Second)})
	}
	slices.SortFunc(list, func(a, b Skewed) int { return cmp.Compare(a.Rig, b.Rig) })
	return list
}

// calledBy returns the name that a rig gives itself in an answer, or the one that it gave before.
func calledBy(answer []*Statement, before string) string {
	for _, s := range answer {
		if s != nil && s.Offer.Name != "" {
			return s.Offer.Name
		}
	}
	return before
}

// Sentence says in words how a clock differs.
func (s Skewed) Sentence() string {
	if s.Skew < 0 {
		return "the clock of " + s.Rig + " is " + (-s.Skew).String() + " behind this machine's"
	}
	return "the clock of " + s.Rig + " is " + s.Skew.String() + " ahead of this machine's"
}
