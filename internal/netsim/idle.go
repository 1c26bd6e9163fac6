package netsim

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"haggle/market"
)

// Idle is what rigs send and receive in a second when no renter is near, in bytes, both directions together, on the mean.
type Idle struct {
	Announce  float64 // what a rig begins itself: to be found in its cells
	Refresh   float64 // to keep its routing table
	Shelves   float64 // what it exchanges with its mates
	Keepalive float64 // of its connections
	Served    float64 // what others begin, on a rig that serves the DHT
	Client    float64 // all of it, of a rig behind a NAT
	Server    float64 // all of it, of a rig that serves the DHT
	Mean      float64 // of a rig
	Keys      float64 // cells that a rig announces itself in, on the mean
}

// idle measures the traffic of some rigs and takes it for all.
func (w *World) idle(shelves Shelves, rng *rand.Rand) Idle {
	p, d, b := w.sc.Protocol, w.sc.DHT, w.sc.Bytes
	const rigs = 60
	var lookups, refreshes traffic
	keys, kept, tables := 0, 0, 0.0
	for range rigs {
		i := w.liveRig(rng)
		for _, m := range w.of[i] {
			if w.shelved(m) {
				kept++
			}
			for _, depth := range market.CellDepths(m.place, int(m.depth)) {
				lookups.add(w.ownLookup(i, w.keyOf(cellID{m.bucket, uint8(depth), market.CellPrefix(m.place, depth)}), rng))
				keys++
			}
		}
		cpls := min(15, bits.Len(uint(len(w.ring)/d.K)))
		tables += float64(cpls)
		refreshes.add(w.ownLookup(i, rng.Uint64(), rng))
	}
	out := Idle{Keys: float64(keys) / rigs}
	perLookup := lookups.Bytes / float64(keys)
	stores := float64(d.K) * b.Store
	remembered := float64(d.K) * (b.Handshake*(1-w.sc.Stale) + b.Store)
	announce := (perLookup+stores)/p.LookupEvery + remembered*(1-1/p.LookupEvery)
	out.Announce = out.Keys * announce / (p.AnnounceMin * 60)
	out.Refresh = tables / rigs * refreshes.Bytes / rigs / (d.RefreshMin * 60)
	out.Keepalive = d.Conns * b.Keepalive
	// Half of it is for exchanges that a rig begins; the other half falls on the rigs that can be called.
	out.Shelves = shelves.Bytes * float64(kept) / rigs
	out.Served = (out.Announce + out.Refresh) / w.serverShare()
	out.Client = out.Announce + out.Refresh + out.Keepalive + out.Shelves/2
	out.Server = out.Announce + out.Refresh + out.Keepalive + out.Served + out.Shelves*(1+1/w.serverShare())/2
	out.Mean = w.serverShare()*out.Server + (1-w.serverShare())*out.Client
	return out
}

func (w *World) liveRig(rng *rand.Rand) int32 {
	for {
		if i := int32(rng.IntN(len(w.rigs))); !w.rigs[i].dead && !w.rigs[i].hostile {
			return i
		}
	}
}

// ownLookup is a lookup by a rig that has a routing table of its own. It is connected to a share of it.
func (w *World) ownLookup(i int32, key uint64, rng *rand.Rand) traffic {
	r := &w.rigs[i]
	at := r.ring
	if at < 0 { // a client's table is as good as that of a server in its place
		at = int32(rng.IntN(len(w.ring)))
	}
	connected := w.sc.DHT.Conns / float64(w.sc.DHT.K*max(1, bits.Len(uint(len(w.ring)/w.sc.DHT.K))))
	start := w.table(at, key)
	near := map[int32]bool{}
	for _, node := range start {
		near[node] = rng.Float64() < connected
	}
	l := lookup{w: w, from: r, key: key, fresh: func(node int32) bool { return !near[node] }}
	l.run(start)
	return l.cost
}

// Load is how unevenly the work is spread over the rigs that serve.
type Load struct {
	Median, Busiest float64 // bytes per second, both directions together
	Ratio           float64
	Hottest         string // what the busiest is busy with
}

