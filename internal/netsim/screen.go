package netsim

import (
	"math/rand/v2"
	"slices"
)

// Screen is a renter's first screen of offers.
type Screen struct {
	Ms     float64 // until it was full
	Full   bool    // false: fewer offers than there are
	Offers int
	traffic
}

// firstScreen lets a renter look at a bucket whose rigs it knows nothing of: it asks bootstrap peers for what they hold of it, looks it up
// from them at the same time, and asks rigs for their shelves as the lookup names them. covered is the share of live mates that a shelf holds.
func (w *World) firstScreen(renter *rig, bucket int32, covered float64, rng *rand.Rand) Screen {
	s := &screening{w: w, renter: renter, bucket: bucket, covered: covered, rng: rng, have: map[int32]bool{}, asked: map[int32]bool{}}
	root := cellID{bucket: bucket}
	s.named = slices.Clone(w.cells[root])
	live := 0
	for _, i := range s.named {
		if !w.rigs[i].dead {
			live++
		}
	}
	s.divided = w.divided(root)
	s.need = w.sc.Protocol.Screen
	if !s.divided {
		s.need = min(s.need, live)
	}
	rng.Shuffle(len(s.named), func(i, j int) { s.named[i], s.named[j] = s.named[j], s.named[i] })
	slices.SortStableFunc(s.named, func(a, b int32) int { return before(w.rigs[a].server, w.rigs[b].server) })
	friends := w.bootstrap(rng)
	s.lookUp(root, friends)
	for _, node := range friends {
		i := w.ring[node]
		s.asked[i] = true
		s.fly = append(s.fly, s.question(i, true, 0))
	}
	return s.collect()
}

