package index

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"haggle/market"
)

// shelf is how a rig keeps the offers of its mates: those whose deepest cell is the same, in each of its buckets. In the cells above it
// is found as well and serves what it has; it does not collect those, or it would collect the whole market.
type shelf struct {
	changed chan struct{}   // holds a token after this rig's own offers changed
	callers chan market.Key // mates that called and are not known

	mu     sync.Mutex
	depth  map[string]int                 // by bucket, of the deepest cell
	looked map[string]time.Time           // by bucket, when it was last looked up
	lonely map[string]int                 // by bucket, lookups that found next to nobody since the last that did
	mates  map[string]map[market.Key]bool // by bucket; false of one that did not answer
}

func newShelf() shelf {
	return shelf{
		changed: make(chan struct{}, 1), callers: make(chan market.Key, maxCallers),
		depth: map[string]int{}, looked: map[string]time.Time{}, lonely: map[string]int{}, mates: map[string]map[market.Key]bool{},
	}
}

// depths returns the depths of the deepest cells.
func (s *shelf) depths() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.depth)
}

// Offered tells the index that this rig's own offers or buckets may have changed. It never waits.
func (x *Index) Offered() {
	select {
	case x.shelf.changed <- struct{}{}:
	default: // one token is enough
	}
}

// keepShelf announces this rig in its cells, watches how full they are and visits the mates, until ctx ends.
func (x *Index) keepShelf(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { x.keepAnnounced(ctx) })
	group.Go(func() { x.askCallers(ctx) })
	pause, settled := shelfSoon, time.Time{}
	for rest(ctx, jitter(pause)) {
		now := x.cfg.Clock()
		moved := false
		for _, bucket := range x.ownBuckets() {
			moved = x.settle(ctx, bucket, settled.IsZero() || now.Sub(settled) >= settleEvery) || moved
		}
		if settled.IsZero() || now.Sub(settled) >= settleEvery {
			settled = now
		}
		if moved {
			x.announce()
		}
		pause = min(2*pause, shelfEvery)
		if x.visitMates(ctx) > 0 {
			pause = shelfEvery
		}
	}
}

// keepAnnounced announces this rig in its cells at once and after each change of its offers.
func (x *Index) keepAnnounced(ctx context.Context) {
	for {
		x.own()
		x.announce()
		select {
		case <-x.shelf.changed:
		case <-ctx.Done():
			return
		}
	}
}

// maxCallers bounds the mates that wait to be asked back.
const maxCallers = 64

