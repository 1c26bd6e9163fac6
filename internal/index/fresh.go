package index

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"haggle/market"
)

// looks is what discovery does for who asks for offers: rounds, each for the buckets of a question.
type looks struct {
	mu       sync.Mutex
	rounds   map[string]chan struct{} // rounds that run, by buckets; closed at their end
	fresh    map[string]time.Time     // end of the last round, by buckets
	lookups  map[string]time.Time     // begin of the last lookup, by bucket
	pulls    map[string]time.Time     // begin of the last reading of snapshots, by bucket
	watched  map[string]time.Time     // when somebody last asked for a bucket
	pause    time.Duration            // between lookups
	notReady error                    // why the network could not be asked
}

func newLooks() looks {
	return looks{
		rounds: map[string]chan struct{}{}, fresh: map[string]time.Time{}, lookups: map[string]time.Time{},
		pulls: map[string]time.Time{}, watched: map[string]time.Time{}, pause: firstLookup,
	}
}

// keepFresh makes a round now and then, until ctx ends.
func (x *Index) keepFresh(ctx context.Context) {
	for {
		select {
		case <-x.begin(ctx, []string{market.BucketAny}, false):
		case <-ctx.Done():
			return
		}
		pause := x.cfg.Refresh
		if x.Count(x.cfg.Clock()) == 0 {
			pause = min(pause, firstLookup)
		}
		if !rest(ctx, pause) {
			return
		}
	}
}

// Refresh waits until what can answer a query is fresh, for 3 seconds at most, and reports whether it is. It goes on in the
// background after that.
func (x *Index) Refresh(ctx context.Context, q market.Query) (fresh bool) {
	buckets := q.Buckets()
	now := x.cfg.Clock()
	l := &x.looks
	l.mu.Lock()
	bound(l.watched)
	for _, b := range buckets {
		l.watched[b] = now
	}
	last, known := l.fresh[strings.Join(buckets, "\n")]
	l.mu.Unlock()
	if known && now.Sub(last) < freshFor {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, freshWait)
	defer cancel()
	select {
	case <-x.loaded: // or the round would not know whom to ask
	case <-ctx.Done():
		return false
	}
	select {
	case <-x.begin(ctx, buckets, true):
		return true
	case <-ctx.Done():
		return false
	}
}

// Reason returns why the network could not be asked, or nil.
func (x *Index) Reason() error {
	x.looks.mu.Lock()
	defer x.looks.mu.Unlock()
	return x.looks.notReady
}

// begin starts a round, or joins one that runs, and returns a channel that is closed at its end.
func (x *Index) begin(ctx context.Context, buckets []string, eager bool) <-chan struct{} {
	name, l := strings.Join(buckets, "\n"), &x.looks
	l.mu.Lock()
	done, running := l.rounds[name]
	if !running {
		done = make(chan struct{})
		l.rounds[name] = done
	}
	l.mu.Unlock()
	if running {
		return done
	}
	end := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.rounds, name)
		close(done)
	}
	err := x.spawn(ctx, func(ctx context.Context) {
		defer end()
		x.round(ctx, buckets, eager)
		l.mu.Lock()
		defer l.mu.Unlock()
		bound(l.fresh)
		l.fresh[name] = x.cfg.Clock()
	})
	if err != nil {
		end()
	}
	return done
}

// round asks whoever is known, and in parallel reads snapshots and looks rigs up where it is time. It ends when all that has answered,
// or, where offers are known, a little after the snapshots: what comes later comes all the same.
func (x *Index) round(ctx context.Context, buckets []string, eager bool) {
	asked := x.askAll(ctx, x.due(x.cfg.Clock()))
	if x.isSmall() && !slices.Contains(buckets, market.BucketAny) {
		buckets = append(slices.Clone(buckets), market.BucketAny) // it holds all
	}
	pulled, found := make(chan struct{}), make(chan market.Key, maxQueue)
	var finding sync.WaitGroup
	var looked []<-chan struct{}
	for _, b := range buckets {
		if x.takeTurn(x.looks.lookups, b, x.lookupPause(b, eager)) {
			looked = append(looked, x.look(ctx, b, lookup{found: found, finding: &finding, pulled: pulled}))
		}
	}
	if x.spawn(ctx, func(context.Context) { finding.Wait(); close(found) }) != nil {
		return
	}
	x.beginPull(ctx, buckets, found, pulled)
	x.await(ctx, append(append(asked, pulled), looked...))
}

// beginPull begins to read snapshots of the buckets whose time has come. pulled is closed at its end.
func (x *Index) beginPull(ctx context.Context, buckets []string, found <-chan market.Key, pulled chan struct{}) {
	var due []string
	for _, b := range buckets[:min(len(buckets), market.MaxSnapshotCells)] {
		if x.takeTurn(x.looks.pulls, b, pullAgain) {
			due = append(due, b)
		}
	}
	if len(due) == 0 {
		close(pulled)
		return
	}
	err := x.spawn(ctx, func(ctx context.Context) {
		defer close(pulled)
		ctx, cancel := context.WithTimeout(ctx, lookupTime)
		defer cancel()
		p := x.newPull(due, x.firstPeers(), found)
		p.wide = x.Count(x.cfg.Clock()) == 0
		if p.run(ctx) == 0 {
			x.giveTurn(x.looks.pulls, due)
			return
		}
		x.reading.deep(due[0], p.least)
	})
	if err != nil {
		close(pulled)
	}
}

// await waits for all of some channels to be closed: for long while no offer is known, and for a moment from then on.
func (x *Index) await(ctx context.Context, all []<-chan struct{}) {
	limit := time.NewTimer(lookupTime + askTime)
	defer limit.Stop()
	known := false
	for len(all) > 0 {
		var news <-chan struct{}
		if !known {
			news = x.Changed()
			if known = x.Count(x.cfg.Clock()) > 0; known {
				limit.Reset(patience)
				continue
			}
		}
		select {
		case <-all[0]:
			all = all[1:]
		case <-news:
		case <-limit.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// bound keeps a table of buckets from growing for ever: questions name few.
func bound(m map[string]time.Time) {
	if len(m) >= maxBuckets {
		clear(m)
	}
}
