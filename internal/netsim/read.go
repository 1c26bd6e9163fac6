package netsim

import (
	"math/rand/v2"
	"slices"
)

// Reading is a renter's reading of a whole bucket.
type Reading struct {
	Live    int // offers of live, honest rigs there are
	Found   int // of them, in hand at the end
	Lookups int
	Shelves int // asked
	Direct  int // rigs asked themselves, because no shelf had them
	traffic
}

// Share is the share of live offers that were found.
func (r Reading) Share() float64 {
	if r.Live == 0 {
		return 1
	}
	return float64(r.Found) / float64(r.Live)
}

const (
	minSources = 4  // shelves that a reader asks for each cell
	lastResort = 64 // rigs of one cell that are asked themselves
)

type reader struct {
	w       *World
	renter  *rig
	bucket  int32
	covered float64
	rng     *rand.Rand
	have    map[int32]bool
	asked   map[int32]bool
	out     Reading
}

// readAll reads a bucket, cell by cell: what a lookup names is grouped by the cells below, and four shelves of each are read. Only a
// cell below of which too few are named is looked up itself. Whom the DHT names and no shelf has is asked itself.
func (w *World) readAll(renter *rig, bucket int32, covered float64, rng *rand.Rand) Reading {
	r := &reader{w: w, renter: renter, bucket: bucket, covered: covered, rng: rng, have: map[int32]bool{}, asked: map[int32]bool{}}
	r.visit(cellID{bucket: bucket})
	for i := range w.rigs {
		if m := w.member(int32(i), bucket); m != nil && !w.rigs[i].dead && !w.rigs[i].hostile {
			r.out.Live++
			if r.have[int32(i)] {
				r.out.Found++
			}
		}
	}
	return r.out
}

// visit reads a cell and all below it.
func (r *reader) visit(c cellID) {
	named := r.lookUp(c)
	below := map[cellID][]int32{}
	var here []int32
	for _, i := range named {
		m := r.w.member(i, r.bucket)
		if m.depth == c.depth {
			here = append(here, i)
			continue
		}
		leaf := r.w.leaf(*m)
		below[leaf] = append(below[leaf], i)
	}
	r.readShelves(here)
	if len(below) == 0 {
		r.checkDirectly(named)
		return
	}
	for child := range uint64(4) {
		r.descend(cellID{c.bucket, c.depth + 2, c.prefix<<2 | child}, below)
	}
	r.checkDirectly(named)
}

// descend reads a cell below one whose sample is known: by shelves where there are any, enough of its rigs are named
// and it is not divided further.
func (r *reader) descend(c cellID, below map[cellID][]int32) {
	var sources int
	deeper := false
	for leaf, rigs := range below {
		if leaf.prefix>>(leaf.depth-c.depth) != c.prefix {
			continue
		}
		if leaf.depth > c.depth {
			deeper = true
			continue
		}
		for _, i := range rigs {
			if !r.w.rigs[i].dead {
				sources++
			}
		}
		r.readShelves(rigs)
	}
	if deeper || sources < minSources || !r.w.shelved(member{bucket: c.bucket, depth: c.depth}) {
		r.visit(c)
	}
}

// lookUp returns the rigs that the DHT names in a cell. One that should have rigs and seems empty is looked up again: hostile nodes
// may have led the lookup astray.
func (r *reader) lookUp(c cellID) []int32 {
	for range r.w.sc.Protocol.Lookups {
		if named := r.lookUpOnce(c); named != nil {
			return named
		}
	}
	return nil
}

// lookUpOnce returns the rigs of a cell if an honest node was reached that keeps them.
func (r *reader) lookUpOnce(c cellID) []int32 {
	w := r.w
	key := w.keyOf(c)
	holders := w.closest(key, w.sc.DHT.K)
	reached := false
	l := lookup{w: w, from: r.renter, key: key}
	l.heard = func(_ float64, node int32, _ traffic) bool {
		if !w.rigs[w.ring[node]].hostile && slices.Contains(holders, node) {
			reached = true
		}
		return false
	}
	l.run(w.bootstrap(r.rng))
	r.out.Lookups++
	r.out.add(l.cost)
	if !reached {
		return nil
	}
	named := slices.Clone(w.cells[c])
	r.out.Bytes += w.sc.Bytes.Peer * float64(len(named)) * 3 // several holders name them
	slices.SortStableFunc(named, func(a, b int32) int { return before(w.rigs[a].server, w.rigs[b].server) })
	return named
}

// readShelves asks until four have answered. Hostile ones answer too.
func (r *reader) readShelves(rigs []int32) {
	answers := 0
	for _, i := range rigs {
		if answers == minSources {
			return
		}
		if r.asked[i] {
			continue
		}
		r.asked[i] = true
		r.out.Shelves++
		r.out.Messages++
		if r.w.rigs[i].dead {
			continue
		}
		answers++
		r.have[i] = true
		got := 1
		for _, mate := range r.w.shelf(i, r.bucket) {
			if !r.have[mate] && r.rng.Float64() < r.covered {
				r.have[mate] = true
				got++
			}
		}
		r.out.Fresh++
		r.out.Bytes += r.w.sc.Bytes.Handshake + r.w.sc.Bytes.Request + float64(got*r.w.size)
	}
}

// checkDirectly asks rigs that were named and that no shelf had: they are dead, or somebody has left them out.
func (r *reader) checkDirectly(named []int32) {
	left := lastResort
	for _, i := range named {
		if r.have[i] || r.asked[i] || left == 0 {
			continue
		}
		left--
		r.asked[i] = true
		r.out.Direct++
		r.out.Messages++
		if !r.w.rigs[i].dead {
			r.have[i] = true
			r.out.Fresh++
			r.out.Bytes += r.w.sc.Bytes.Handshake + r.w.sc.Bytes.Request + float64(r.w.size)
		}
	}
}