// askCallers asks mates that called for their offers, one after the other.
func (x *Index) askCallers(ctx context.Context) {
	for {
		select {
		case key := <-x.shelf.callers:
			done, ok := x.begun(ctx, key, x.cfg.Refresh)
			if !ok {
				return
			}
			if done != nil && !awaits(ctx, done, slowAsk) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// awaits waits a while for the end of a question: those who call and then keep silent hold up nobody. It reports whether ctx still runs.
func awaits(ctx context.Context, done <-chan struct{}, most time.Duration) bool {
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// announce tells the network the cells in which this rig is found.
func (x *Index) announce() {
	var cells []string
	depth := x.shelf.depths()
	for _, bucket := range x.ownBuckets() {
		cells = append(cells, market.Cells(bucket, x.cfg.Self, depth[bucket])...)
	}
	x.cfg.Net.Announce(cells)
}

func (x *Index) ownBuckets() []string {
	buckets := x.cfg.Buckets()
	return buckets[:min(len(buckets), maxOwnBuckets)]
}

// ownCell is the cell of which this rig keeps a shelf in a bucket.
func (x *Index) ownCell(bucket string, depth int) cell {
	return cell{bucket, depth, market.CellPrefix(market.CellPlace(bucket, x.cfg.Self), depth)}
}

// settle sees to it that there are mates in a bucket and, when it is time to, that the own cell is neither too full nor too empty. How
// full it is the shelf tells; a lookup is dear. It reports whether the cell changed.
func (x *Index) settle(ctx context.Context, bucket string, weigh bool) (moved bool) {
	now := x.cfg.Clock()
	x.shelf.mu.Lock()
	before, looked, again := x.shelf.depth[bucket], x.shelf.looked[bucket], meetEvery
	if n := x.shelf.reached(bucket); n < fewMates {
		again = min(shelfSoon<<min(x.shelf.lonely[bucket], 16), settleEvery)
	}
	x.shelf.mu.Unlock()
	depth := before
	if market.Shelved(bucket, depth) {
		known := x.inCell(x.ownCell(bucket, depth), now)
		if weigh && len(known) >= fewMates {
			depth = market.SettleDepth(depth, x.around(bucket, known, depth))
		}
		for _, key := range known {
			x.shelf.met(bucket, key)
		}
	}
	if looked.IsZero() || depth < before || now.Sub(looked) >= again {
		depth = x.meet(ctx, bucket, depth, looked.IsZero())
	}
	x.shelf.mu.Lock()
	defer x.shelf.mu.Unlock()
	x.shelf.depth[bucket] = depth
	return depth != before
}

// inCell returns the rigs that offer something in a cell, other than this one.
func (x *Index) inCell(c cell, now time.Time) []market.Key {
	x.mu.Lock()
	defer x.mu.Unlock()
	var keys []market.Key
	for key, r := range x.rigs {
		for _, e := range r.offers {
			if key != x.cfg.Self && e.live(now) && e.in([]cell{c}) {
				keys = append(keys, key)
				break
			}
		}
	}
	return keys
}

// around counts, of rigs that are known in the own cell of a depth, and this one, those in the own cells of that depth and below. Of
// those above nothing is known but that they are not empty.
func (x *Index) around(bucket string, keys []market.Key, depth int) func(depth int) int {
	return func(d int) int {
		if d < depth {
			return market.MinCell
		}
		c, n := x.ownCell(bucket, d), 1
		for _, key := range keys {
			if market.CellPrefix(market.CellPlace(bucket, key), d) == c.prefix {
				n++
			}
		}
		return n
	}
}

// meet looks up who else is in the own cell of a bucket, and returns the depth at which they were met. A rig that comes into a divided
// bucket goes down to where the others are: above, it would stand among a sample of them, which is never too full.
func (x *Index) meet(ctx context.Context, bucket string, depth int, first bool) int {
	keys := x.findMates(ctx, x.ownCell(bucket, depth))
	for first && len(keys) >= market.MinCell && depth+market.CellStep <= market.MaxCellDepth {
		below := x.findMates(ctx, x.ownCell(bucket, depth+market.CellStep))
		if len(below) < market.MinCell {
			break
		}
		depth, keys = depth+market.CellStep, below
	}
	x.shelf.replace(bucket, keys, x.cfg.Clock())
	if !first && !market.Shelved(bucket, depth) {
		depth = market.SettleDepth(depth, x.around(bucket, keys, depth)) // no shelf tells how full it is
	}
	return depth
}

// findMates looks up who else is found in a cell.
func (x *Index) findMates(ctx context.Context, c cell) []market.Key {
	wait, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	var keys []market.Key
	for key := range x.cfg.Net.Find(wait, c.String()) {
		if key == x.cfg.Self {
			continue
		}
		if keys = append(keys, key); len(keys) >= maxMates {
			break
		}
	}
	return keys
}

// met notes a mate of whom the shelf has an offer.
func (s *shelf) met(bucket string, key market.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mates[bucket] == nil {
		s.mates[bucket] = map[market.Key]bool{}
	}
	if _, known := s.mates[bucket][key]; !known && len(s.mates[bucket]) < maxMates {
		s.mates[bucket][key] = true
	}
}

// replace takes the mates that a lookup found.
func (s *shelf) replace(bucket string, keys []market.Key, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lonely[bucket]++
	if len(keys) >= fewMates {
		s.lonely[bucket] = 0
	}
	if len(s.looked) > 4*maxOwnBuckets { // of buckets in which this rig was long ago
		clear(s.looked)
		clear(s.lonely)
		clear(s.mates)
		clear(s.depth)
	}
	s.looked[bucket] = now
	s.mates[bucket] = map[market.Key]bool{}
	for _, key := range keys {
		s.mates[bucket][key] = true
	}
}

// reached counts the mates of a bucket that have not failed to answer. The shelf is locked.
func (s *shelf) reached(bucket string) (n int) {
	for _, well := range s.mates[bucket] {
		if well {
			n++
		}
	}
	return n
}

// failed notes that a mate did not answer.
func (s *shelf) failed(key market.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, mates := range s.mates {
		if _, known := mates[key]; known {
			mates[key] = false
		}
	}
}

// visitMates reads the own cells from a few mates each, chosen anew every time: what a rig says reaches all within a few visits. A mate
// that stands in several of the cells is asked for all of them at once. It returns how many answered.
func (x *Index) visitMates(ctx context.Context) int {
	slots := make(chan struct{}, visitsAtOnce)
	var group sync.WaitGroup
	var mu sync.Mutex
	answered := 0
	for key, names := range x.planVisits() {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(ctx, visitTime)
			defer cancel()
			if _, err := x.visit(ctx, key, names, parseCells(names), false); err != nil {
				x.shelf.failed(key)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			answered++
		})
	}
	group.Wait()
	return answered
}

// planVisits chooses whom to ask for which cells.
func (x *Index) planVisits() map[market.Key][]string {
	now, depth := x.cfg.Clock(), x.shelf.depths()
	plan := map[market.Key][]string{}
	for _, bucket := range x.ownBuckets() {
		if !market.Shelved(bucket, depth[bucket]) {
			continue
		}
		mates := x.shelf.matesIn(bucket)
		// Who is visited anyway comes first.
		slices.SortStableFunc(mates, func(a, b market.Key) int { return len(plan[b]) - len(plan[a]) })
		chosen := 0
		for _, key := range mates {
			if chosen == shelfVisits {
				break
			}
			if len(plan[key]) < market.MaxSnapshotCells && !x.sources.shunned(key, now) {
				plan[key] = append(plan[key], x.ownCell(bucket, depth[bucket]).String())
				chosen++
			}
		}
	}
	return plan
}

// matesIn returns the mates of a bucket that have not failed to answer, in no order.
func (s *shelf) matesIn(bucket string) []market.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []market.Key
	for key, well := range s.mates[bucket] {
		if well {
			keys = append(keys, key)
		}
	}
	rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys
}

// jitter returns a duration up to a quarter shorter or longer, so that rigs started together do not stay in step.
func jitter(d time.Duration) time.Duration {
	return d + time.Duration((rand.Float64()-0.5)*0.5*float64(d))
}
