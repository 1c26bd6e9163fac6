package market

import "slices"

// TableQuery is what a table is asked.
type TableQuery struct {
	Query Query
	Job   *JobShape // nil is an hour of one slot where a price is needed
	Now   int64     // Unix milliseconds; offers that are not valid then are left out, unless it is 0
	Order string    // as Rank takes it
	Limit int       // offers to be returned, at least 1
	Slots int       // an offer matches with at least so many free slots that fit; Explain and Facets do not look at it
}

// TableAnswer is the best offers of those that match.
type TableAnswer struct {
	Best    []Ranked // in order, at most as many as were asked for
	Matches int      // offers that match and whose price fits into money
}

// Select returns the best offers that match, in the order in which Rank would put them all. The error has code CodeUnknownField.
func (t *Table) Select(q TableQuery) (TableAnswer, error) {
	r, err := t.ranking(q, max(q.Limit, 1))
	if err != nil {
		return TableAnswer{}, err
	}
	r.ask()
	return TableAnswer{Best: r.decode(q.Limit), Matches: r.matches}, nil
}

// Count returns the number of offers that match.
func (t *Table) Count(q TableQuery) int {
	count := 0
	t.matching(q).each(func(hit) { count++ })
	return count
}

// Visit visits all offers that match, in no order, with what the renter knows of each. Order and Limit are not looked at.
func (t *Table) Visit(q TableQuery, visit func(rig Key, id string, s Standing)) {
	t.matching(q).each(func(h hit) { visit(t.rigOf(h.head), t.idOf(h.head), t.standingOf(h.head)) })
}

// Live is the number of offers that are valid at a time in Unix milliseconds, whether they have a free slot or not.
func (t *Table) Live(now int64) int {
	x, count := t.question(Query{}, nil, now), 0
	for k := range t.groups {
		in := x.live(k)
		for w := range in {
			in[w] &^= t.groups[k].others[w]
		}
		count += in.count()
	}
	return count
}

func (t *Table) matching(q TableQuery) *question {
	x := t.question(q.Query, q.Job, q.Now)
	x.least = q.Slots
	return x
}

// placed is an offer in its place of an order.
type placed struct {
	sortEntry
	head  uint32
	shown *Ranked // once it was
}

// ranking keeps the best of the offers that match.
type ranking struct {
	x       *question
	order   order
	most    int
	rows    []*placed // the best, in order
	matches int
	thin    thinRow
}

func (t *Table) ranking(q TableQuery, most int) (*ranking, error) {
	o, err := parseOrder(q.Order)
	if err != nil {
		return nil, err
	}
	return &ranking{x: t.matching(q), order: o, most: most}, nil
}

// ask asks the whole table.
func (r *ranking) ask() {
	r.rows, r.matches = r.rows[:0], 0
	r.x.each(func(f hit) {
		if e, ok := r.entry(&f); ok {
			r.matches++
			r.insert(&e)
		}
	})
}

// entry reads what an offer is ordered by: see order.entry.
func (r *ranking) entry(f *hit) (placed, bool) {
	t, o := r.x.t, &r.thin.offer
	t.refill(&r.thin, f.head, r.x.now, r.x.job)
	ranked, ok := RankedRow(r.thin.row, Match{})
	if !ok {
		return placed{}, false
	}
	e := placed{head: f.head, sortEntry: sortEntry{currency: o.Prices.Currency, cost: ranked.Cost, name: o.Name, id: o.ID, rig: o.Rig}}
	if len(r.order.keys) > 1 || r.order.keys[0].special == "" {
		e.values = make([]value, len(r.order.keys))
	}
	for i := range r.order.keys {
		switch k := &r.order.keys[i]; k.special {
		case SortBest:
			e.rank = newRankKey(&r.thin.row)
		case "":
			e.values[i] = r.value(f, k)
		}
	}
	for _, row := range f.rows {
		e.memory = max(e.memory, t.must(fieldGPURAM, row))
	}
	return e, true
}

// value returns the value by which an offer is sorted: see Ranked.sortValue.
func (r *ranking) value(f *hit, k *sortKey) value {
	t := r.x.t
	switch {
	case k.field == fieldNumGPUs:
		return number(int64(f.free))
	case k.field == fieldClaim:
		return claimOf(t.claims.get(f.head), k.claim, k.kind)
	case !k.field.stored():
		return k.read(&r.thin.row, nil)
	case !k.field.perSlot():
		return t.cols[k.field].get(f.head)
	}
	var best value
	for _, row := range f.rows {
		if v := t.cols[k.field].get(row); v.known && (!best.known || directed(v.compare(best, k.kind), k.descending) < 0) {
			best = v
		}
	}
	return best
}

// insert puts an entry into its place, if it is among the best.
func (r *ranking) insert(e *placed) {
	if n := len(r.rows); n >= r.most && r.order.compare(&e.sortEntry, &r.rows[n-1].sortEntry) >= 0 {
		return
	}
	kept := *e
	at, _ := slices.BinarySearchFunc(r.rows, &kept, func(a, b *placed) int { return r.order.compare(&a.sortEntry, &b.sortEntry) })
	r.rows = slices.Insert(r.rows, at, &kept)
	r.rows = r.rows[:min(len(r.rows), r.most)]
}

// decode returns the best as the renter sees them, read from what their rigs signed. What it read once it keeps.
func (r *ranking) decode(limit int) []Ranked {
	best := make([]Ranked, 0, min(limit, len(r.rows)))
	for _, e := range r.rows[:min(limit, len(r.rows))] {
		if e.shown == nil {
			row, ok := r.x.t.row(e.head, r.x.now, r.x.job)
			if !ok {
				continue
			}
			m, _ := r.x.query.MatchRow(row)
			ranked, _ := RankedRow(row, m)
			e.shown = &ranked
		}
		best = append(best, *e.shown)
	}
	return best
}

// row returns an offer whole.
func (t *Table) row(head uint32, now int64, job *JobShape) (Row, bool) {
	o, s := t.decode(head), t.standingOf(head)
	return Row{Offer: o, Standing: &s, Job: job, Now: now}, o != nil
}
