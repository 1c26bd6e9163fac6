package index

import (
	"context"
	"slices"
	"sync"
	"time"

	"haggle/market"
)

// reading is how far buckets are read that are too large for one reading. While somebody looks, a bucket is read cell by cell, one
// branch to its end before the next, so that the first branch tells how large the bucket is.
type reading struct {
	mu      sync.Mutex
	buckets map[string]*descent
}

// descent is the reading of one bucket.
type descent struct {
	top    int    // rigs that the last lookup of the bucket itself found
	depth  int    // of the cells into which it is divided, as those say who keep shelves of them
	todo   []cell // cells to be read, the next one last
	leaves int    // cells that were not divided any further
	sum    int64  // of what each of them says of the size of the bucket
	begun  time.Time
	ended  time.Time // zero while it runs
}

func newReading() reading { return reading{buckets: map[string]*descent{}} }

// top notes what a lookup of a bucket itself found.
func (r *reading) top(bucket string, found int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.buckets[bucket]
	if d == nil {
		if len(r.buckets) >= maxBuckets {
			clear(r.buckets)
		}
		d = &descent{}
		r.buckets[bucket] = d
	}
	d.top = found
}

// Progress is how far offers that can answer a query are read.
type Progress struct {
	Read    int  // offers that are known
	About   int  // of about so many that there are, as far as can be told; never below Read
	Reading bool // more are being read
}

// Progress tells how far the offers that can answer a query are read.
func (x *Index) Progress(q market.Query) Progress {
	p := Progress{Read: x.Count(x.cfg.Clock())}
	x.reading.mu.Lock()
	defer x.reading.mu.Unlock()
	for _, bucket := range q.Buckets() {
		d := x.reading.buckets[bucket]
		if d == nil {
			continue
		}
		p.Reading = p.Reading || len(d.todo) > 0
		if d.leaves > 0 {
			p.About += int(d.sum / int64(d.leaves))
		} else {
			p.About += market.CellCount(d.depth, d.top) // the bucket itself is as full as its cells are
		}
	}
	p.About = max(p.About, p.Read)
	return p
}

// keepReading reads on in the buckets at which somebody looks.
func (x *Index) keepReading(ctx context.Context) {
	for rest(ctx, descendTick) {
		for _, bucket := range x.watched() {
			if c, ok := x.reading.next(bucket, x.cfg.Clock()); ok && ctx.Err() == nil {
				x.read(ctx, c)
			}
		}
	}
}

// watched returns the buckets for which somebody asked within the last minute.
func (x *Index) watched() []string {
	now := x.cfg.Clock()
	x.looks.mu.Lock()
	defer x.looks.mu.Unlock()
	var list []string
	for b, at := range x.looks.watched {
		if now.Sub(at) < watchedFor {
			list = append(list, b)
		}
	}
	slices.Sort(list)
	return list
}

// next takes the cell of a bucket that is to be read next.
func (r *reading) next(bucket string, now time.Time) (cell, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.buckets[bucket]
	switch {
	case d == nil:
		return cell{}, false
	case len(d.todo) > 0:
	case d.top < market.MinCell, !d.ended.IsZero() && now.Sub(d.ended) < rereadAfter:
		return cell{}, false
	default:
		d.todo, d.leaves, d.sum, d.begun, d.ended = []cell{{bucket: bucket}}, 0, 0, now, time.Time{}
	}
	c := d.todo[len(d.todo)-1]
	d.todo = d.todo[:len(d.todo)-1]
	return c, true
}

// read reads one cell: who is found in it, what two of them hold of it, and the offers of those that both leave out.
func (x *Index) read(ctx context.Context, c cell) {
	ctx, cancel := context.WithTimeout(ctx, visitTime)
	defer cancel()
	found := make(chan market.Key, maxQueue)
	var keys []market.Key
	looked := make(chan struct{})
	if x.spawn(ctx, func(running context.Context) {
		defer close(looked)
		defer close(found)
		running, cancel := context.WithTimeout(running, visitTime)
		defer cancel()
		for key := range x.cfg.Net.Find(running, c.String()) {
			if keys = append(keys, key); len(keys) >= maxFound {
				return
			}
			select {
			case found <- key:
			default:
			}
		}
	}) != nil {
		return
	}
	p := x.newPull([]string{c.String()}, nil, found)
	p.run(ctx)
	cancel()
	<-looked
	missing := slices.DeleteFunc(slices.Clone(keys), x.hasOffers)
	divided := p.depth > c.depth
	// One that says it keeps a shelf of a part may lie, so that nobody looks whom it leaves out: only where all say so is the cell left to
	// its parts.
	if !divided || p.least <= c.depth {
		for _, done := range x.askAll(context.WithoutCancel(ctx), missing[:min(len(missing), crossChecks)]) {
			<-done
		}
	}
	x.reading.done(c, len(keys), divided, x.cfg.Clock())
}

// done notes what was found in a cell, and puts down its parts to be read if it is divided.
func (r *reading) done(c cell, found int, divided bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.buckets[c.bucket]
	if d == nil {
		return
	}
	if divided && found > 0 && len(d.todo) < maxDescent {
		d.todo = append(d.todo, c.kids()...)
	} else if found > 0 {
		d.leaves++
		d.sum += int64(market.CellCount(c.depth, found))
	}
	if len(d.todo) == 0 {
		d.ended = now
	}
}

// deep notes how deep the cells of a bucket are, as one says who keeps a shelf of one.
func (r *reading) deep(bucket string, depth int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d := r.buckets[bucket]; d != nil {
		d.depth = depth
	}
}
