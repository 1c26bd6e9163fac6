package renter

import (
	"bytes"
	"cmp"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"haggle/market"
)

// Bounds of the index: a rig that floods takes no more than its share, and all together no more than fits.
const (
	maxOffersPerRig = 32
	maxOffers       = 10_000
	maxRigs         = 4096
	forgetRig       = 30 * time.Minute    // without an answer
	markRig         = market.MaxOfferLife // a rig that contradicts itself is left out until both statements have expired
	silentRig       = 2                   // failed questions in a row after which a rig's offers are not listed
	maxAskPause     = 5 * time.Minute
)

// known is one verified offer. Once others see it it never changes.
type known struct {
	raw   []byte
	hash  market.Hash // of the signed body
	offer market.Offer
	// before are the hashes of the statements that it renews, the newest last, back to where a price was lower: a person
	// may name the offer as a list named it a while ago, and gets it for no more than the list said.
	before []market.Hash
}

// maxRenewals bounds the earlier names of an offer: a day and a half of renewals.
const maxRenewals = 512

// renews notes that an offer takes the place of another.
func (k *known) renews(old *known) {
	now, then := k.offer.Prices, old.offer.Prices
	if now.Currency != then.Currency || now.Slot > then.Slot || now.Disk > then.Disk || now.In > then.In || now.Out > then.Out {
		return
	}
	k.before = append(slices.Clone(old.before[max(0, len(old.before)-maxRenewals+1):]), old.hash)
}

// isNamed reports whether the beginning of a hash names the offer.
func (k *known) isNamed(prefix string) bool {
	return strings.HasPrefix(k.hash.String(), prefix) ||
		slices.ContainsFunc(k.before, func(h market.Hash) bool { return strings.HasPrefix(h.String(), prefix) })
}

// rig is what the index knows of one rig.
type rig struct {
	offers   map[string]*known      // by the rig's own id for the offer, withdrawn ones included
	byRaw    map[market.Hash]*known // by the hash of the sealed bytes: unchanged bytes are not verified again
	heard    time.Time              // last answer
	asked    time.Time              // last question
	failures int                    // questions without an answer since
	marked   time.Time              // left out until then
	clock    clock
}

// index holds the newest verified offers by rig. It is safe for concurrent use.
type index struct {
	network string
	log     *slog.Logger

	mu    sync.Mutex
	rigs  map[market.Key]*rig
	count int       // offers of all rigs
	fresh time.Time // end of the last round of questions
}

func newIndex(network string, log *slog.Logger) *index {
	return &index{network: network, log: log, rigs: map[market.Key]*rig{}}
}

// ask notes that a rig is being asked and reports whether it should be: not if it answered within the time given, nor if
// there are too many rigs already.
func (x *index) ask(key market.Key, now time.Time, within time.Duration) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	r, ok := x.rigs[key]
	switch {
	case !ok && len(x.rigs) >= maxRigs:
		return false
	case !ok:
		r = &rig{}
		x.rigs[key] = r
	case !r.asked.IsZero() && now.Sub(r.asked) < within:
		return false
	}
	r.asked = now
	return true
}

// due returns the rigs to be asked again, and forgets those that have been silent for long.
func (x *index) due(now time.Time, every time.Duration) []market.Key {
	x.mu.Lock()
	defer x.mu.Unlock()
	var keys []market.Key
	for key, r := range x.rigs {
		pause := min(every<<min(r.failures, 10), maxAskPause)
		switch {
		case r.failures > 0 && now.Sub(r.heard) > forgetRig && r.failures > silentRig:
			x.count -= len(r.offers)
			delete(x.rigs, key)
		case r.failures == 0 || now.Sub(r.asked) >= pause:
			keys = append(keys, key)
		}
	}
	return keys
}

// failed notes that a rig did not answer.
func (x *index) failed(key market.Key) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if r := x.rigs[key]; r != nil {
		r.failures++
	}
}

// answered takes a rig's whole answer: what is not in it is no longer offered.
func (x *index) answered(key market.Key, raws [][]byte, now time.Time) {
	cached := x.cached(key)
	byRaw := map[market.Hash]*known{}
	var answer []*known
	for _, raw := range raws[:min(len(raws), maxOffersPerRig)] {
		name := market.HashOf(raw)
		k := cached[name]
		if k == nil {
			if k = x.verify(key, raw); k == nil {
				continue
			}
		}
		byRaw[name] = k
		answer = append(answer, k)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.rigs[key]
	if r == nil {
		if len(x.rigs) >= maxRigs {
			return
		}
		r = &rig{}
		x.rigs[key] = r
	}
	r.heard, r.failures, r.byRaw = now, 0, byRaw
	x.guess(key, r, skewOf(answer, now))
	x.replace(key, r, answer, now)
}

func (x *index) cached(key market.Key) map[market.Hash]*known {
	x.mu.Lock()
	defer x.mu.Unlock()
	if r := x.rigs[key]; r != nil {
		return r.byRaw // replaced as a whole, never written to
	}
	return nil
}

func (x *index) verify(key market.Key, raw []byte) *known {
	o, s, err := market.OpenOffer(x.network, raw)
	if err == nil && o.Rig != key {
		err = market.NewError(market.CodeBadSignature, "kind", string(market.KindOffer), "role", string(market.RoleRig))
	}
	if err != nil {
		x.log.Debug("offer is not valid", "peer", key.String(), "err", err)
		return nil
	}
	return &known{raw: raw, hash: s.Hash(), offer: o}
}

// replace puts a rig's answer in the place of what it said before. The newest of each offer wins; two different bodies of
// one number are a contradiction, after which the rig is not believed for a while.
func (x *index) replace(key market.Key, r *rig, answer []*known, now time.Time) {
	next := map[string]*known{}
	x.count -= len(r.offers)
	room := maxOffers - x.count
	for _, k := range answer {
		old := next[k.offer.ID]
		if old == nil {
			old = r.offers[k.offer.ID]
		}
		switch {
		case old != nil && old.offer.Seq == k.offer.Seq && old.hash != k.hash:
			x.log.Warn("rig signed two offers with one number", "peer", key.String(), "offer", k.offer.ID)
			r.marked, r.offers = now.Add(markRig), nil
			return
		case old != nil && old.offer.Seq >= k.offer.Seq:
			k = old
		case old != nil:
			k.renews(old)
		}
		if expired := now.UnixMilli() >= k.offer.Expires; expired || len(next) >= room {
			continue
		}
		next[k.offer.ID] = k
	}
	r.offers = next
	x.count += len(next)
}

// refreshed notes the end of a round of questions.
func (x *index) refreshed(now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.fresh = now
}

// age returns the time since the last round of questions.
func (x *index) age(now time.Time) time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.fresh.IsZero() {
		return time.Duration(1<<63 - 1)
	}
	return now.Sub(x.fresh)
}

// live returns the offers that are open now, in a fixed order, with the number of rigs that answer and that do not.
func (x *index) live(now time.Time) (offers []*known, answering, silent int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, r := range x.rigs {
		switch {
		case r.failures >= silentRig || r.heard.IsZero():
			silent++
			continue
		case now.Before(r.marked):
			continue
		}
		answering++
		for _, k := range r.offers {
			if k.offer.CheckAge(now.UnixMilli()) == nil {
				offers = append(offers, k)
			}
		}
	}
	slices.SortFunc(offers, func(a, b *known) int {
		return cmp.Or(bytes.Compare(a.offer.Rig[:], b.offer.Rig[:]), strings.Compare(a.offer.ID, b.offer.ID))
	})
	return offers, answering, silent
}
