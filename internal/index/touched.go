package index

import (
	"slices"
	"strings"
	"time"

	"haggle/market"
)

// touched are the rigs of which something has changed that Held tells. Who keeps a copy asks for these and not for all again.
type touched struct {
	rigs map[market.Key]struct{}
	all  bool // too many to be named
}

// touch notes that something of a rig has changed. A shelf is asked as it is, and nobody copies it. The index is locked.
func (x *Index) touch(key market.Key) {
	t := &x.touched
	switch {
	case x.serves() || t.all:
	case len(t.rigs) >= x.cfg.MaxRigs:
		*t = touched{all: true} // nobody asks, or not for long
	default:
		if t.rigs == nil {
			t.rigs = map[market.Key]struct{}{}
		}
		t.rigs[key] = struct{}{}
	}
}

// Touched returns the rigs of which something has changed that Held tells, since the last call: each once, those that are gone
// included. It returns all that are known, and true, where they are too many to be told apart: then those that are not among them are
// gone. It serves one reader.
func (x *Index) Touched() (rigs []market.Key, all bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	all = x.touched.all
	if all {
		for key := range x.rigs {
			rigs = append(rigs, key)
		}
	}
	for key := range x.touched.rigs {
		rigs = append(rigs, key)
	}
	x.touched = touched{}
	return rigs, all
}

// Held returns the offers of a rig that are listed while they are valid, by id: other than Of it does not look at the time.
func (x *Index) Held(key market.Key) (offers []*Known) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.rigs[key]
	if r == nil || r.silent() {
		return nil
	}
	for _, e := range r.offers {
		if !e.gone && e.Offer.State != market.OfferWithdrawn {
			offers = append(offers, known(r, e))
		}
	}
	slices.SortFunc(offers, func(a, b *Known) int { return strings.Compare(a.Offer.ID, b.Offer.ID) })
	return offers
}

// Tally counts the rigs as Live does.
func (x *Index) Tally(now time.Time) (tally Tally) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, r := range x.rigs {
		switch {
		case r.silent():
			tally.Silent++
		case !now.Before(r.marked):
			tally.Listed++
		}
	}
	return tally
}
