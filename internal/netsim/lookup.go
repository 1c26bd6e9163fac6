package netsim

import (
	"cmp"
	"container/heap"
	"math/bits"
	"slices"
	"sort"
)

// A lookup is kad-dht's: the closest peers known are asked, alpha at a time, until the beta closest have answered; then those of the
// k closest that were not asked. Tables are implicit: whom a node knows in a bucket of its table follows from a hash, so a node
// costs no memory.
type lookup struct {
	w     *World
	from  *rig
	key   uint64
	known map[int32]*contact // by place in the ring
	order []*contact         // by distance
	fly   replies
	now   float64
	cost  traffic
	fresh func(at int32) bool // whether a peer is not connected yet
	heard func(at float64, node int32, before traffic) (stop bool)
}

// traffic is what a task sent and received.
type traffic struct {
	Messages int
	Fresh    int // new connections
	Bytes    float64
}

func (t *traffic) add(o traffic) {
	t.Messages += o.Messages
	t.Fresh += o.Fresh
	t.Bytes += o.Bytes
}

type contact struct {
	node  int32
	dist  uint64
	asked bool
	state uint8 // 0 heard or waiting, 1 answered, 2 failed
}

type reply struct {
	at   float64
	from *contact
	ok   bool
}

type replies []reply

func (r replies) Len() int           { return len(r) }
func (r replies) Less(i, j int) bool { return r[i].at < r[j].at }
func (r replies) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *replies) Push(x any)        { *r = append(*r, x.(reply)) } //nolint:forcetypeassert // heap pushes what it is given
func (r *replies) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}

// run looks a key up from known peers. heard is told of every answer, and may stop the lookup.
func (l *lookup) run(start []int32) {
	l.known = map[int32]*contact{}
	for _, node := range start {
		l.learn(node)
	}
	for closing := false; ; {
		l.ask(closing)
		if len(l.fly) == 0 {
			if closing {
				return
			}
			closing = true
			continue
		}
		r := heap.Pop(&l.fly).(reply) //nolint:forcetypeassert // only replies are pushed
		l.now = r.at
		if l.take(r) {
			return
		}
		closing = closing || l.done()
	}
}

// take handles an answer, or that there was none.
func (l *lookup) take(r reply) (stop bool) {
	if !r.ok {
		r.from.state = 2
		return false
	}
	r.from.state = 1
	for _, node := range l.w.answer(r.from.node, l.key) {
		l.learn(node)
	}
	return l.heard != nil && l.heard(r.at, r.from.node, l.cost)
}

func (l *lookup) learn(node int32) {
	if node == l.from.ring || l.known[node] != nil {
		return
	}
	c := &contact{node: node, dist: l.w.ids[node] ^ l.key}
	l.known[node] = c
	at := sort.Search(len(l.order), func(i int) bool { return l.order[i].dist >= c.dist })
	l.order = slices.Insert(l.order, at, c)
}

// done reports whether the beta closest peers that were not found dead have answered.
func (l *lookup) done() bool {
	left := l.w.sc.DHT.Beta
	for _, c := range l.order {
		if c.state == 2 {
			continue
		}
		if c.state == 0 {
			return false
		}
		if left--; left == 0 {
			return true
		}
	}
	return true
}

// ask sends to the closest that were not asked: alpha at once, and at the end to all of the k closest.
func (l *lookup) ask(closing bool) {
	left := l.w.sc.DHT.K
	for _, c := range l.order {
		if left == 0 || !closing && len(l.fly) >= l.w.sc.DHT.Alpha {
			return
		}
		if c.state != 2 {
			left--
		}
		if !c.asked {
			l.send(c)
		}
	}
}

