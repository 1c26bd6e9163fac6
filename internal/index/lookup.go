package index

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"haggle/market"
)

// lookup is what a lookup of a bucket has to do with the rest of its round.
type lookup struct {
	found   chan<- market.Key // takes who may be asked for a snapshot, as far as there is room
	finding *sync.WaitGroup   // counts lookups that may still find somebody
	pulled  <-chan struct{}   // closed when the snapshots have been read
}

// isSmall reports whether every rig is asked itself.
func (x *Index) isSmall() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.rigs) <= smallMarket
}

// due returns the rigs to be asked again, those that answered lately first: of a small market all, else those of an earlier life,
// once.
func (x *Index) due(now time.Time) []market.Key {
	x.mu.Lock()
	defer x.mu.Unlock()
	small := len(x.rigs) <= smallMarket
	var keys []market.Key
	for key, r := range x.rigs {
		pause := min(x.cfg.Refresh<<min(r.failures, 10), maxAskPause)
		if (small || r.warm) && (r.failures == 0 || now.Sub(r.asked) >= pause) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b market.Key) int {
		x, y := x.rigs[a], x.rigs[b]
		return cmp.Or(cmp.Compare(x.failures, y.failures), y.heard.Compare(x.heard), y.told.Compare(x.told), bytes.Compare(a[:], b[:]))
	})
	if !small {
		keys = keys[:min(len(keys), warmRigs)]
	}
	return keys
}

// askAll begins to ask rigs, one after the other as there is room, and returns what ends with their answers.
func (x *Index) askAll(ctx context.Context, rigs []market.Key) []<-chan struct{} {
	done := make(chan struct{})
	err := x.spawn(ctx, func(ctx context.Context) {
		defer close(done)
		var asked []<-chan struct{}
		for _, key := range rigs {
			one, ok := x.begun(ctx, key, freshFor)
			if one != nil {
				asked = append(asked, one)
			}
			if !ok {
				break
			}
		}
		for _, one := range asked {
			<-one // soon: a question takes askTime at most
		}
	})
	if err != nil {
		close(done)
	}
	return []<-chan struct{}{done}
}

// look begins a lookup. The channel is closed when everyone it found, and who is to be asked, has answered.
func (x *Index) look(ctx context.Context, bucket string, l lookup) <-chan struct{} {
	done := make(chan struct{})
	l.finding.Add(1)
	err := x.spawn(ctx, func(ctx context.Context) {
		defer close(done)
		x.lookup(ctx, bucket, l)
	})
	if err != nil {
		l.finding.Done()
		close(done)
	}
	return done
}

// lookup asks the network who announced itself in a bucket, and those among them of whom nobody has told for their offers.
func (x *Index) lookup(ctx context.Context, bucket string, l lookup) {
	ended := sync.OnceFunc(l.finding.Done)
	defer ended()
	wait, cancel := context.WithTimeout(ctx, readyTime)
	err := x.cfg.Net.Ready(wait)
	cancel()
	if ctx.Err() != nil {
		return
	}
	keys := make(chan market.Key, maxFound)
	checked := make(chan struct{})
	if x.spawn(ctx, func(ctx context.Context) {
		defer close(checked)
		x.crossCheck(ctx, keys, l.pulled)
	}) != nil {
		return
	}
	count := 0
	if err == nil {
		finding, cancel := context.WithTimeout(ctx, lookupTime)
		defer cancel()
		var tail *time.Timer
		for key := range x.cfg.Net.Find(finding, bucket) {
			if count++; count > maxFound {
				break
			}
			if tail == nil {
				// Whoever keeps announcements of the bucket keeps all of them, and a few are asked at a time.
				tail = time.AfterFunc(lookupTail, cancel)
				defer tail.Stop()
			}
			keys <- key
			select {
			case l.found <- key:
			default: // enough wait already
			}
		}
	}
	close(keys)
	ended()
	x.looked(bucket, count, err)
	<-checked
}

// maxFound bounds the rigs of one lookup.
const maxFound = 1024

// looked notes how a lookup ended.
func (x *Index) looked(bucket string, count int, err error) {
	l := &x.looks
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notReady = err
	if bucket == market.BucketAny {
		l.pause = min(2*l.pause, lookupEvery)
		if count == 0 {
			l.pause = firstLookup
		}
	}
	if err == nil {
		x.reading.top(bucket, count)
	}
}

// crossCheck asks rigs that the network names: all of a small market, else those that no snapshot had. What snapshots tell comes
// first, for a while.
func (x *Index) crossCheck(ctx context.Context, keys <-chan market.Key, pulled <-chan struct{}) {
	hold := time.NewTimer(holdAsks)
	defer hold.Stop()
	select {
	case <-pulled:
	case <-hold.C:
	case <-ctx.Done():
		return
	}
	most := topChecks
	if len(x.sources.proven(1)) == 0 {
		most = maxFound // nobody tells of others: each is to speak for itself
	}
	var asked []<-chan struct{}
	checks := 0
	for key := range keys {
		if !x.isSmall() {
			if x.hasOffers(key) {
				continue
			}
			if checks++; checks > most {
				continue
			}
		}
		done, ok := x.begun(ctx, key, freshFor)
		if done != nil {
			asked = append(asked, done)
		}
		if !ok {
			break
		}
	}
	for _, done := range asked {
		<-done
	}
}

func (x *Index) hasOffers(key market.Key) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.rigs[key]
	return r != nil && len(r.offers) > 0
}

// lookupPause is the time between two lookups of a bucket.
func (x *Index) lookupPause(bucket string, eager bool) time.Duration {
	small := x.isSmall()
	x.looks.mu.Lock()
	defer x.looks.mu.Unlock()
	pause := lookupEvery
	switch {
	case bucket == market.BucketAny && small:
		pause = x.looks.pause
	case !eager && !small:
		pause = idleLookup
	}
	if eager {
		pause = min(pause, eagerLookup)
	}
	return pause
}

// takeTurn reports whether it is time to do something for a bucket, and notes that it is done now.
func (x *Index) takeTurn(last map[string]time.Time, bucket string, pause time.Duration) bool {
	now := x.cfg.Clock()
	x.looks.mu.Lock()
	defer x.looks.mu.Unlock()
	if at, ok := last[bucket]; ok && now.Sub(at) < pause {
		return false
	}
	bound(last)
	last[bucket] = now
	return true
}

// giveTurn notes that nothing came of what was done for some buckets: the next round may try again.
func (x *Index) giveTurn(last map[string]time.Time, buckets []string) {
	x.looks.mu.Lock()
	defer x.looks.mu.Unlock()
	for _, b := range buckets {
		delete(last, b)
	}
}
