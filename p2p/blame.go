package p2p

import (
	"container/list"
	"math"
	"time"

	"haggle/market"
)

// How a peer's faults become a block. A score of 100 is ten frames of garbage within minutes; see demerits.
const (
	defaultBlockAbove = 100
	scoreHalf         = 10 * time.Minute // in which a score halves
	maxScores         = 1024             // peers whose faults are remembered; the one blamed longest ago is forgotten first
	firstBlock        = 10 * time.Minute // doubled with each further block
	lastBlock         = 24 * time.Hour
	forgiven          = 24 * time.Hour // after its end a block is forgotten, and the next one is short again
	maxBlocked        = 4096           // keys are free: those whose block ends first make room
)

// score is how a peer has behaved.
type score struct {
	peer   market.Key
	points float64
	at     time.Time // of points
}

// decayed returns the points at a later time.
func (s *score) decayed(now time.Time) float64 {
	return s.points * math.Exp2(-float64(now.Sub(s.at))/float64(scoreHalf))
}

// blocked is a peer that may not call until a time, and one that might not a while ago.
type blocked struct {
	by    BlockedBy
	why   string
	until time.Time     // zero: until it is unblocked
	last  time.Duration // of the newest block for faults
}

func (b *blocked) holds(now time.Time) bool { return b.until.IsZero() || now.Before(b.until) }

// blame adds to a peer's score, and blocks it where that becomes too much. Peers that are known are never blocked for what they do: a
// lease is ended by its own rules.
func (a *access) blame(peer market.Key, points float64, now time.Time) {
	if a.above <= 0 || points <= 0 || a.known(peer) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	e, ok := a.scores[peer]
	if !ok {
		e = a.recent.PushFront(&score{peer: peer, at: now})
		a.scores[peer] = e
		if a.recent.Len() > maxScores {
			a.forget(a.recent.Back())
		}
	}
	a.recent.MoveToFront(e)
	s := e.Value.(*score)
	s.points, s.at = s.decayed(now)+points, now
	if s.points < a.above {
		return
	}
	a.forget(e)
	old := a.blocked[peer]
	if old != nil && old.holds(now) {
		return
	}
	d := firstBlock
	if old != nil && old.last > 0 && now.Sub(old.until) < forgiven {
		d = min(2*old.last, lastBlock)
	}
	a.keepOut(peer, &blocked{by: BlockedByScore, why: "it broke the rules of the protocol again and again", until: now.Add(d), last: d}, now)
}

// set blocks a peer because this machine's user says so.
func (a *access) set(peer market.Key, d time.Duration, why string, now time.Time) {
	b := &blocked{by: BlockedByUser, why: why}
	if d > 0 {
		b.until = now.Add(d)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keepOut(peer, b, now)
}

// keepOut is called with a.mu held.
func (a *access) keepOut(peer market.Key, b *blocked, now time.Time) {
	a.blocked[peer] = b
	if len(a.blocked) > maxBlocked {
		a.makeRoom(now)
	}
	select {
	case a.out <- peer:
	default: // its streams are reset all the same
	}
}

// makeRoom forgets blocks that are over, and else the one of this program's own that ends first.
func (a *access) makeRoom(now time.Time) {
	var first market.Key
	for k, b := range a.blocked {
		if b.by != BlockedByScore {
			continue
		}
		if !b.holds(now) && now.Sub(b.until) >= forgiven {
			delete(a.blocked, k)
			continue
		}
		if first.IsZero() || b.until.Before(a.blocked[first].until) {
			first = k
		}
	}
	if len(a.blocked) > maxBlocked && !first.IsZero() {
		delete(a.blocked, first)
	}
}

func (a *access) unset(peer market.Key, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e, ok := a.scores[peer]; ok {
		a.forget(e)
	}
	b := a.blocked[peer]
	delete(a.blocked, peer)
	return b != nil && b.holds(now)
}

func (a *access) forget(e *list.Element) {
	delete(a.scores, a.recent.Remove(e).(*score).peer)
}
