package p2p

import (
	"log/slog"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/holepunch"
)

const (
	punchTries    = 3                // that the library makes, each of at most 5 seconds
	punchPatience = 20 * time.Second // from a relayed connection's begin until its punch must have ended
	maxPunched    = 1024             // peers remembered
)

// punches follows the holes that are punched through routers.
type punches struct {
	log     *slog.Logger
	failing func() // called after each try that failed; it does not wait and asks nothing here

	mu     sync.Mutex
	ok     int
	failed int // peers, not tries
	peers  map[peer.ID]*punch
}

// punch is what is known of one peer while it is connected.
type punch struct {
	through bool      // its connection was punched
	tries   int       // that failed in this round
	rounds  int       // that failed since the last hole
	last    time.Time // when the last one failed
	begun   bool
	over    bool // nobody tries any more
	changed chan struct{}
}

func newPunches(log *slog.Logger) *punches {
	return &punches{log: log, failing: func() {}, peers: map[peer.ID]*punch{}}
}

// Trace implements libp2p's holepunch.EventTracer.
func (p *punches) Trace(e *holepunch.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch what := e.Evt.(type) {
	case *holepunch.EndHolePunchEvt:
		one := p.of(e.Remote)
		if what.Success {
			p.met(one, e.Remote)
			one.wake()
			return
		}
		p.failing()
		if one.tries++; one.tries >= punchTries && !one.through {
			if one.rounds == 0 {
				p.failed++
			}
			one.tries, one.over, one.last = 0, true, time.Now()
			one.rounds++
			p.log.Info("hole punch failed", "peer", peerText(e.Remote), "tries", punchTries)
		}
		one.wake()
	case *holepunch.ProtocolErrorEvt:
		one := p.of(e.Remote)
		one.over = true
		one.wake()
		p.log.Debug("hole punch not begun", "peer", peerText(e.Remote), "err", what.Error)
	case *holepunch.StartHolePunchEvt:
		one := p.of(e.Remote)
		one.begun, one.over = true, false
		one.wake()
	}
}

// met notes a direct connection to a peer that was connected through a relay, however it came: by a hole on both sides, or because
// one side could call once it had heard of the other. p.mu is held.
func (p *punches) met(one *punch, id peer.ID) {
	if one.through {
		return
	}
	p.ok++
	one.through, one.over, one.rounds, one.tries = true, true, 0, 0
	p.log.Info("hole punched", "peer", peerText(id))
	one.wake()
}

// connected notes a direct connection beside one through a relay.
func (p *punches) connected(id peer.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.met(p.of(id), id)
}

// of returns what is known of a peer. p.mu is held.
func (p *punches) of(id peer.ID) *punch {
	one := p.peers[id]
	if one == nil {
		if len(p.peers) >= maxPunched {
			for old := range p.peers {
				delete(p.peers, old)
				break
			}
		}
		one = &punch{changed: make(chan struct{})}
		p.peers[id] = one
	}
	return one
}

func (one *punch) wake() {
	close(one.changed)
	one.changed = make(chan struct{})
}

// forget notes that a peer is not connected any more.
func (p *punches) forget(id peer.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.peers[id]; one != nil {
		one.through, one.begun, one.over, one.tries = false, false, false, 0
	}
}

// again reports whether it is time to try once more to punch a hole to a peer: routers forget, and a try can meet an unlucky moment.
func (p *punches) again(id peer.ID, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.peers[id]
	if one == nil || one.rounds == 0 || one.through {
		return false
	}
	pauses := [...]time.Duration{30 * time.Second, 2 * time.Minute, 10 * time.Minute}
	return now.Sub(one.last) >= pauses[min(one.rounds, len(pauses))-1]
}

// vain reports whether no hole could be punched to a peer lately.
func (p *punches) vain(id peer.ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.peers[id]
	return one != nil && one.rounds > 0 && !one.through
}

func (p *punches) through(id peer.ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.peers[id]
	return one != nil && one.through
}

func (p *punches) counts() (ok, failed int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ok, p.failed
}

// punchState is how far the tries for a peer are.
type punchState uint8

const (
	punchNone punchState = iota // nobody has tried
	punchRuns
	punchOver // without a way through
)

// state returns how far the tries for a peer are, and a channel that closes when that may have changed.
func (p *punches) state(id peer.ID) (punchState, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.of(id)
	switch {
	case one.over && !one.through:
		return punchOver, one.changed
	case one.begun:
		return punchRuns, one.changed
	}
	return punchNone, one.changed
}
