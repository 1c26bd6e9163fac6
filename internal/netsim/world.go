package netsim

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"haggle/market"
)

// rig is one rig of a world.
type rig struct {
	key     market.Key
	region  uint8
	country uint8
	model   uint8
	server  bool // reachable: serves the DHT and snapshots without a relay
	hostile bool
	dead    bool    // still in announcements and tables, answers nothing
	mile    float32 // ms
	uplink  float32 // Mbit/s
	ring    int32   // place in the ring of DHT servers, -1: none
}

// cellID names a cell within a world.
type cellID struct {
	bucket int32
	depth  uint8
	prefix uint64
}

// World is a network at a moment at which everybody has found their depth.
type World struct {
	sc     *Scenario
	seed   uint64
	rng    *rand.Rand
	rigs   []rig
	ring   []int32  // rigs that serve the DHT, ordered by id
	ids    []uint64 // of the ring
	zipf   []float64
	names  []string
	index  map[string]int32
	kinds  []string           // of each bucket
	counts []int              // rigs of each bucket
	of     [][]member         // of each rig, in the order of Protocol.Buckets
	cells  map[cellID][]int32 // rigs found in each cell
	size   int                // of a sealed offer
}

// member is a rig's place in one bucket.
type member struct {
	bucket int32
	depth  uint8
	place  uint64
}

// NewWorld makes n rigs that live, and the dead ones that are still spoken of. hostile is the share of hostile rigs.
func NewWorld(sc *Scenario, n int, seed uint64, hostile float64) *World {
	w := &World{
		sc: sc, seed: seed, rng: rand.New(rand.NewPCG(seed, uint64(n))), index: map[string]int32{}, cells: map[cellID][]int32{}, size: sc.Bytes.Offer,
	}
	w.zipf = cumulative(sc.Supply.Models, sc.Supply.Zipf)
	total := int(math.Round(float64(n) / (1 - sc.Stale)))
	for i := range total {
		w.rigs = append(w.rigs, w.newRig(i, hostile))
	}
	w.fillRing()
	w.fillBuckets()
	return w
}

func (w *World) newRig(i int, hostile float64) rig {
	r := rig{
		key: market.Key(market.HashOf(fmt.Appendf(nil, "netsim/%d/%d", w.seed, i))), ring: -1,
		model: uint8(draw(w.rng, w.zipf)), dead: w.rng.Float64() < w.sc.Stale, hostile: w.rng.Float64() < hostile,
		mile:   float32(w.sc.LastMile.Median / 2 * math.Exp(w.rng.NormFloat64()*w.sc.LastMile.Sigma)),
		uplink: float32(w.drawUplink()),
	}
	r.server = w.rng.Float64() < w.sc.Datacentre || w.rng.Float64() >= w.sc.NAT
	r.region = w.drawRegion()
	for int(r.country) < w.sc.Regions[r.region].Countries-1 && w.rng.Float64() < 0.5 {
		r.country++
	}
	return r
}

func (w *World) drawRegion() uint8 {
	at := w.rng.Float64()
	for i, region := range w.sc.Regions {
		if at -= region.Share; at < 0 {
			return uint8(i)
		}
	}
	return uint8(len(w.sc.Regions) - 1)
}

// drawUplink interpolates between three quantiles on a logarithmic scale.
func (w *World) drawUplink() float64 {
	u := w.sc.Uplink
	at := w.rng.Float64()
	if at < 0.5 {
		return u.P10 * math.Pow(u.Median/u.P10, max(at-0.1, 0)/0.4)
	}
	return u.Median * math.Pow(u.P90/u.Median, min(at-0.5, 0.4)/0.4)
}

func (w *World) fillRing() {
	for i := range w.rigs {
		if w.rigs[i].server {
			w.ring = append(w.ring, int32(i))
		}
	}
	id := func(i int32) uint64 { return number(w.rigs[i].key) }
	slices.SortFunc(w.ring, func(a, b int32) int { return cmp.Compare(id(a), id(b)) })
	for at, i := range w.ring {
		w.rigs[i].ring = int32(at)
		w.ids = append(w.ids, id(i))
	}
}

