package p2p

import (
	"container/list"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"haggle/market"
)

// maxPaced is how many peers' rates a protocol remembers; the one not seen longest is forgotten first.
const maxPaced = 1024

// gate counts a protocol's streams and lets in those within its limit.
type gate struct {
	limit Limit

	mu      sync.Mutex
	open    int
	perPeer map[market.Key]int
	paces   map[market.Key]*list.Element // values are *pace
	recent  *list.List                   // most recently seen first
}

type pace struct {
	peer    market.Key
	limiter *rate.Limiter
}

func newGate(limit Limit) *gate {
	return &gate{limit: limit, perPeer: map[market.Key]int{}, paces: map[market.Key]*list.Element{}, recent: list.New()}
}

// enter reports whether a peer may open one more stream now; if so, leave must follow.
func (g *gate) enter(peer market.Key, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.paced(peer, now) || g.open >= g.limit.Streams || g.perPeer[peer] >= g.limit.PerPeer {
		return false
	}
	g.open++
	g.perPeer[peer]++
	return true
}

func (g *gate) leave(peer market.Key) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
	if g.perPeer[peer]--; g.perPeer[peer] == 0 {
		delete(g.perPeer, peer)
	}
}

func (g *gate) paced(peer market.Key, now time.Time) bool {
	if g.limit.Rate <= 0 {
		return true
	}
	e, known := g.paces[peer]
	if !known {
		e = g.recent.PushFront(&pace{peer: peer, limiter: rate.NewLimiter(rate.Limit(g.limit.Rate), g.limit.Burst)})
		g.paces[peer] = e
		if g.recent.Len() > maxPaced {
			oldest := g.recent.Back()
			delete(g.paces, g.recent.Remove(oldest).(*pace).peer)
		}
	}
	g.recent.MoveToFront(e)
	return e.Value.(*pace).limiter.AllowN(now, 1)
}
