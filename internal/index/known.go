package index

import (
	"slices"
	"strings"
	"time"

	"haggle/market"
)

// Source says who told of an offer.
type Source uint8

// The sources, the best first.
const (
	FromOwner    Source = iota // its rig told it
	FromSnapshot               // somebody else's shelf had it
	FromMemory                 // it was kept from an earlier life
)

// String names a source as queries do.
func (s Source) String() string {
	switch s {
	case FromOwner:
		return market.SourceOwner
	case FromSnapshot:
		return market.SourceSnapshot
	default:
		return market.SourceRemembered
	}
}

// Statement is one verified offer. Once others see it it never changes.
type Statement struct {
	Offer market.Offer
	Raw   []byte      // sealed
	Hash  market.Hash // of the signed body

	homes []home // where it belongs; nil where nobody asks
}

// Known is an offer as the index knows it at one moment.
type Known struct {
	*Statement
	Source    Source
	Heard     time.Time // when it was last heard from that source
	Sources   int       // how many peers told of this statement, 8 at most
	FirstSeen time.Time // when the index first heard of its rig, in any life
	Answered  time.Time // when its rig last answered itself; zero: not in this life
	Failures  int       // questions that the rig left without an answer since

	before []market.Hash // as in entry
}

// Named reports whether the beginning of a hash, in hexadecimal digits, names the offer, or named it before it was renewed for no
// higher price.
func (k *Known) Named(prefix string) bool {
	return strings.HasPrefix(k.Hash.String(), prefix) ||
		slices.ContainsFunc(k.before, func(h market.Hash) bool { return strings.HasPrefix(h.String(), prefix) })
}

// entry is an offer's place in the index. The index is locked.
type entry struct {
	*Statement
	source Source
	heard  time.Time
	told   []market.Key // who told of the statement, at most maxTold
	until  int64        // Unix milliseconds: the end of this statement's life, and of the one that it withdraws
	seq    uint64       // its place in arrivals; 0 is none
	gone   bool         // its rig no longer gives it, though it has not expired
	// before are the hashes of the statements that it renews, the newest last, back to where a price was lower: a person
	// may name the offer as a list named it a while ago, and gets it for no more than the list said. It is never written to.
	before []market.Hash
}

// renews notes that a statement takes the place of the one that the entry has.
func (e *entry) renews(s *Statement) {
	now, then := s.Offer.Prices, e.Offer.Prices
	if now.Currency != then.Currency || now.Slot > then.Slot || now.Disk > then.Disk || now.In > then.In || now.Out > then.Out {
		e.before = nil
		return
	}
	e.before = append(slices.Clone(e.before[max(0, len(e.before)-maxRenewals+1):]), e.Hash)
}

// heardFrom notes who told of an entry's statement.
func (e *entry) heardFrom(from market.Key, source Source, now time.Time) {
	if source == FromMemory {
		now = time.UnixMilli(e.Offer.Issued) // when it was last heard nobody knows any more
	}
	if source <= e.source {
		e.source, e.heard = source, now
	}
	if len(e.told) < maxTold && source != FromMemory && !slices.Contains(e.told, from) {
		e.told = append(e.told, from)
	}
}

// rig is what the index knows of one rig.
type rig struct {
	offers   map[string]*entry // by the rig's own id for the offer, withdrawn ones included
	first    time.Time         // when it was first heard of, in any life
	born     time.Time         // in this life
	heard    time.Time         // its last answer
	told     time.Time         // the last word about it
	asked    time.Time         // the last question
	failures int               // questions without an answer since
	marked   time.Time         // left out until then
	warm     bool              // remembered, and not asked in this life
	dirty    bool              // what is remembered of it is to be written
	lost     bool              // it was written without an address
	proofs   []*entry          // two statements that contradict each other, while it is marked
	called   string            // its own name, as it said it last
	by       teller            // on whose word it is known, while it has not answered itself
	clock    clock
}

// silent reports whether a rig does not answer.
func (r *rig) silent() bool { return r.failures >= silentRig || r.heard.IsZero() && len(r.offers) == 0 }

// listed reports whether a rig's offers are shown.
func (r *rig) listed(now time.Time) bool { return !r.silent() && !now.Before(r.marked) }
