package index

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"haggle/market"
)

// Tally counts rigs.
type Tally struct {
	Listed int // whose offers are shown, or that answer and offer nothing
	Silent int // that do not answer
}

// Live returns the offers that are open now, by rig and id, and counts the rigs. Those of blocked rigs and owners are left out.
func (x *Index) Live(now time.Time) (offers []*Known, tally Tally) {
	offers, tally = x.listed(now)
	offers = slices.DeleteFunc(offers, func(k *Known) bool { return !x.admits(k) })
	slices.SortFunc(offers, func(a, b *Known) int {
		return cmp.Or(bytes.Compare(a.Offer.Rig[:], b.Offer.Rig[:]), strings.Compare(a.Offer.ID, b.Offer.ID))
	})
	return offers, tally
}

func (x *Index) admits(k *Known) bool {
	return x.cfg.Net.Admits(k.Offer.Rig) && x.cfg.Net.Admits(k.Offer.Owner)
}

func (x *Index) listed(now time.Time) (offers []*Known, tally Tally) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, r := range x.rigs {
		if r.silent() {
			tally.Silent++
			continue
		}
		if now.Before(r.marked) {
			continue
		}
		tally.Listed++
		for _, e := range r.offers {
			if e.live(now) {
				offers = append(offers, known(r, e))
			}
		}
	}
	return offers, tally
}

// Of returns the open offers of one rig as they are known now, by id.
func (x *Index) Of(key market.Key, now time.Time) (offers []*Known) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.rigs[key]
	if r == nil || !r.listed(now) {
		return nil
	}
	for _, e := range r.offers {
		if e.live(now) {
			offers = append(offers, known(r, e))
		}
	}
	slices.SortFunc(offers, func(a, b *Known) int { return strings.Compare(a.Offer.ID, b.Offer.ID) })
	return offers
}

// Count returns the number of offers that Live would return.
func (x *Index) Count(now time.Time) (n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, r := range x.rigs {
		if !r.listed(now) {
			continue
		}
		for _, e := range r.offers {
			if e.live(now) {
				n++
			}
		}
	}
	return n
}

// OwnerOf returns the owner that a rig's newest offer names; zero where none is known.
func (x *Index) OwnerOf(key market.Key) (owner market.Key) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if r := x.rigs[key]; r != nil {
		var seq int64
		for _, e := range r.offers {
			if e.Offer.Seq > seq {
				seq, owner = e.Offer.Seq, e.Offer.Owner
			}
		}
	}
	return owner
}

// FirstSeen returns when a rig was first heard of, in any life that is remembered; zero where it never was.
func (x *Index) FirstSeen(key market.Key) time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	if r := x.rigs[key]; r != nil {
		return r.first
	}
	return time.Time{}
}

// live reports whether an offer is open at a time.
func (e *entry) live(now time.Time) bool { return !e.gone && e.Offer.CheckAge(now.UnixMilli()) == nil }

// known makes what others may hold of an entry. The index is locked.
func known(r *rig, e *entry) *Known {
	return &Known{
		Statement: e.Statement, Source: e.source, Heard: e.heard, Sources: len(e.told), FirstSeen: r.first,
		Answered: r.heard, Failures: r.failures, before: e.before,
	}
}
