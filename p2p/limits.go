package p2p

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"haggle/market"
)

// How much more than one peer those may open in a second who share something. A farm of dozens of rigs has one owner and often one
// address, and behind a carrier's translator thousands of households have one (RFC 6598), few of which rent at once.
const (
	ownerPace  = 32
	narrowPace = 64  // an IPv4 address; a /64 and a /56 of IPv6
	widePace   = 256 // a /24 of IPv4; a /48 of IPv6
	allPace    = 1024
)

// fullAfter is what callers are told to wait where no rate says it: until a stream has ended.
const fullAfter = time.Second

// gate counts a protocol's streams and lets in those within its limits. Its methods may be called by any goroutine.
type gate struct {
	limit Limit
	known func(market.Key) bool

	mu     sync.Mutex
	shares *shares
	peers  *paces[market.Key] // nil: no rate
	owners *paces[market.Key]
	narrow *paces[netip.Prefix]
	wide   *paces[netip.Prefix]
	all    *rate.Limiter
}

// refusal says why a stream was not let in.
type refusal struct {
	after time.Duration // when to try again
	own   bool          // the peer itself asked too often or holds too many, whatever others do
}

func newGate(limit Limit, known func(market.Key) bool) *gate {
	g := &gate{limit: limit, known: known, shares: newShares(limit)}
	if r := limit.Rate; r > 0 {
		g.peers = newPaces[market.Key](r, limit.Burst)
		g.owners = newPaces[market.Key](ownerPace*r, ownerPace*limit.Burst)
		g.narrow = newPaces[netip.Prefix](narrowPace*r, narrowPace*limit.Burst)
		g.wide = newPaces[netip.Prefix](widePace*r, widePace*limit.Burst)
		g.all = rate.NewLimiter(rate.Limit(allPace*r), allPace*limit.Burst)
	}
	return g
}

// enter gives a caller a seat, which it must leave, or says why not. evict is called, under the gate's lock, where the seat goes to
// somebody else before that.
func (g *gate) enter(c caller, now time.Time, evict func()) (*seat, refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if after, own, ok := g.paced(c, now); !ok {
		return nil, refusal{after, own}
	}
	g.recognise()
	own := g.shares.peers[c.peer] >= g.limit.PerPeer
	if x := g.shares.take(c, evict); x != nil {
		return x, refusal{}
	}
	return nil, refusal{fullAfter, own}
}

// recognise looks, where strangers have to be told from others because little is left, which of them have come to a lease.
func (g *gate) recognise() {
	s := g.shares
	if s.open < g.limit.Streams/2 {
		return
	}
	for i := len(s.seats) - 1; i >= 0; i-- {
		if x := s.seats[i]; g.known(x.peer) {
			s.know(x)
		}
	}
}

func (g *gate) leave(x *seat) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shares.leave(x)
}

// paced takes a token of everybody whom a caller shares a rate with, the caller first.
func (g *gate) paced(c caller, now time.Time) (after time.Duration, own, ok bool) {
	if g.peers == nil {
		return 0, false, true
	}
	peer := g.peers.of(c.peer)
	if peer.TokensAt(now) < 1 {
		after, _ := takeAll([]*rate.Limiter{peer}, now)
		return after, true, false
	}
	buckets := []*rate.Limiter{peer}
	if !c.known {
		if c.owner != c.peer {
			buckets = append(buckets, g.owners.of(c.owner))
		}
		for i, net := range c.nets {
			if i < len(c.nets)-1 {
				buckets = append(buckets, g.narrow.of(net))
			} else {
				buckets = append(buckets, g.wide.of(net))
			}
		}
		if len(c.nets) > 0 {
			buckets = append(buckets, g.all)
		}
	}
	after, ok = takeAll(buckets, now)
	return after, false, ok
}