func before(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// divided reports whether a cell has others below.
func (w *World) divided(c cellID) bool {
	for _, i := range w.cells[c] {
		if w.member(i, c.bucket).depth > c.depth {
			return true
		}
	}
	return false
}

type screening struct {
	w       *World
	renter  *rig
	bucket  int32
	covered float64
	rng     *rand.Rand
	divided bool
	need    int
	named   []int32 // rigs that the DHT names, in the order in which they are asked
	from    float64 // when they are known
	costs   []stamped
	have    map[int32]bool
	asked   map[int32]bool
	answers int
	fly     []question
	cost    traffic
}

type stamped struct {
	at   float64
	cost traffic
}

type question struct {
	sent, back float64
	rig        int32
	shelf, ok  bool
}

// lookUp finds out when the first holder of the cell's announcements has answered, and what the lookup had cost at any time.
func (s *screening) lookUp(c cellID, from []int32) {
	w := s.w
	holders := map[int32]bool{}
	key := w.keyOf(c)
	for _, node := range w.closest(key, w.sc.DHT.K) {
		holders[node] = true
	}
	s.from = never
	l := lookup{w: w, from: s.renter, key: key}
	l.heard = func(at float64, node int32, cost traffic) bool {
		if holders[node] && !w.rigs[w.ring[node]].hostile {
			s.from = min(s.from, at)
			cost.Bytes += w.sc.Bytes.Peer * float64(len(s.named))
		}
		s.costs = append(s.costs, stamped{at, cost})
		return s.from < never // who is named there has been named by all: the renter asks no further
	}
	l.run(from)
}

// bootstrap are three peers that everybody knows: they live and are honest.
func (w *World) bootstrap(rng *rand.Rand) []int32 {
	var out []int32
	for tries := 0; len(out) < 3 && tries < 1000; tries++ {
		node := int32(rng.IntN(len(w.ring)))
		if r := &w.rigs[w.ring[node]]; !r.dead && !r.hostile {
			out = append(out, node)
		}
	}
	return out
}

// collect asks the named rigs until the screen is full.
func (s *screening) collect() Screen {
	now := 0.0
	for len(s.have) < s.need && now < never {
		next := never
		if now >= s.from {
			s.send(now)
		} else {
			next = s.from
		}
		for _, q := range s.fly {
			next = min(next, q.back)
			if hedge := q.sent + s.w.sc.Protocol.Hedge; hedge > now {
				next = min(next, hedge)
			}
		}
		now = next
		s.receive(now)
	}
	out := Screen{Ms: now, Full: len(s.have) >= s.need, Offers: len(s.have), traffic: s.cost}
	for _, c := range slices.Backward(s.costs) {
		if c.at <= now {
			out.add(c.cost)
			break
		}
	}
	return out
}

// send asks as many rigs as may be asked at once; one that hangs does not count. In a bucket that is not divided, whoever is
// still missing after two shelves is asked for its own offer.
func (s *screening) send(now float64) {
	shelf, limit := s.divided || s.answers < 2, s.w.sc.Protocol.AtOnce
	if !shelf {
		limit = 16
	}
	busy := 0
	for _, q := range s.fly {
		if q.sent+s.w.sc.Protocol.Hedge > now {
			busy++
		}
	}
	for _, i := range s.named {
		if busy >= limit {
			return
		}
		if s.asked[i] || !shelf && s.have[i] {
			continue
		}
		s.asked[i] = true
		s.fly = append(s.fly, s.question(i, shelf, now))
		busy++
	}
}

func (s *screening) question(i int32, shelf bool, now float64) question {
	w, to := s.w, &s.w.rigs[i]
	q := question{sent: now, rig: i, shelf: shelf, ok: !to.dead}
	s.cost.Messages++
	if to.dead {
		q.back = now + w.sc.DHT.Dial
		s.cost.Bytes += w.sc.Bytes.Handshake / 4
		return q
	}
	offers := 1
	if shelf {
		offers = min(len(w.shelf(i, s.bucket)), w.sc.Protocol.Page)
	}
	size := float64(offers * w.size)
	if now > 0 { // at the beginning it is the lookup's connection
		s.cost.Fresh++
		s.cost.Bytes += w.sc.Bytes.Handshake
	}
	s.cost.Bytes += w.sc.Bytes.Request + w.sc.Bytes.Have*float64(len(s.have)) + size
	q.back = now + w.sc.DHT.FreshRTTs*w.rtt(s.renter, to) + size*8/1000/float64(to.uplink)
	return q
}

func (s *screening) receive(now float64) {
	s.fly = slices.DeleteFunc(s.fly, func(q question) bool {
		if q.back > now {
			return false
		}
		if !q.ok {
			return true
		}
		if s.w.member(q.rig, s.bucket) != nil {
			s.have[q.rig] = true
		}
		if q.shelf {
			s.answers++
			s.read(q.rig)
		}
		return true
	})
}

// read takes a page of what a rig holds and the renter does not have.
func (s *screening) read(rig int32) {
	room := s.w.sc.Protocol.Page - 1
	for _, mate := range s.w.shelf(rig, s.bucket) {
		if room > 0 && !s.have[mate] && s.rng.Float64() < s.covered {
			s.have[mate] = true
			room--
		}
	}
}

// shelf are the live rigs of a bucket whose offers a rig holds: its own, and those of its mates of all cells that it keeps a shelf for. A
// hostile rig gives only the offers of its friends.
func (w *World) shelf(i, bucket int32) []int32 {
	out := []int32{i}
	for _, m := range w.of[i] {
		if !w.shelved(m) {
			continue
		}
		for _, mate := range w.cells[w.leaf(m)] {
			r := &w.rigs[mate]
			if mate != i && !r.dead && (!w.rigs[i].hostile || r.hostile) && w.member(mate, bucket) != nil {
				out = append(out, mate)
			}
		}
	}
	return out
}

// shelved reports whether a rig keeps its mates' offers of a bucket.
func (w *World) shelved(m member) bool {
	return m.depth == 0 || slices.Contains(w.sc.Protocol.Shelves, w.kinds[m.bucket])
}

// leaf is the deepest cell of a member.
func (w *World) leaf(m member) cellID {
	return cellID{m.bucket, m.depth, prefixOf(m.place, m.depth)}
}
