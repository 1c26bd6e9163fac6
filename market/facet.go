package market

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Bounds of facets.
const (
	maxFacets      = 16
	maxFacetValues = 64
)

// Facet counts the values that a field has among the offers that the rest of a query leaves: what could be chosen instead.
type Facet struct {
	Field   string       `json:"field"`
	Values  []FacetValue `json:"values"`            // the most frequent first; bands of numbers in their order
	More    int          `json:"more,omitempty"`    // values that are not listed
	Unknown int          `json:"unknown,omitempty"` // offers that do not say
}

// FacetValue is one value, or one band of values, with how often it is there. An offer with slots of several models counts for each.
type FacetValue struct {
	Clause string `json:"clause"` // that asks for it, in canonical form
	Value  string `json:"value"`  // safe to print
	Offers int    `json:"offers"`
	Slots  int    `json:"slots"` // free ones that fit
}

// Facets counts fields of the offers that match the rest of the query: for each field without the clauses that stand on it alone, so that
// the choice beside the present one is seen, too. At most top values are listed for each field, 64 in all cases. The error has code
// CodeUnknownField, also for num_gpus and for more than 16 fields.
func (q Query) Facets(rows []Row, fields []string, top int) ([]Facet, error) {
	if len(fields) > maxFacets {
		return nil, NewError(CodeUnknownField, "field", clip(fields[maxFacets], 40), "nearest", fields[0])
	}
	facets := make([]Facet, 0, len(fields))
	var whole []Match // of the query itself, for all fields that it does not ask about
	for _, name := range fields {
		about, err := subjectNamed(name)
		if err != nil {
			return nil, err
		}
		if about.field == fieldNumGPUs {
			return nil, NewError(CodeUnknownField, "field", about.name, "nearest", "free_slots")
		}
		rest := q.without(&about)
		matches := whole
		if len(rest.nodes) < len(q.nodes) || whole == nil {
			matches = rest.matches(rows)
		}
		if len(rest.nodes) == len(q.nodes) {
			whole = matches
		}
		facets = append(facets, facetOf(rows, matches, about, min(max(top, 1), maxFacetValues)))
	}
	return facets, nil
}

// matches asks each row; the slots are nil where one does not match. It is never nil.
func (q Query) matches(rows []Row) []Match {
	all := make([]Match, len(rows))
	for i := range rows {
		all[i], _ = q.MatchRow(rows[i])
	}
	return all
}

// without returns the query less its clauses on one field.
func (q Query) without(about *subject) Query {
	return Query{nodes: slices.DeleteFunc(slices.Clone(q.nodes), func(n node) bool {
		return n.kind == nodeClause && n.clause.subject == *about
	})}
}

// tally is a value while it is counted.
type tally struct {
	FacetValue
	band int   // place of a band; 0 for a plain value
	num  int64 // of a plain number
	last int   // row that was counted last, from 1
}

func facetOf(rows []Row, matches []Match, about subject, top int) Facet {
	f := Facet{Field: about.name, Values: []FacetValue{}}
	counts := map[string]*tally{}
	for i := range rows {
		if m := matches[i]; m.Slots != nil && !count(counts, &rows[i], m, &about, i+1) {
			f.Unknown++
		}
	}
	list := make([]*tally, 0, len(counts))
	for _, t := range counts {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *tally) int {
		return cmp.Or(cmp.Compare(a.band, b.band), cmp.Compare(b.Offers, a.Offers), cmp.Compare(a.num, b.num), cmp.Compare(a.Clause, b.Clause))
	})
	f.More = max(0, len(list)-top)
	for _, t := range list[:min(len(list), top)] {
		f.Values = append(f.Values, t.FacetValue)
	}
	return f
}

// count adds one row, and reports whether any of its matching slots has a value.
func count(counts map[string]*tally, r *Row, m Match, about *subject, row int) bool {
	known := false
	for i := range r.Offer.Slots {
		s := &r.Offer.Slots[i]
		if !slices.Contains(m.Slots, s.Index) {
			continue
		}
		v := about.read(r, s)
		if !v.known {
			continue
		}
		known = true
		for _, t := range tallies(&v, about) {
			there := counts[t.Clause]
			if there == nil {
				counts[t.Clause], there = &t, &t
			}
			there.Slots++
			if there.last != row {
				there.last = row
				there.Offers++
			}
		}
	}
	return known
}

// tallies returns the values under which one value is counted: each word of a list, the band of a number that is rarely the same twice, or
// the value itself.
func tallies(v *value, about *subject) []tally {
	plain := func(shown string) tally {
		if strings.ContainsRune(shown, '"') && strings.ContainsRune(shown, '\'') {
			shown = strings.ReplaceAll(shown, `"`, "?") // there is no way to write both kinds of quotes, and ? stands for any
		}
		return tally{FacetValue: FacetValue{Clause: about.name + "=" + quote(blanksToUnderscores(shown)), Value: shown}, num: v.num}
	}
	switch {
	case len(v.images) > 0 || len(v.words) > 0:
		var all []tally
		for _, w := range v.list() {
			all = append(all, plain(Printable(w)))
		}
		return all
	case about.kind == kindWord && v.text == "":
		return nil // a list that is empty has no value to choose
	}
	bands := about.kind.bands()
	if bands == nil || v.num == endless {
		return []tally{plain(v.show(about.kind))}
	}
	at, _ := slices.BinarySearch(bands, v.num+1) // the first band's bound that is above the value
	show := func(n int64) string { return operand{num: n}.show(about.kind) }
	t := tally{band: at + 1}
	switch {
	case at == 0:
		t.Clause, t.Value = about.name+"<"+show(bands[0]), "< "+show(bands[0])
	case at == len(bands):
		t.Clause, t.Value = about.name+">="+show(bands[at-1]), ">= "+show(bands[at-1])
	default:
		t.Value = show(bands[at-1]) + " to " + show(bands[at])
		t.Clause = about.name + ">=" + show(bands[at-1]) + " " + about.name + "<" + show(bands[at])
	}
	return []tally{t}
}

// list is the words of a value that has several.
func (v *value) list() []string {
	if len(v.images) == 0 {
		return v.words
	}
	words := make([]string, len(v.images))
	for i := range v.images {
		words[i] = v.images[i].Name
		if v.digests {
			words[i] = v.images[i].Digest
		}
	}
	return words
}

// bands are the bounds between the bands of a kind, ascending; nil where values are counted one by one. They double or so, as prices and
// speeds spread.
func (k kind) bands() []int64 {
	switch k {
	case kindMoney:
		return []int64{50_000, 100_000, 200_000, 400_000, 800_000, 1_500_000, 3_000_000, 6_000_000, 12_000_000}
	case kindDisk:
		return []int64{50_000, 100_000, 250_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000}
	case kindTime:
		const hour, day = msPerHour, 24 * msPerHour
		return []int64{60_000, 600_000, hour, 6 * hour, day, 7 * day, 30 * day}
	case kindBits:
		return []int64{10_000_000, 50_000_000, 100_000_000, 500_000_000, 1_000_000_000, 10_000_000_000}
	case kindDelay:
		return []int64{1000, 10_000, 25_000, 50_000, 100_000, 200_000}
	case kindSpeed:
		return []int64{10_000, 20_000, 40_000, 80_000, 160_000, 1_000_000}
	case kindPower:
		return []int64{100_000, 200_000, 300_000, 450_000, 700_000}
	}
	return nil
}

// String writes a facet's value as a list shows it.
func (v FacetValue) String() string { return v.Value + " (" + strconv.Itoa(v.Offers) + ")" }
