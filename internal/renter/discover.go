package renter

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"haggle/market"
)

// Times and bounds of discovery.
const (
	anyBucket   = "any"                   // where every rig announces itself
	asksAtOnce  = 16                      // rigs asked at the same time
	askTime     = 3 * time.Second         // for one rig's answer
	readyTime   = 2500 * time.Millisecond // for the network; below freshWait, so that its reason is known in time
	lookupTime  = 10 * time.Second        // for one lookup
	firstLookup = time.Second             // between lookups while nothing is known; doubles to lookupEvery
	lookupEvery = 30 * time.Second
	eagerLookup = 5 * time.Second // between lookups while somebody asks for offers
	patience    = time.Second     // for lookups, where rigs are known already: a peer that went silent can hold one up
	freshFor    = 2 * time.Second // an index of this age is fresh
	freshWait   = 3 * time.Second // what somebody who asks for offers waits at most for a fresh one
	maxBuckets  = 64
)

// discovery keeps the index fresh. A round asks every rig that is known and, when it is time, looks for others.
type discovery struct {
	net    Network
	index  *index
	cfg    Config
	spawn  func(context.Context, func(context.Context)) error
	asking chan struct{} // holds one token for each rig that is being asked

	mu       sync.Mutex
	rounds   map[string]chan struct{}     // rounds that run, by bucket; closed at their end
	flying   map[market.Key]chan struct{} // questions that run, by rig; closed at their end
	lookups  map[string]time.Time         // begin of the last lookup, by bucket
	pause    time.Duration                // between lookups
	notReady error                        // why the network could not be asked
}

func newDiscovery(cfg Config, x *index, spawn func(context.Context, func(context.Context)) error) *discovery {
	return &discovery{
		net: cfg.Net, index: x, cfg: cfg, spawn: spawn, asking: make(chan struct{}, asksAtOnce),
		rounds: map[string]chan struct{}{}, flying: map[market.Key]chan struct{}{}, lookups: map[string]time.Time{}, pause: firstLookup,
	}
}

// run makes a round now and then, until ctx ends.
func (d *discovery) run(ctx context.Context) {
	for {
		select {
		case <-d.begin(ctx, anyBucket, false):
		case <-ctx.Done():
			return
		}
		pause := d.cfg.Refresh
		if offers, _, _ := d.index.live(d.cfg.Clock()); len(offers) == 0 {
			pause = min(pause, firstLookup)
		}
		if !rest(ctx, pause) {
			return
		}
	}
}

// refresh waits until the index is fresh, for a while at most, and reports whether it is. The bucket is looked up too if
// it is not the one that holds all.
func (d *discovery) refresh(ctx context.Context, bucket string) bool {
	if d.index.age(d.cfg.Clock()) < freshFor && (bucket == anyBucket || !d.takeLookup(bucket, true, false)) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, freshWait)
	defer cancel()
	select {
	case <-d.begin(ctx, bucket, true):
		return true
	case <-ctx.Done():
		return false
	}
}

// begin starts a round, or joins one that runs, and returns a channel that is closed at its end.
func (d *discovery) begin(ctx context.Context, bucket string, eager bool) <-chan struct{} {
	d.mu.Lock()
	done, running := d.rounds[bucket]
	if !running {
		done = make(chan struct{})
		d.rounds[bucket] = done
	}
	d.mu.Unlock()
	if running {
		return done
	}
	end := func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.rounds, bucket)
		close(done)
	}
	err := d.spawn(ctx, func(ctx context.Context) {
		defer end()
		d.round(ctx, bucket, eager)
	})
	if err != nil {
		end()
	}
	return done
}

func (d *discovery) round(ctx context.Context, bucket string, eager bool) {
	due := d.index.due(d.cfg.Clock(), d.cfg.Refresh)
	var lookups []<-chan struct{}
	for _, b := range []string{bucket, anyBucket} {
		if d.takeLookup(b, eager, true) {
			lookups = append(lookups, d.look(ctx, b))
		}
	}
	d.askAll(ctx, slices.Values(due))
	wait := lookupTime + askTime
	if len(due) > 0 {
		wait = patience
	}
	limit := time.NewTimer(wait)
	defer limit.Stop()
	for _, done := range lookups {
		select {
		case <-done:
		case <-limit.C:
			limit.Reset(0)
		case <-ctx.Done():
		}
	}
	d.index.refreshed(d.cfg.Clock())
}

