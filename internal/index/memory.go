package index

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"haggle/market"
)

// Remembered is what is kept of a rig for the next life. Times are Unix milliseconds, 0 is never.
type Remembered struct {
	Rig       market.Key
	Addrs     []string // multiaddrs; at most 16
	FirstSeen int64
	Heard     int64 // the last answer of its own
	Used      int64 // the last word of it or about it
	Failures  int
	Marked    int64    // it contradicted itself and is left out until then
	Offers    [][]byte // sealed; at most 32
}

// Store keeps what an index remembers. Its methods may be called concurrently.
type Store interface {
	// RememberedRigs returns the rigs that were used last, at most so many, the newest first.
	RememberedRigs(ctx context.Context, most int) ([]Remembered, error)
	// RememberRigs adds or replaces rigs and returns when each was first seen, which may be earlier than it says. Of more rigs than it
	// keeps it drops those that were not used for longest.
	RememberRigs(ctx context.Context, rigs []Remembered) (firstSeen []int64, err error)
}

// recall takes up what the last life remembered: offers that are still valid are there at once, and their rigs are the first to be
// asked.
func (x *Index) recall(ctx context.Context) {
	if x.cfg.Store == nil {
		return
	}
	rigs, err := x.cfg.Store.RememberedRigs(ctx, loadRigs)
	if err != nil {
		if ctx.Err() == nil {
			x.log.Warn("remembered rigs cannot be read", "err", err)
		}
		return
	}
	now := x.cfg.Clock()
	var raws [][]byte
	for _, m := range rigs {
		if m.Rig == x.cfg.Self {
			continue
		}
		x.recallRig(m, now)
		raws = append(raws, m.Offers...)
		if len(m.Addrs) > 0 {
			x.cfg.Net.Remember(m.Rig, m.Addrs)
		}
	}
	x.take(x.open(raws), x.cfg.Self, FromMemory, now)
}

// recallRig makes a remembered rig known, to be asked in the order in which it was heard of.
func (x *Index) recallRig(m Remembered, now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(m.Offers) == 0 && m.Marked <= now.UnixMilli() {
		return // it is known to the store when it was first seen
	}
	r := x.rig(m.Rig, now)
	if r == nil {
		return
	}
	r.first, r.warm = time.UnixMilli(m.FirstSeen), true
	r.told = time.UnixMilli(m.Used)
	if m.Marked > 0 {
		r.marked = time.UnixMilli(m.Marked)
	}
}

// keepMemory writes what has changed every few seconds, and once more at the end.
func (x *Index) keepMemory(ctx context.Context) {
	if x.cfg.Store == nil {
		return
	}
	for rest(ctx, flushEvery) {
		x.flush(ctx)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTime)
	defer cancel()
	x.flush(last)
}

// flush writes what has changed since it was last written, a part at a time.
func (x *Index) flush(ctx context.Context) {
	x.locate()
	for {
		changed := x.changes()
		if len(changed) == 0 {
			return
		}
		for i := range changed {
			changed[i].Addrs = x.cfg.Net.AddrsOf(changed[i].Rig)
		}
		x.noteLost(changed)
		first, err := x.cfg.Store.RememberRigs(ctx, changed)
		if err != nil {
			if ctx.Err() == nil {
				x.log.Warn("rigs cannot be remembered", "err", err)
			}
			return // they are written when they change again
		}
		x.remembered(changed, first)
		if len(changed) < flushRigs {
			return
		}
	}
}

// noteLost notes of which rigs no address is known: a rig's offer comes before its address where somebody else's shelf had it.
func (x *Index) noteLost(rigs []Remembered) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, m := range rigs {
		if r := x.rigs[m.Rig]; r != nil {
			r.lost = len(m.Addrs) == 0
		}
	}
}

// locate has those rigs written again that were written without an address and have one by now: a part of them at a time.
func (x *Index) locate() {
	var lost []market.Key
	x.mu.Lock()
	for key, r := range x.rigs {
		if r.lost && !r.dirty {
			if lost = append(lost, key); len(lost) == flushRigs {
				break
			}
		}
	}
	x.mu.Unlock()
	for _, key := range lost {
		if len(x.cfg.Net.AddrsOf(key)) == 0 {
			continue
		}
		x.mu.Lock()
		if r := x.rigs[key]; r != nil {
			r.dirty = true
		}
		x.mu.Unlock()
	}
}

// changes takes the rigs of which something is to be written, those heard of last first.
func (x *Index) changes() []Remembered {
	x.mu.Lock()
	defer x.mu.Unlock()
	var list []Remembered
	for key, r := range x.rigs {
		if r.dirty && key != x.cfg.Self {
			list = append(list, r.memory(key))
		}
	}
	slices.SortFunc(list, func(a, b Remembered) int {
		return cmp.Or(cmp.Compare(b.Used, a.Used), bytes.Compare(a.Rig[:], b.Rig[:]))
	})
	list = list[:min(len(list), flushRigs)]
	for _, m := range list {
		x.rigs[m.Rig].dirty = false
	}
	return list
}

func (r *rig) memory(key market.Key) Remembered {
	m := Remembered{
		Rig: key, FirstSeen: r.first.UnixMilli(), Used: max(millis(r.told), millis(r.heard)), Heard: millis(r.heard), Failures: r.failures,
		Marked: millis(r.marked),
	}
	for _, e := range r.offers {
		if !e.gone {
			m.Offers = append(m.Offers, e.Raw)
		}
	}
	return m
}

// millis is a time in Unix milliseconds, 0 for none.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// remembered takes from the store when rigs were first seen.
func (x *Index) remembered(rigs []Remembered, first []int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, m := range rigs[:min(len(rigs), len(first))] {
		if r := x.rigs[m.Rig]; r != nil && first[i] > 0 && first[i] < r.first.UnixMilli() {
			r.first = time.UnixMilli(first[i])
			x.touch(m.Rig)
		}
	}
}
