package market

import "slices"

// question is a query put to a table.
type question struct {
	t      *Table
	query  Query
	job    *JobShape
	now    int64
	asks   []ask   // all must hold
	counts []*node // on the number of free slots that fit
	least  int     // of those
	thin   thinRow
}

// ask is a clause or a group of them, with the column that answers.
type ask struct {
	node  *node
	asker *asker // nil of a group, and of a clause on what is computed
	kids  []ask
	slow  bool // something in it is computed
}

func (t *Table) question(q Query, job *JobShape, now int64) *question {
	x := &question{t: t, query: q, job: job, now: now}
	for i := range q.nodes {
		if n := &q.nodes[i]; n.counts() {
			x.counts = append(x.counts, n)
		} else {
			x.asks = append(x.asks, x.ask(n))
		}
	}
	return x
}

func (x *question) ask(n *node) ask {
	a := ask{node: n}
	if n.kind != nodeClause {
		for i := range n.kids {
			kid := x.ask(&n.kids[i])
			a.kids, a.slow = append(a.kids, kid), a.slow || kid.slow
		}
		// What is computed is asked last, of those that are left. The order changes no answer.
		slices.SortStableFunc(a.kids, func(a, b ask) int { return int(truthOf(a.slow)) - int(truthOf(b.slow)) })
		return a
	}
	c := &n.clause
	switch {
	case c.field == fieldClaim:
		a.asker = &asker{clause: c, column: x.t.claims, judge: func(words value) bool {
			v := claimOf(words, c.claim, c.kind)
			return v.known && c.accepts(&v)
		}}
	case c.field.stored():
		a.asker = &asker{clause: c, column: x.t.cols[c.field]}
	default:
		a.slow = true
	}
	return a
}

func truthOf(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// remember lets each value be asked once from now on; forget ends it. Codes of values that go are given to others, so what was heard holds
// only until the table is written to.
func (x *question) remember() { eachAsker(x.asks, (*asker).remember) }

func (x *question) forget() { eachAsker(x.asks, func(a *asker) { a.memo = nil }) }

func eachAsker(asks []ask, do func(*asker)) {
	for i := range asks {
		if asks[i].asker != nil {
			do(asks[i].asker)
		}
		eachAsker(asks[i].kids, do)
	}
}

// holds asks one row.
func (x *question) holds(a *ask, row uint32) bool {
	switch {
	case a.asker != nil:
		return a.asker.row(row)
	case a.node.kind == nodeClause:
		x.t.refill(&x.thin, x.t.headOf(row), x.now, x.job)
		v := a.node.clause.read(&x.thin.row, nil)
		return v.known && a.node.clause.accepts(&v)
	case a.node.kind == nodeAnd:
		for i := range a.kids {
			if !x.holds(&a.kids[i], row) {
				return false
			}
		}
		return true
	}
	for i := range a.kids {
		if x.holds(&a.kids[i], row) {
			return true
		}
	}
	return false
}

// chunk asks those rows of a chunk that are selected.
func (x *question) chunk(a *ask, k int, in *selection) (out selection) {
	switch {
	case in.empty():
	case a.asker != nil:
		return a.asker.chunk(k, in)
	case a.node.kind == nodeAnd:
		out = *in
		for i := range a.kids {
			out = x.chunk(&a.kids[i], k, &out)
		}
	case a.node.kind == nodeOr:
		rest := *in
		for i := range a.kids {
			fits := x.chunk(&a.kids[i], k, &rest)
			for w := range out {
				out[w] |= fits[w]
				rest[w] &^= fits[w]
			}
		}
	default:
		for w, word := range in {
			for ; word != 0; word &= word - 1 {
				if i := lowest(word); x.holds(a, uint32(k*chunkRows+w*64+i)) {
					out[w] |= 1 << i
				}
			}
		}
	}
	return out
}

// live selects the rows of a chunk whose offer is valid now: see Offer.CheckAge. Without a time, all that are used.
func (x *question) live(k int) selection {
	in := x.t.groups[k].used
	if x.now == 0 {
		return in
	}
	valid := &asker{column: &column{rows: x.t.expires}, ranged: true, lo: x.now + 1, hi: endless}
	in = valid.chunk(k, &in)
	known := &asker{column: &column{rows: x.t.issued}, ranged: true, lo: -endless, hi: x.now + MaxClockSkew.Milliseconds()}
	return known.chunk(k, &in)
}

// isLive is live for one row.
func (x *question) isLive(row uint32) bool {
	issued, _ := x.t.issued.get(row)
	expires, _ := x.t.expires.get(row)
	return x.now == 0 || x.now < expires && issued <= x.now+MaxClockSkew.Milliseconds()
}

// hit is an offer that matches.
type hit struct {
	head uint32
	rows []uint32 // with a free slot that fits; valid until the next one
	free int      // slots that fit and are free
}

// each visits all offers that match.
func (x *question) each(visit func(hit)) {
	x.remember()
	defer x.forget()
	shared := map[uint32][]uint32{}
	for k := range x.t.groups {
		in := x.live(k)
		for i := range x.asks {
			in = x.chunk(&x.asks[i], k, &in)
		}
		for w, word := range in {
			for ; word != 0; word &= word - 1 {
				row := uint32(k*chunkRows + w*64 + lowest(word))
				free := int(*x.t.free.at(row))
				switch {
				case free == 0:
				case x.t.groups[k].shared.has(row % chunkRows):
					head := x.t.headOf(row)
					shared[head] = append(shared[head], row)
				case x.enough(free):
					visit(hit{head: row, rows: []uint32{row}, free: free})
				}
			}
		}
	}
	for head, rows := range shared {
		free := 0
		for _, row := range rows {
			free += int(*x.t.free.at(row))
		}
		if x.enough(free) {
			visit(hit{head: head, rows: rows, free: free})
		}
	}
}

// one asks a single offer.
func (x *question) one(head uint32) (hit, bool) {
	f := hit{head: head}
	if !x.isLive(head) {
		return f, false
	}
	for _, row := range x.t.rowsOf(head) {
		if free := int(*x.t.free.at(row)); free > 0 && x.holdsAll(row) {
			f.rows, f.free = append(f.rows, row), f.free+free
		}
	}
	return f, f.free > 0 && x.enough(f.free)
}

func (x *question) holdsAll(row uint32) bool {
	for i := range x.asks {
		if !x.holds(&x.asks[i], row) {
			return false
		}
	}
	return true
}

func (x *question) enough(free int) bool {
	if free < x.least {
		return false
	}
	v := number(int64(free))
	for _, n := range x.counts {
		if !n.clause.accepts(&v) {
			return false
		}
	}
	return true
}

// timed reports whether the answer changes with the time alone.
func (x *question) timed() bool {
	for i := range x.asks {
		if x.asks[i].timed() {
			return true
		}
	}
	return false
}

func (a *ask) timed() bool {
	if a.node.kind == nodeClause {
		return a.node.clause.field.moves()
	}
	return slices.ContainsFunc(a.kids, func(kid ask) bool { return kid.timed() })
}