// number is a place in the DHT's space: half of the keys' bits are hashed again there, which for keys that are hashes changes nothing.
func number(k market.Key) uint64 {
	var n uint64
	for _, b := range k[8:16] {
		n = n<<8 | uint64(b)
	}
	return n
}

// fillBuckets gives every rig its depth in each of its buckets: the one at which it stays, as market.SettleDepth says.
func (w *World) fillBuckets() {
	lists := map[int32][]int32{}
	for i := range w.rigs {
		var of []member
		for _, kind := range w.sc.Protocol.Buckets {
			b := w.bucket(w.bucketName(&w.rigs[i], kind), kind)
			of = append(of, member{bucket: b, place: market.CellPlace(w.names[b], w.rigs[i].key)})
			lists[b] = append(lists[b], int32(i))
		}
		w.of = append(w.of, of)
	}
	for b := range int32(len(w.names)) {
		w.counts = append(w.counts, len(lists[b]))
		w.settle(b, lists[b])
		for _, i := range lists[b] {
			m := w.member(i, b)
			for _, d := range market.CellDepths(m.place, int(m.depth)) {
				c := cellID{b, uint8(d), market.CellPrefix(m.place, d)}
				w.cells[c] = append(w.cells[c], i)
			}
		}
	}
}

// settle gives the rigs of a bucket the depth at which they stay.
func (w *World) settle(b int32, rigs []int32) {
	if !w.sc.Protocol.Divided {
		return
	}
	type prefix struct {
		depth int
		bits  uint64
	}
	held := map[prefix]int{}
	for _, i := range rigs {
		place := w.member(i, b).place
		for d := 0; d <= market.MaxCellDepth && 1<<d <= 2*len(rigs); d += market.CellStep {
			held[prefix{d, market.CellPrefix(place, d)}]++
		}
	}
	for _, i := range rigs {
		m := w.member(i, b)
		m.depth = uint8(market.SettleDepth(0, func(d int) int { return held[prefix{d, market.CellPrefix(m.place, d)}] }))
	}
}

func (w *World) member(i, bucket int32) *member {
	for j := range w.of[i] {
		if w.of[i][j].bucket == bucket {
			return &w.of[i][j]
		}
	}
	return nil
}

// prefixOf is market.CellPrefix for the depth of a cell.
func prefixOf(place uint64, depth uint8) uint64 { return market.CellPrefix(place, int(depth)) }

func (w *World) bucketName(r *rig, kind string) string {
	switch kind {
	case "model":
		return fmt.Sprintf("model/M%d", r.model)
	case "memory":
		return fmt.Sprintf("memory/%d", memoryOf(int(r.model)))
	case "region":
		return fmt.Sprintf("region/%d.%d", r.region, r.country)
	}
	return market.BucketAny
}

// memoryOf gives each model one of the six classes of memory.
func memoryOf(model int) int { return []int{24, 12, 8, 16, 80, 48}[model%6] }

func (w *World) bucket(name, kind string) int32 {
	b, ok := w.index[name]
	if !ok {
		b = int32(len(w.names))
		w.index[name] = b
		w.names, w.kinds = append(w.names, name), append(w.kinds, kind)
	}
	return b
}

// rtt is the round trip between two rigs in ms, with a relay's share for one that is not reachable.
func (w *World) rtt(from, to *rig) float64 {
	t := w.sc.RTT[from.region][to.region] + 2*float64(from.mile+to.mile)/2
	if !to.server {
		t *= 1.5 // by way of a relay in between
	}
	return t
}

// keyOf is where the DHT keeps the announcements of a cell.
func (w *World) keyOf(c cellID) uint64 {
	return number(market.Key(market.HashOf(fmt.Appendf(nil, "%s %d %d", w.names[c.bucket], c.depth, c.prefix))))
}

// cumulative returns the distribution function of a Zipf law.
func cumulative(n int, s float64) []float64 {
	out, sum := make([]float64, n), 0.0
	for i := range out {
		sum += math.Pow(float64(i+1), -s)
		out[i] = sum
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

func draw(rng *rand.Rand, distribution []float64) int {
	return min(sort.SearchFloat64s(distribution, rng.Float64()), len(distribution)-1)
}
