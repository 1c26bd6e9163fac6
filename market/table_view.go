package market

import "slices"

// Bounds of a view.
const (
	viewSpare  = 4     // a view keeps so many times the offers that it shows, so that those that go are replaced without asking again
	viewTurnMs = 1000  // a view whose clauses ask for the time is asked again after so long
	viewRankMs = 60000 // a view is asked again after so long in any case: how long a key was seen has steps
)

// View is a standing question: the best offers that match, kept up to date as offers come, change and go. After the first answer each
// change costs asking one offer. It belongs to its table and follows the table's rule: Best and Matches read, Stop writes.
// Best keeps what it decoded, so one view is for one reader at a time.
type View struct {
	r       *ranking
	limit   int
	asked   int64 // Unix milliseconds
	timed   bool
	changed uint64
}

// Watch asks a question that stands. The error has code CodeUnknownField.
func (t *Table) Watch(q TableQuery) (*View, error) {
	limit := max(q.Limit, 1)
	r, err := t.ranking(q, viewSpare*limit)
	if err != nil {
		return nil, err
	}
	v := &View{r: r, limit: limit, asked: q.Now, timed: r.x.timed()}
	for i := range r.order.keys {
		v.timed = v.timed || r.order.keys[i].special == "" && r.order.keys[i].field.moves()
	}
	r.ask()
	t.views = append(t.views, v)
	return v, nil
}

// Stop ends a view.
func (v *View) Stop() {
	t := v.r.x.t
	t.views = slices.DeleteFunc(t.views, func(w *View) bool { return v == w })
}

// Best returns the best offers, in order. Offers and standings are shared with later answers: they are only read.
func (v *View) Best() []Ranked { return v.r.decode(v.limit) }

// Matches returns how many offers match in all.
func (v *View) Matches() int { return v.r.matches }

// Version grows with each change that Best or Matches may show.
func (v *View) Version() uint64 { return v.changed }

// before tells the views that an offer is about to change or go.
func (t *Table) before(head uint32) {
	for _, v := range t.views {
		if f, ok := v.r.x.one(head); ok {
			if _, ok = v.r.entry(&f); ok {
				v.r.matches--
				v.drop(head)
			}
		}
	}
}

// drop takes an offer out of the best.
func (v *View) drop(head uint32) {
	v.changed++
	if at := slices.IndexFunc(v.r.rows, func(e *placed) bool { return e.head == head }); at >= 0 {
		v.r.rows = slices.Delete(v.r.rows, at, at+1)
	}
}

// after tells the views of an offer as it is now.
func (t *Table) after(head uint32) {
	for _, v := range t.views {
		f, ok := v.r.x.one(head)
		if !ok {
			v.settle()
			continue
		}
		e, ok := v.r.entry(&f)
		if !ok {
			v.settle()
			continue
		}
		// Offers that match and are not in the list stand behind all that are: one that would stand last may stand behind them.
		whole := len(v.r.rows) == v.r.matches
		v.r.matches++
		v.changed++
		if n := len(v.r.rows); whole || n > 0 && v.r.order.compare(&e.sortEntry, &v.r.rows[n-1].sortEntry) < 0 {
			v.r.insert(&e)
		}
		v.settle()
	}
}

// settle asks again if fewer offers are left than are shown.
func (v *View) settle() {
	if n := len(v.r.rows); n < v.limit && n < v.r.matches {
		v.r.ask()
		v.changed++
	}
}

// turn lets a view see the time.
func (v *View) turn(now int64) {
	if since := now - v.asked; since < viewRankMs && (!v.timed || since < viewTurnMs) && since >= 0 {
		return
	}
	v.asked, v.r.x.now = now, now
	v.r.ask()
	v.changed++
}
