package renter

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
func skewOf(answer []*known, now time.Time) time.Duration {
	var newest *market.Offer
	for _, k := range answer {
		if k.offer.State == market.OfferOpen && (newest == nil || k.offer.Issued > newest.Issued) {
			newest = &k.offer
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
func (x *index) guess(key market.Key, r *rig, skew time.Duration) {
	if skew != 0 || !r.clock.exact {
		x.note(key, r, clock{skew: skew})
	}
}

// timed notes what time a rig said it is.
func (x *index) timed(key market.Key, skew time.Duration) {
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
func (x *index) note(key market.Key, r *rig, c clock) {
	switch before := r.clock.skew; {
	case before == 0 && c.skew != 0:
		x.log.Warn("clocks differ", "peer", key.String(), "skew", c.skew.Round(time.Second))
	case before != 0 && c.skew == 0:
		x.log.Info("clocks agree again", "peer", key.String())
	}
	r.clock = c
}

// skewed is a rig whose clock differs.
type skewed struct {
	rig  string // key and, where it is known, name
	skew time.Duration
}

// skews returns the rigs that answer and whose clocks differ, in a fixed order.
func (x *index) skews() []skewed {
	x.mu.Lock()
	defer x.mu.Unlock()
	var list []skewed
	for key, r := range x.rigs {
		if r.clock.skew == 0 || r.failures >= silentRig {
			continue
		}
		list = append(list, skewed{r.called(key), r.clock.skew.Round(time.Second)})
	}
	slices.SortFunc(list, func(a, b skewed) int { return cmp.Compare(a.rig, b.rig) })
	return list
}

// called names a rig for people.
func (r *rig) called(key market.Key) string {
	for _, k := range r.byRaw {
		if k.offer.Name != "" {
			return market.Printable(k.offer.Name) + " (" + key.Short() + ")"
		}
	}
	return key.Short()
}

// sentence says in words how a clock differs.
func (s skewed) sentence() string {
	if s.skew < 0 {
		return "the clock of " + s.rig + " is " + (-s.skew).String() + " behind this machine's"
	}
	return "the clock of " + s.rig + " is " + s.skew.String() + " ahead of this machine's"
}
