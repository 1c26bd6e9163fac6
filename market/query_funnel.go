package market

import (
	"math/bits"
	"strconv"
)

// FreeNow is the line of a Funnel that stands for what every query asks without a clause: a slot that fits and is free,
// in an offer that is not withdrawn.
const FreeNow = "free now"

// Funnel tells what each clause of a query left of a list of offers.
type Funnel struct {
	Offers  int          `json:"offers"`            // asked
	Steps   []FunnelStep `json:"steps"`             // the clauses as written, then FreeNow, then those on num_gpus
	Matches int          `json:"matches"`           // offers that match
	Nearest *Miss        `json:"nearest,omitempty"` // nil where all offers match
}

// FunnelStep is one line of a Funnel. A group of clauses joined by OR is one step.
type FunnelStep struct {
	Clause string `json:"clause"` // in canonical form
	Left   int    `json:"left"`   // offers that fit this step and all before it
}

// Miss is the offer that came nearest to a match without being one: the fewest clauses refuse it, and of offers with
// equally many, the one whose numbers are closest to what was asked for.
type Miss struct {
	Offer  int            `json:"offer"`  // index in the list that was asked
	Slot   uint8          `json:"slot"`   // index of its slot that came nearest
	Missed []MissedClause `json:"missed"` // at least one
}

// MissedClause is one clause that refused a Miss. Value is safe to print.
type MissedClause struct {
	Clause string `json:"clause"`
	Field  string `json:"field,omitempty"` // of a group joined by OR, the field that came nearest; empty for FreeNow
	Value  string `json:"value"`           // what the offer says: such as 0.72, unknown, leased or withdrawn
}

// Explain asks a list of offers and tells how many each clause left, and which offer came nearest. Its last step always
// leaves as many offers as Match would.
func (q Query) Explain(offers []Offer) Funnel {
	rows := make([]Row, len(offers))
	for i := range offers {
		rows[i].Offer = &offers[i]
	}
	return q.ExplainRows(rows)
}

// ExplainRows is Explain for rows; its last step leaves as many as MatchRow would.
func (q Query) ExplainRows(rows []Row) Funnel {
	f := Funnel{Offers: len(rows)}
	var asks, counts []*node
	for i := range q.nodes {
		if q.nodes[i].counts() {
			counts = append(counts, &q.nodes[i])
		} else {
			asks = append(asks, &q.nodes[i])
		}
	}
	for _, n := range asks {
		f.Steps = append(f.Steps, FunnelStep{Clause: n.text(nodeClause)})
	}
	f.Steps = append(f.Steps, FunnelStep{Clause: FreeNow})
	for _, n := range counts {
		f.Steps = append(f.Steps, FunnelStep{Clause: n.text(nodeClause)})
	}
	nearest := nearness{clauses: maxQueryClauses + 2}
	for i := range rows {
		p := newProbe(&rows[i], asks, counts)
		passed := p.passed()
		for k := range passed {
			f.Steps[k].Left++
		}
		if passed < len(f.Steps) {
			p.nearer(&nearest, i)
		}
	}
	f.Matches = f.Steps[len(f.Steps)-1].Left
	if nearest.probe != nil {
		f.Nearest = nearest.miss()
	}
	return f
}

// probe is one offer with, for each slot, the set of asks that refuse it: a query has at most 64 clauses.
type probe struct {
	row          *Row
	asks, counts []*node
	slots        []Slot
	refused      [MaxSlots]uint64
}

func newProbe(r *Row, asks, counts []*node) *probe {
	p := &probe{row: r, asks: asks, counts: counts, slots: r.Offer.Slots[:min(len(r.Offer.Slots), MaxSlots)]}
	for i := range p.slots {
		for k, n := range asks {
			if !n.holds(r, &p.slots[i]) {
				p.refused[i] |= 1 << k
			}
		}
	}
	return p
}

