package market

import (
	"cmp"
	"slices"
)

// Facets counts fields of the offers that match the rest of the query, as Query.Facets does. Order and Limit are not looked at. The error has
// code CodeUnknownField.
func (t *Table) Facets(q TableQuery, fields []string, top int) ([]Facet, error) {
	facets, err := q.Query.Facets(nil, fields, top) // empty ones, if the fields are right
	if err != nil {
		return nil, err
	}
	for i := range facets {
		about, err := subjectNamed(facets[i].Field)
		if err != nil {
			return nil, err
		}
		x := t.question(q.Query.without(&about), q.Job, q.Now)
		x.facet(&about, min(max(top, 1), maxFacetValues), &facets[i])
	}
	return facets, nil
}

// facet counts one field. What a value is counted under is put into words once, and not for each offer.
func (x *question) facet(about *subject, top int, f *Facet) {
	counts, known := map[string]*tally{}, map[int64][]*tally{}
	offer := 0
	x.each(func(h hit) {
		offer++
		said := false
		for _, row := range h.rows {
			list, there := x.tallies(about, row, counts, known)
			said = said || there
			for _, c := range list {
				if c.Slots += int(*x.t.free.at(row)); c.last != offer {
					c.last = offer
					c.Offers++
				}
			}
		}
		if !said {
			f.Unknown++
		}
	})
	list := make([]*tally, 0, len(counts))
	for _, c := range counts {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *tally) int {
		return cmp.Or(cmp.Compare(a.band, b.band), cmp.Compare(b.Offers, a.Offers), cmp.Compare(a.num, b.num), cmp.Compare(a.Clause, b.Clause))
	})
	f.More = max(0, len(list)-top)
	for _, c := range list[:min(len(list), top)] {
		f.Values = append(f.Values, c.FacetValue)
	}
}

// tallies returns what a row's value is counted under; false where the row does not say. Each code is looked up once.
func (x *question) tallies(about *subject, row uint32, counts map[string]*tally, known map[int64][]*tally) ([]*tally, bool) {
	var code int64
	coded := about.field.stored()
	if coded {
		n, said := x.t.cols[about.field].rows.get(row)
		if !said {
			return nil, false
		}
		if list, there := known[n]; there {
			return list, true
		}
		code = n
	}
	v := x.value(about, row)
	if !v.known {
		return nil, false
	}
	var list []*tally
	for _, c := range tallies(&v, about) {
		if counts[c.Clause] == nil {
			counts[c.Clause] = &c
		}
		list = append(list, counts[c.Clause])
	}
	if coded {
		known[code] = list
	}
	return list, true
}
