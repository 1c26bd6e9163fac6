package index

import (
	"math/rand/v2"
	"sync"
	"time"

	"haggle/market"
)

// sources is what is known of peers as sources of snapshots.
type sources struct {
	mu   sync.Mutex
	good map[market.Key]time.Time // when they last served one
	bad  map[market.Key]time.Time // until when they are not asked
}

func newSources() sources {
	return sources{good: map[market.Key]time.Time{}, bad: map[market.Key]time.Time{}}
}

// served notes that a peer served a snapshot.
func (s *sources) served(key market.Key, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.good[key]; !ok && len(s.good) >= maxSources {
		dropOldest(s.good)
	}
	s.good[key] = now
}

// shun notes that a peer is not to be asked for a while.
func (s *sources) shun(key market.Key, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.bad[key]; !ok && len(s.bad) >= maxSources {
		dropOldest(s.bad)
	}
	delete(s.good, key)
	s.bad[key] = until
}

// failed notes that a peer did not serve, which may be no fault of its own.
func (s *sources) failed(key market.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.good, key)
}

func (s *sources) shunned(key market.Key, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Before(s.bad[key])
}

// proven returns up to n peers that served a snapshot, in no order.
func (s *sources) proven(n int) []market.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := make([]market.Key, 0, len(s.good))
	for key := range s.good {
		keys = append(keys, key)
	}
	rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys[:min(n, len(keys))]
}

func dropOldest(m map[market.Key]time.Time) {
	var oldest market.Key
	var at time.Time
	for key, t := range m {
		if at.IsZero() || t.Before(at) {
			oldest, at = key, t
		}
	}
	delete(m, oldest)
}
