package market

import "math/bits"

// Explain tells what each clause leaves of the offers that are valid, as Query.ExplainRows does, and returns the nearest miss whole: it is
// number 0 of the funnel's one miss. Of offers that are equally near, any may be the one. Order and Limit are not looked at.
func (t *Table) Explain(q TableQuery) (Funnel, *Row) {
	x := t.question(q.Query, q.Job, q.Now)
	f := Funnel{}
	for i := range x.asks {
		f.Steps = append(f.Steps, FunnelStep{Clause: x.asks[i].node.text(nodeClause)})
	}
	f.Steps = append(f.Steps, FunnelStep{Clause: FreeNow})
	for _, n := range x.counts {
		f.Steps = append(f.Steps, FunnelStep{Clause: n.text(nodeClause)})
	}
	x.funnel(&f)
	f.Matches = f.Steps[len(f.Steps)-1].Left
	if f.Matches == f.Offers {
		return f, nil
	}
	head := x.nearest()
	row, ok := t.row(head, q.Now, q.Job)
	if !ok {
		return f, nil
	}
	f.Nearest = q.Query.ExplainRows([]Row{row}).Nearest
	return f, &row
}

// funnel counts the offers that each step leaves.
func (x *question) funnel(f *Funnel) {
	x.remember()
	defer x.forget()
	several := map[uint32]int{} // the steps that an offer of several rows passes
	for k := range x.t.groups {
		g := &x.t.groups[k]
		in := x.live(k)
		for i := -1; i < len(x.asks); i++ {
			if i >= 0 {
				in = x.chunk(&x.asks[i], k, &in)
			}
			single := in
			for w := range single {
				for word := in[w] & g.shared[w]; word != 0; word &= word - 1 {
					head := x.t.headOf(uint32(k*chunkRows + w*64 + lowest(word)))
					several[head] = max(several[head], i+1)
				}
				single[w] &^= g.shared[w]
			}
			if n := single.count(); i < 0 {
				f.Offers += n
			} else {
				f.Steps[i].Left += n
			}
		}
	}
	f.Offers += len(several)
	for _, passed := range several {
		for i := range passed {
			f.Steps[i].Left++
		}
	}
	x.free(f)
}

// free counts the last steps: the offers that have a free slot which fits, and then as many as the query counts.
func (x *question) free(f *Funnel) {
	counts := x.counts
	x.counts = nil
	x.each(func(h hit) {
		v := number(int64(h.free))
		f.Steps[len(x.asks)].Left++
		for i, n := range counts {
			if !n.clause.accepts(&v) {
				return
			}
			f.Steps[len(x.asks)+1+i].Left++
		}
	})
	x.counts = counts
}

// nearest returns the offer that comes nearest to a match without being one: see nearness.
func (x *question) nearest() uint32 {
	x.remember()
	defer x.forget()
	best := nearness{clauses: maxQueryClauses + 2}
	var head uint32
	for k := range x.t.groups {
		in := x.live(k)
		refused := x.refusals(k, &in)
		for w, word := range in {
			for ; word != 0; word &= word - 1 {
				i := w*64 + lowest(word)
				if bits.OnesCount64(refused[i]) > best.clauses {
					continue
				}
				if row := uint32(k*chunkRows + i); x.nearer(&best, row, refused[i]) {
					head = x.t.headOf(row)
				}
			}
		}
	}
	return head
}

// refusals returns for each row of a chunk the set of asks that refuse it: a query has at most 64 clauses.
func (x *question) refusals(k int, in *selection) *[chunkRows]uint64 {
	refused := new([chunkRows]uint64)
	for i := range x.asks {
		fits := x.chunk(&x.asks[i], k, in)
		for w := range in {
			for word := in[w] &^ fits[w]; word != 0; word &= word - 1 {
				refused[w*64+lowest(word)] |= 1 << i
			}
		}
	}
	return refused
}

// nearer replaces the best row so far by a nearer one, and reports whether it did: see probe.nearer.
func (x *question) nearer(best *nearness, row uint32, refused uint64) bool {
	free := x.freeWithout(row, refused)
	clauses, distance := bits.OnesCount64(refused), int64(0)
	if free == 0 {
		clauses, distance = clauses+1, far-1
	}
	v := number(int64(free))
	for _, n := range x.counts {
		if free > 0 && !n.clause.accepts(&v) {
			clauses, distance = clauses+1, distance+n.clause.distance(&v)
		}
	}
	if clauses == 0 || clauses > best.clauses {
		return false
	}
	for i := range x.asks {
		if refused&(1<<i) != 0 {
			distance += x.distance(&x.asks[i], row)
		}
	}
	if clauses == best.clauses && distance >= best.distance {
		return false
	}
	if x.t.groups[row/chunkRows].shared.has(row % chunkRows) {
		if _, matches := x.one(x.t.headOf(row)); matches {
			return false // by other slots
		}
	}
	*best = nearness{clauses: clauses, distance: distance}
	return true
}

// freeWithout counts the free slots of a row's offer that would fit if some asks were left out.
func (x *question) freeWithout(row uint32, leftOut uint64) (free int) {
	if !x.t.groups[row/chunkRows].shared.has(row % chunkRows) {
		return int(*x.t.free.at(row))
	}
	for _, r := range x.t.rowsOf(x.t.headOf(row)) {
		fits := true
		for i := range x.asks {
			fits = fits && (leftOut&(1<<i) != 0 || x.holds(&x.asks[i], r))
		}
		if fits {
			free += int(*x.t.free.at(r))
		}
	}
	return free
}

// distance says how far a row is from what it is refused by: see node.nearest.
func (x *question) distance(a *ask, row uint32) int64 {
	if a.node.kind == nodeClause {
		v := x.value(&a.node.clause.subject, row)
		return a.node.clause.distance(&v)
	}
	var sum int64
	least := int64(-1)
	for i := range a.kids {
		if x.holds(&a.kids[i], row) {
			continue
		}
		d := x.distance(&a.kids[i], row)
		sum += d
		if least < 0 || d < least {
			least = d
		}
	}
	if a.node.kind == nodeOr {
		return max(least, 0)
	}
	return sum
}

// value returns what a row has in a field, whatever it is read from.
func (x *question) value(s *subject, row uint32) value {
	switch {
	case s.field == fieldClaim:
		return claimOf(x.t.claims.get(row), s.claim, s.kind)
	case s.field.stored():
		return x.t.cols[s.field].get(row)
	}
	x.t.refill(&x.thin, x.t.headOf(row), x.now, x.job)
	return s.read(&x.thin.row, nil)
}
