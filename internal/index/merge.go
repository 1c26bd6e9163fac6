package index

import (
	"time"

	"haggle/market"
)

// verdict is what a merge made of one statement.
type verdict uint8

const (
	passedOver verdict = iota // it is older than what is held, has expired or finds no room
	confirmed                 // it is held already
	taken                     // it is new
	contradicted
)

// take merges statements that a peer told. It reports how many were new.
func (x *Index) take(list []*Statement, from market.Key, source Source, now time.Time) (news int) {
	x.admit(list)
	by := x.tellerOf(from, source)
	x.mu.Lock()
	defer x.mu.Unlock()
	defer x.tell()
	for _, s := range list {
		if s != nil && x.merge(s, from, by, source, now) == taken {
			news++
		}
	}
	return news
}

// admit takes out the offers of those whom this program has blocked.
func (x *Index) admit(list []*Statement) {
	for i, s := range list {
		if s != nil && !(x.cfg.Net.Admits(s.Offer.Rig) && x.cfg.Net.Admits(s.Offer.Owner)) {
			list[i] = nil
		}
	}
}

// merge puts a statement into its place. The newest of each offer wins; of one number two different statements are a contradiction,
// after which the rig is not believed for a while. The index is locked.
func (x *Index) merge(s *Statement, from market.Key, by teller, source Source, now time.Time) verdict {
	o := &s.Offer
	if now.UnixMilli() >= o.Expires || source != FromOwner && o.Issued > now.Add(market.MaxClockSkew).UnixMilli() {
		return passedOver
	}
	r := x.heardOf(o.Rig, by, source, now)
	if r == nil || now.Before(r.marked) {
		return passedOver
	}
	r.told = now
	old := r.offers[o.ID]
	switch {
	case old == nil:
		if len(r.offers) >= maxOffersPerRig || !x.fits(s, nil, source) {
			return passedOver
		}
		old = &entry{source: source}
		if r.offers == nil {
			r.offers = map[string]*entry{}
		}
		r.offers[o.ID] = old
		x.count++
	case old.Offer.Seq == o.Seq && old.Hash != s.Hash:
		x.contradict(r, old.Statement, s, now)
		return contradicted
	case old.Offer.Seq == o.Seq:
		x.touch(o.Rig)
		x.news = x.news || source < old.source
		old.heardFrom(from, source, now)
		if source == FromOwner && old.gone {
			old.gone, x.news = false, true
		}
		return confirmed
	case old.Offer.Seq > o.Seq:
		return passedOver
	case !x.fits(s, old.Statement, source):
		return passedOver
	default:
		old.renews(s)
		x.release(old.Statement)
		delete(x.byName, nameOf(old.Raw))
	}
	x.place(r, old, s, from, source, now)
	return taken
}

// place gives an entry its new statement. The index is locked.
func (x *Index) place(r *rig, e *entry, s *Statement, from market.Key, source Source, now time.Time) {
	e.until = max(e.until, s.Offer.Expires) // a withdrawal is passed on for as long as what it withdraws is
	if s.Offer.State != market.OfferWithdrawn {
		e.until = s.Offer.Expires
	}
	// A clock that is years ahead, or says so, gets no place for years.
	e.until = min(e.until, now.Add(market.MaxOfferLife+market.MaxClockSkew).UnixMilli())
	x.hold(s)
	e.Statement, e.source, e.told, e.gone = s, source, nil, false
	e.heardFrom(from, source, now)
	x.byName[nameOf(s.Raw)] = s
	if x.serves() {
		x.arrivals.add(e)
	}
	r.dirty = r.dirty || x.cfg.Store != nil
	x.touch(s.Offer.Rig)
	x.news = true
}

// rig returns what is known of a rig, nil where there is no room for one more. The index is locked.
func (x *Index) rig(key market.Key, now time.Time) *rig {
	r := x.rigs[key]
	if r == nil && len(x.rigs) >= x.cfg.MaxRigs {
		x.makeRoom()
	}
	if r == nil && len(x.rigs) < x.cfg.MaxRigs {
		r = &rig{first: now, born: now}
		x.rigs[key] = r
	}
	return r
}

// makeRoom forgets one rig without offers, if there is one among a few that are looked at: who only was found, or has left, makes
// room for who offers something. The index is locked.
func (x *Index) makeRoom() {
	looked := 0
	for key, r := range x.rigs {
		if len(r.offers) == 0 && !x.cfg.Clock().Before(r.marked) {
			x.forget(key, r)
			return
		}
		if looked++; looked == 64 {
			return
		}
	}
}

// contradict marks a rig that signed two statements of one number, and keeps them as the proof, which whoever asks for a snapshot
// gets: he then sees the same. The index is locked.
func (x *Index) contradict(r *rig, a, b *Statement, now time.Time) {
	x.log.Warn("rig signed two offers with one number", "peer", a.Offer.Rig.String(), "offer", a.Offer.ID)
	for id := range r.offers {
		x.drop(r, id)
	}
	r.marked, r.dirty = now.Add(markRig), x.cfg.Store != nil
	if x.serves() && len(r.proofs) == 0 && x.proofs < maxProofs {
		x.proofs++
		until := r.marked.UnixMilli()
		for _, s := range []*Statement{a, b} {
			e := &entry{Statement: s, until: min(until, s.Offer.Expires)}
			x.arrivals.add(e)
			r.proofs = append(r.proofs, e)
		}
	}
}

// answered takes a rig's whole answer: what is not in it is no longer offered.
func (x *Index) answered(key market.Key, raws [][]byte, now time.Time) {
	list := x.open(raws[:min(len(raws), maxOffersPerRig)])
	for i, s := range list {
		if s == nil || s.Offer.Rig != key {
			x.log.Debug("offer is not valid", "peer", key.String())
			list[i] = nil
		}
	}
	x.admit(list)
	x.mu.Lock()
	defer x.mu.Unlock()
	defer x.tell()
	r := x.heardOf(key, teller{}, FromOwner, now)
	if r == nil {
		return
	}
	r.heard, r.told, r.failures, r.warm = now, now, 0, false
	x.touch(key)
	x.spoke(r)
	r.dirty = x.cfg.Store != nil
	x.guess(key, r, skewOf(list, now))
	given := map[string]bool{}
	for _, s := range list {
		if s == nil {
			continue
		}
		// A newer word that cannot be taken, because it has expired already, takes back the older one all the same.
		e, said := r.offers[s.Offer.ID], x.merge(s, key, teller{}, FromOwner, now)
		given[s.Offer.ID] = said != passedOver || e != nil && e.Offer.Seq > s.Offer.Seq
	}
	for id, e := range r.offers {
		if !given[id] && !e.gone {
			e.gone, x.news = true, true
		}
	}
	if key == x.cfg.Self {
		return
	}
	r.called = calledBy(list, r.called)
}

// failed notes that a rig did not answer.
func (x *Index) failed(key market.Key) {
	x.mu.Lock()
	defer x.mu.Unlock()
	defer x.tell()
	if r := x.rigs[key]; r != nil {
		r.failures++
		r.warm = false
		x.touch(key)
		x.news = x.news || r.failures == silentRig && len(r.offers) > 0
	}
}