// passed returns how many steps of the funnel the offer passes.
func (p *probe) passed() int {
	steps := 0
	for i := range p.slots {
		steps = max(steps, min(bits.TrailingZeros64(p.refused[i]), len(p.asks)))
	}
	free := p.free(0)
	if steps < len(p.asks) || free == 0 {
		return steps
	}
	steps++
	for _, n := range p.counts {
		if v := number(int64(free)); !n.clause.accepts(&v) {
			break
		}
		steps++
	}
	return steps
}

// free counts the free slots that would fit if the asks of a set were left out.
func (p *probe) free(leftOut uint64) int {
	if p.row.Offer.State == OfferWithdrawn {
		return 0
	}
	count := 0
	for i := range p.slots {
		if p.slots[i].LeasedUntil == 0 && p.refused[i]&^leftOut == 0 {
			count++
		}
	}
	return count
}

// nearness is how near the best slot so far came. Fewer clauses come first, then a smaller distance.
type nearness struct {
	probe    *probe
	offer    int
	slot     int
	clauses  int
	distance int64
}

// nearer replaces the best slot so far by a nearer one of this offer.
func (p *probe) nearer(best *nearness, offer int) {
	for i := range p.slots {
		free := p.free(p.refused[i])
		clauses, distance := bits.OnesCount64(p.refused[i]), int64(0)
		if free == 0 {
			clauses, distance = clauses+1, far-1 // all but taken is nearer than another word
		}
		for _, n := range p.refusedCounts(free) {
			v := number(int64(free))
			clauses, distance = clauses+1, distance+n.clause.distance(&v)
		}
		if clauses > best.clauses {
			continue
		}
		for k, n := range p.asks {
			if p.refused[i]&(1<<k) != 0 {
				d, _ := n.nearest(p.row, &p.slots[i])
				distance += d
			}
		}
		if clauses < best.clauses || distance < best.distance {
			*best = nearness{probe: p, offer: offer, slot: i, clauses: clauses, distance: distance}
		}
	}
}

// refusedCounts returns the clauses on num_gpus that refuse a number of free slots. Where none is free, FreeNow says it
// all.
func (p *probe) refusedCounts(free int) []*node {
	var refused []*node
	for _, n := range p.counts {
		if v := number(int64(free)); free > 0 && !n.clause.accepts(&v) {
			refused = append(refused, n)
		}
	}
	return refused
}

// miss puts the nearest slot into words.
func (b nearness) miss() *Miss {
	p := b.probe
	slot := &p.slots[b.slot]
	m := &Miss{Offer: b.offer, Slot: slot.Index}
	for k, n := range p.asks {
		if p.refused[b.slot]&(1<<k) != 0 {
			_, c := n.nearest(p.row, slot)
			m.Missed = append(m.Missed, MissedClause{Clause: n.text(nodeClause), Field: c.name, Value: c.read(p.row, slot).show(c.kind)})
		}
	}
	free := p.free(p.refused[b.slot])
	if free == 0 {
		why := "leased"
		if p.row.Offer.State == OfferWithdrawn {
			why = string(OfferWithdrawn)
		}
		m.Missed = append(m.Missed, MissedClause{Clause: FreeNow, Value: why})
	}
	for _, n := range p.refusedCounts(free) {
		m.Missed = append(m.Missed, MissedClause{Clause: n.clause.text(), Field: n.clause.name, Value: strconv.Itoa(free)})
	}
	return m
}

// nearest returns how far a slot is from a node that refuses it, and the clause that came nearest: the sum over AND, the
// least over OR.
func (n *node) nearest(r *Row, s *Slot) (int64, *clause) {
	if n.kind == nodeClause {
		v := n.clause.read(r, s)
		return n.clause.distance(&v), &n.clause
	}
	var sum, least int64
	var closest *clause
	for i := range n.kids {
		if n.kids[i].holds(r, s) {
			continue
		}
		d, c := n.kids[i].nearest(r, s)
		sum += d
		if closest == nil || d < least {
			least, closest = d, c
		}
	}
	if n.kind == nodeOr {
		return least, closest
	}
	return sum, closest
}