func (l *lookup) send(c *contact) {
	sc, to := l.w.sc, &l.w.rigs[l.w.ring[c.node]]
	c.asked = true
	l.cost.Messages++
	trips, fresh := sc.DHT.KnownRTTs, l.fresh == nil || l.fresh(c.node)
	if fresh {
		trips = sc.DHT.FreshRTTs
	}
	switch {
	case to.dead:
		l.cost.Bytes += sc.Bytes.Handshake / 4 // what is sent into the void
		heap.Push(&l.fly, reply{l.now + sc.DHT.Dial, c, false})
		return
	case to.hostile && mix(uint64(c.node), l.w.seed, 7)%3 == 0:
		l.cost.Bytes += sc.Bytes.Handshake
		heap.Push(&l.fly, reply{l.now + sc.DHT.Silent, c, false})
		return
	}
	if fresh {
		l.cost.Fresh++
		l.cost.Bytes += sc.Bytes.Handshake
	}
	l.cost.Bytes += sc.Bytes.Request + sc.Bytes.Answer + float64(sc.DHT.K)*sc.Bytes.Peer
	heap.Push(&l.fly, reply{l.now + trips*l.w.rtt(l.from, to), c, true})
}

// answer are the peers that a node names as closest to a key: hostile ones name nobody, or only their friends.
func (w *World) answer(node int32, key uint64) []int32 {
	if w.rigs[w.ring[node]].hostile {
		if mix(uint64(node), w.seed, 7)%3 == 1 {
			return nil
		}
		return w.friends(key)
	}
	return w.table(node, key)
}

// table are the peers of a node's routing table that are closest to a key.
func (w *World) table(node int32, key uint64) []int32 {
	k := w.sc.DHT.K
	common := bits.LeadingZeros64(w.ids[node] ^ key)
	if common >= 63 {
		return nil
	}
	lo, hi := w.share(key, common+1)
	if hi-lo <= k {
		// The node knows all of its own corner, too: fill up from there.
		return w.closest(key, k)
	}
	out := make([]int32, 0, k)
	for j := range k {
		at := int32(lo + int(mix(uint64(node), uint64(common), uint64(j)+w.seed<<8)%uint64(hi-lo)))
		if !slices.Contains(out, at) {
			out = append(out, at)
		}
	}
	return out
}

// friends are the hostile nodes closest to a key, of those near it.
func (w *World) friends(key uint64) []int32 {
	var out []int32
	for _, node := range w.closest(key, 4*w.sc.DHT.K) {
		if w.rigs[w.ring[node]].hostile && len(out) < w.sc.DHT.K {
			out = append(out, node)
		}
	}
	return out
}

// share returns the nodes whose ids begin like a key with so many bits.
func (w *World) share(key uint64, depth int) (lo, hi int) {
	mask := ^uint64(0) << (64 - depth)
	first, last := key&mask, key&mask|^mask
	lo = sort.Search(len(w.ids), func(i int) bool { return w.ids[i] >= first })
	hi = lo + sort.Search(len(w.ids)-lo, func(i int) bool { return w.ids[lo+i] > last })
	return lo, hi
}

// closest returns the k nodes closest to a key.
func (w *World) closest(key uint64, k int) []int32 {
	depth := min(bits.Len(uint(len(w.ids)/k)), 60)
	lo, hi := w.share(key, depth)
	for hi-lo < k && depth > 0 {
		depth--
		if depth == 0 {
			lo, hi = 0, len(w.ids)
			break
		}
		lo, hi = w.share(key, depth)
	}
	out := make([]int32, 0, hi-lo)
	for i := lo; i < hi; i++ {
		out = append(out, int32(i))
	}
	slices.SortFunc(out, func(a, b int32) int { return cmp.Compare(w.ids[a]^key, w.ids[b]^key) })
	return out[:min(k, len(out))]
}

// mix is a hash of three numbers (the finaliser of SplitMix64, by Steele, Lea and Flood 2014).
func mix(a, b, c uint64) uint64 {
	x := a*0x9E3779B97F4A7C15 ^ b*0xBF58476D1CE4E5B9 ^ c*0x94D049BB133111EB
	x ^= x >> 30
	x *= 0xBF58476D1CE4E5B9
	x ^= x >> 27
	x *= 0x94D049BB133111EB
	return x ^ x>>31
}
