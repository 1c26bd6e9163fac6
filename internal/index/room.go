package index

import (
	"net/netip"
	"time"

	"haggle/market"
)

// Keys cost nothing, so a bound on each rig alone bounds nothing: whoever fills an index with rigs that do not exist keeps the others
// out. What an index holds is therefore bounded in bytes, by owner, and by who tells of rigs that have not answered themselves; and a rig
// that answers takes the place of one that is only talked about.
const (
	bytesPerOffer = 1536 // on the average; one has 900
	leastBytes    = 4 << 20
	ownerShare    = 8   // one owner's offers are at most one part in so many
	leastOfOwner  = 256 // unless the index is small: a farm has that many
	hearsayShare  = 8   // rigs that rest on the word of one peer, or of its network, are at most one part in so many
	leastHearsay  = 512
)

// room is what an index holds, by those who might take more than their share.
type room struct {
	bytes   int
	owners  map[market.Key]int // offers
	tellers map[teller]int     // rigs that have not answered themselves
}

// teller is a peer that tells of others, or the network of addresses from which it does: who has one has many keys.
type teller struct {
	key market.Key
	net netip.Prefix
}

func newRoom() room { return room{owners: map[market.Key]int{}, tellers: map[teller]int{}} }

// tellerOf names a peer for what it tells. Addresses of private networks and of relays tell nobody apart.
func (x *Index) tellerOf(from market.Key, source Source) teller {
	net, ok := x.cfg.Net.(interface{ AddressOf(market.Key) netip.Addr })
	if source != FromSnapshot || !ok {
		return teller{key: from}
	}
	addr := net.AddressOf(from).Unmap().WithZone("")
	if !addr.IsGlobalUnicast() || addr.IsPrivate() {
		return teller{key: from}
	}
	bits := 48 // a customer's network (RIPE-690)
	if addr.Is4() {
		bits = 24
	}
	prefix, err := addr.Prefix(bits)
	if err != nil {
		return teller{key: from}
	}
	return teller{net: prefix}
}

// hold counts a statement that is held now. The index is locked.
func (x *Index) hold(s *Statement) {
	x.room.bytes += len(s.Raw)
	x.room.owners[s.Offer.Owner]++
}

// release counts a statement that is held no more. The index is locked.
func (x *Index) release(s *Statement) {
	x.room.bytes -= len(s.Raw)
	if x.room.owners[s.Offer.Owner]--; x.room.owners[s.Offer.Owner] == 0 {
		delete(x.room.owners, s.Offer.Owner)
	}
}

// fits reports whether there is room for a statement, in addition or in the place of an older one. A rig's own always fits on its shelf.
// The index is locked.
func (x *Index) fits(s, old *Statement, source Source) bool {
	if s.Offer.Rig == x.cfg.Self {
		return true
	}
	more, owner := len(s.Raw), x.room.owners[s.Offer.Owner]
	if old != nil {
		more -= len(old.Raw)
		if old.Offer.Owner == s.Offer.Owner {
			owner--
		}
	}
	if owner >= x.cfg.MaxOfOwner {
		return false
	}
	full := func() bool { return old == nil && x.count >= x.cfg.MaxOffers || x.room.bytes+more > x.cfg.MaxBytes }
	if full() && source == FromOwner {
		x.makeWay(s.Offer.Rig)
	}
	return !full()
}

// heardOf returns what is known of a rig that a peer tells of, nil where there is no room for one more. The index is locked.
func (x *Index) heardOf(key market.Key, by teller, source Source, now time.Time) *rig {
	if source == FromOwner {
		return x.asked(key, now)
	}
	r := x.rigs[key]
	if source != FromSnapshot || r != nil && (r.by != (teller{}) || !r.heard.IsZero() || len(r.offers) > 0) {
		return x.rig(key, now)
	}
	if x.room.tellers[by] >= x.cfg.MaxHearsay {
		return nil
	}
	if r = x.rig(key, now); r != nil {
		r.by = by
		x.room.tellers[by]++
	}
	return r
}

// asked returns what is known of a rig that is asked itself, nil where there is no room for one more. The index is locked.
func (x *Index) asked(key market.Key, now time.Time) *rig {
	r := x.rig(key, now)
	if r == nil {
		x.makeWay(key)
		r = x.rig(key, now)
	}
	return r
}

// spoke notes that a rig speaks for itself, or is forgotten. The index is locked.
func (x *Index) spoke(r *rig) {
	if r.by == (teller{}) {
		return
	}
	if x.room.tellers[r.by]--; x.room.tellers[r.by] == 0 {
		delete(x.room.tellers, r.by)
	}
	r.by = teller{}
}

// makeWay forgets one rig whose offers others told of and that has not answered in this life, if there is one among a few that are looked
// at, for one that is asked itself. The index is locked.
func (x *Index) makeWay(but market.Key) {
	looked := 0
	for key, r := range x.rigs {
		if r.heard.IsZero() && len(r.offers) > 0 && key != but && key != x.cfg.Self {
			x.forget(key, r)
			x.news = true
			return
		}
		if looked++; looked == 64 {
			return
		}
	}
}
