package p2p

import (
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

const (
	maxTrips = 4096
	tripLife = 10 * time.Minute // a machine moves, and a line gets worse
)

// trips are the shortest round trips to peers that this node measured lately, each so that the peer could not answer before it was asked:
// with bytes that nobody can guess, or on a stream that did not exist before. What libp2p's peer store has comes from answers on old
// streams too, which a peer can send ahead, to look as near as it likes.
type trips struct {
	mu sync.Mutex
	of map[peer.ID]trip
}

type trip struct {
	took time.Duration
	at   time.Time
}

// took notes a round trip.
func (t *trips) took(id peer.ID, d time.Duration, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[peer.ID]trip{}
	}
	old, known := t.of[id]
	if known && old.took <= d && now.Sub(old.at) < tripLife {
		return
	}
	if !known && len(t.of) >= maxTrips {
		for any := range t.of {
			delete(t.of, any)
			break
		}
	}
	t.of[id] = trip{d, now}
}

// shortest returns the round trip to a peer; 0 where none was measured lately.
func (t *trips) shortest(id peer.ID, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.of[id]
	if now.Sub(one.at) >= tripLife {
		return 0
	}
	return one.took
}