// askAll asks rigs for their offers as they come and waits for their answers.
func (d *discovery) askAll(ctx context.Context, rigs iter.Seq[market.Key]) (count int) {
	var asked []<-chan struct{}
	for key := range rigs {
		done, ok := d.begun(ctx, key)
		if done != nil {
			asked = append(asked, done)
		}
		if count++; !ok || count >= maxRigs {
			break
		}
	}
	for _, done := range asked {
		<-done // soon: a question takes askTime at most
	}
	return count
}

// look begins a lookup. The channel is closed when everyone it found has answered.
func (d *discovery) look(ctx context.Context, bucket string) <-chan struct{} {
	done := make(chan struct{})
	err := d.spawn(ctx, func(ctx context.Context) {
		defer close(done)
		d.lookup(ctx, bucket)
	})
	if err != nil {
		close(done)
	}
	return done
}

// begun asks a rig, or joins a question that runs: another round may have the same rig. The channel is closed when it has
// answered; it is nil where the rig need not be asked. It reports whether ctx still runs.
func (d *discovery) begun(ctx context.Context, key market.Key) (<-chan struct{}, bool) {
	d.mu.Lock()
	if done := d.flying[key]; done != nil {
		d.mu.Unlock()
		return done, true
	}
	if !d.index.ask(key, d.cfg.Clock(), freshFor) {
		d.mu.Unlock()
		return nil, true
	}
	done := make(chan struct{})
	d.flying[key] = done
	d.mu.Unlock()
	end := func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.flying, key)
		close(done)
	}
	select {
	case d.asking <- struct{}{}:
	case <-ctx.Done():
		end()
		return done, false
	}
	err := d.spawn(ctx, func(ctx context.Context) {
		defer end()
		defer func() { <-d.asking }()
		d.ask(ctx, key)
	})
	if err != nil {
		<-d.asking
		end()
	}
	return done, err == nil
}

// takeLookup reports whether it is time to look a bucket up, and notes that it is done now if take is true.
func (d *discovery) takeLookup(bucket string, eager, take bool) bool {
	now := d.cfg.Clock()
	d.mu.Lock()
	defer d.mu.Unlock()
	last, ok := d.lookups[bucket]
	pause := d.pause
	if bucket != anyBucket {
		pause = lookupEvery
	}
	if eager {
		pause = min(pause, eagerLookup)
	}
	if ok && now.Sub(last) < pause {
		return false
	}
	if !take {
		return true
	}
	if len(d.lookups) >= maxBuckets {
		clear(d.lookups)
	}
	d.lookups[bucket] = now
	return true
}

// lookup asks the network who announced itself in a bucket, and each of them for its offers, as they come.
func (d *discovery) lookup(ctx context.Context, bucket string) {
	wait, cancel := context.WithTimeout(ctx, readyTime)
	err := d.net.Ready(wait)
	cancel()
	if ctx.Err() != nil {
		return
	}
	found := 0
	if err == nil {
		finding, cancel := context.WithTimeout(ctx, lookupTime)
		defer cancel()
		found = d.askAll(ctx, d.net.Find(finding, bucket))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notReady = err
	if bucket != anyBucket {
		return
	}
	d.pause = min(2*d.pause, lookupEvery)
	if found == 0 {
		d.pause = firstLookup
	}
}

func (d *discovery) ask(ctx context.Context, key market.Key) {
	asking, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	raws, err := d.net.FetchOffers(asking, key)
	switch {
	case err == nil:
		d.index.answered(key, raws, d.cfg.Clock())
	case ctx.Err() == nil:
		d.cfg.Log.Debug("rig does not answer", "peer", key.String(), "err", err)
		d.index.failed(key)
	}
}

// reason returns why the network could not be asked, or nil.
func (d *discovery) reason() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.notReady
}

// rest waits, and reports whether ctx still runs.
func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