// duties is what each node of the ring does, in bytes per second, and what the most of it is for.
type duties struct {
	work, most []float64
	why        []string
}

func (d duties) add(node int32, bytes float64, why string) {
	d.work[node] += bytes
	if bytes > d.most[node] {
		d.most[node], d.why[node] = bytes, why
	}
}

// load adds up what every reachable rig does: its idle traffic, the announcements it keeps, the lookups of renters that end at it, and the
// shelves it shows. What is even by the nature of the DHT, the hops of lookups, is taken as even.
func (w *World) load(idle Idle) Load {
	p, b := w.sc.Protocol, w.sc.Bytes
	n := len(w.ring)
	even := idle.Announce + idle.Refresh + idle.Keepalive + idle.Shelves*(1+1/w.serverShare())/2
	perKey := b.Store + b.Handshake + (b.Request+b.Answer+float64(w.sc.DHT.K)*b.Peer)/p.LookupEvery
	stored := perKey * float64(w.sc.DHT.K) * idle.Keys / (p.AnnounceMin * 60) // of what a rig begins, that ends at holders
	hops := (idle.Announce + idle.Refresh - stored) / w.serverShare()
	d := duties{work: make([]float64, n), most: make([]float64, n), why: make([]string, n)}
	for at := range d.work {
		d.work[at] = even + hops
	}
	queries := float64(len(w.rigs)) * w.sc.Queries.Renters * w.sc.Queries.Screens / 3600
	for c, named := range w.cells {
		asked := 0.0
		if c.depth == 0 {
			asked = queries * w.asked(c.bucket)
		}
		per := float64(len(named))*perKey/(p.AnnounceMin*60) +
			asked*w.sc.Queries.Cold*(b.Handshake+b.Request+float64(len(named)+w.sc.DHT.K)*b.Peer)
		for _, node := range w.closest(w.keyOf(c), w.sc.DHT.K) {
			d.add(node, per, "announcements of "+w.names[c.bucket])
		}
		w.show(c, named, asked, d)
	}
	var alive []float64
	out := Load{}
	for at, x := range d.work {
		r := &w.rigs[w.ring[at]]
		if r.dead {
			continue
		}
		alive = append(alive, x)
		if x > out.Busiest {
			out.Busiest, out.Hottest = x, d.why[at]
		}
	}
	slices.Sort(alive)
	out.Median = alive[len(alive)/2]
	out.Ratio = out.Busiest / out.Median
	return out
}

// show adds what the rigs of a cell that renters ask for do to show their shelves.
func (w *World) show(c cellID, named []int32, asked float64, d duties) {
	if asked == 0 {
		return
	}
	var servers []int32
	for _, i := range named {
		if r := &w.rigs[i]; r.server && !r.dead {
			servers = append(servers, r.ring)
		}
	}
	const shelves = 3 // of one screen
	b := w.sc.Bytes
	page := shelves * (b.Handshake + b.Request + float64(w.sc.Protocol.Page*w.size))
	// Who has looked before asks rigs that it remembers, which are spread over the bucket; a newcomer asks those that it is led to.
	per := asked * w.sc.Queries.Cold * page / math.Max(1, float64(len(servers)))
	for _, node := range servers {
		d.add(node, per, "shelf of "+w.names[c.bucket])
	}
}

// asked is the share of queries that go to a bucket.
func (w *World) asked(bucket int32) float64 {
	q := w.sc.Queries
	switch w.kinds[bucket] {
	case "model":
		return q.ByModel * float64(w.counts[bucket]) / float64(len(w.rigs)) // people want what there is
	case "memory":
		return q.ByMemory / 3 // a question for so much or more asks half of the six classes, each time
	case "region":
		return q.ByRegion * float64(w.counts[bucket]) / float64(len(w.rigs))
	}
	return q.ByAny
}

// Balance tells how unevenly the work of the network is spread.
func (w *World) Balance() Load {
	rng := rand.New(rand.NewPCG(w.seed, 4))
	return w.load(w.idle(Shelves{}, rng))
}
