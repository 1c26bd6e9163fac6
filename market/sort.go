package market

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// Keys of an order beside the names of fields.
const (
	SortBest  = "best"  // the default order of a list: see Rank
	SortPrice = "price" // the whole cost of the job
)

// maxSortKeys bounds the keys of one order.
const maxSortKeys = 8

// Ranked is an offer that matched, with what a list is sorted by.
type Ranked struct {
	Offer    *Offer // never nil; only read
	Match    Match
	Cost     Micro     // the whole cost of the renter's job on this offer, in the offer's currency
	Standing *Standing // as in Row
	Job      *JobShape
	Now      int64
}

// RankedRow makes a row that matched ready for an order. The cost is that of the row's job; of an hour of one slot where there is none.
// False where the price does not fit into money.
func RankedRow(r Row, m Match) (Ranked, bool) {
	priced := r
	if priced.Job == nil {
		priced.Job = &JobShape{Slots: 1, DurationMs: msPerHour}
	}
	cost, known := priced.Total()
	return Ranked{Offer: r.Offer, Match: m, Cost: cost, Standing: r.Standing, Job: r.Job, Now: r.Now}, known
}

// Row returns the offer as the renter sees it.
func (r *Ranked) Row() Row { return Row{Offer: r.Offer, Standing: r.Standing, Job: r.Job, Now: r.Now} }

// SortOffers is Rank with the price as the order that is meant where none is given.
func SortOffers(offers []Ranked, by string) error {
	if by == "" {
		by = SortPrice
	}
	return Rank(offers, by)
}

// Rank sorts a list in place. The order is one or several keys with commas between them: SortBest, SortPrice, a field's name or a claim's,
// each with - behind it for descending; empty is SortBest. Offers that are equal by all keys stand in this order: price up, then memory
// of the card down, then name. Money of different currencies is not compared: offers are grouped by currency first. What is unknown
// stands last in both directions. Where the slots of an offer differ, its best matching slot counts: the lowest value ascending, the
// highest descending. The error has code CodeUnknownField.
func Rank(offers []Ranked, by string) error {
	o, err := parseOrder(by)
	if err != nil {
		return err
	}
	type entry struct {
		ranked Ranked
		sortEntry
	}
	entries := make([]entry, len(offers))
	for i := range offers {
		entries[i] = entry{offers[i], o.entry(&offers[i])}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return o.compare(&a.sortEntry, &b.sortEntry) })
	for i := range entries {
		offers[i] = entries[i].ranked
	}
	return nil
}

// sortKey is one key of an order.
type sortKey struct {
	subject
	special    string // SortBest or SortPrice; "" for a field
	descending bool
}

// order is what a list is sorted by: at least one key.
type order struct{ keys []sortKey }

func parseOrder(by string) (order, error) {
	names := strings.Split(by, ",")
	if by == "" {
		names = []string{SortBest}
	}
	if len(names) > maxSortKeys {
		return order{}, NewError(CodeUnknownField, "field", clip(by, 40), "nearest", SortBest)
	}
	keys := make([]sortKey, len(names))
	for i, name := range names {
		name, descending := strings.CutSuffix(strings.TrimSpace(name), "-")
		name = strings.TrimSuffix(name, "+")
		keys[i].descending = descending
		if low := strings.ToLower(name); low == SortBest || low == SortPrice {
			keys[i].special = low
			continue
		}
		about, err := subjectNamed(name, SortPrice, SortBest)
		if err != nil {
			return order{}, err
		}
		keys[i].subject = about
	}
	return order{keys}, nil
}

// sortEntry is what an offer is compared by, read once.
type sortEntry struct {
	values   []value // one for each key; that of SortBest or SortPrice is empty
	rank     rankKey // where a key is SortBest
	currency string
	cost     Micro
	memory   int64 // of the largest matching card, as it is sold
	name, id string
	rig      Key
}

func (o *order) entry(r *Ranked) sortEntry {
	e := sortEntry{
		values: make([]value, len(o.keys)), currency: r.Offer.Prices.Currency, cost: r.Cost, name: r.Offer.Name, id: r.Offer.ID, rig: r.Offer.Rig,
	}
	row := r.Row()
	for i := range o.keys {
		switch k := &o.keys[i]; k.special {
		case SortBest:
			e.rank = newRankKey(&row)
		case SortPrice:
		default:
			e.values[i] = r.sortValue(&row, &k.subject, k.descending)
		}
	}
	e.memory = r.sortValue(&row, &subject{field: fieldGPURAM, kind: kindMemory}, true).num
	return e
}

// compare is a total order: two offers are equal only where they are the same rig's of one name.
func (o *order) compare(a, b *sortEntry) int {
	for i := range o.keys {
		if c := o.keys[i].compare(a, b, i); c != 0 {
			return c
		}
	}
	return cmp.Or(
		cmp.Compare(a.currency, b.currency),
		cmp.Compare(a.cost, b.cost),
		cmp.Compare(b.memory, a.memory),
		cmp.Compare(a.name, b.name),
		cmp.Compare(a.id, b.id),
		bytes.Compare(a.rig[:], b.rig[:]),
	)
}

// compare orders two offers by one key.
func (k *sortKey) compare(a, b *sortEntry, at int) int {
	currency := cmp.Compare(a.currency, b.currency)
	switch k.special {
	case SortBest:
		return directed(cmp.Or(a.rank.before(&b.rank), currency, cmp.Compare(a.cost, b.cost), a.rank.after(&b.rank)), k.descending)
	case SortPrice:
		return cmp.Or(currency, directed(cmp.Compare(a.cost, b.cost), k.descending))
	}
	v, w := &a.values[at], &b.values[at]
	switch {
	case k.kind == kindMoney && currency != 0:
		return currency
	case !v.known && !w.known:
		return 0
	case !v.known:
		return 1
	case !w.known:
		return -1
	}
	return directed(v.compare(*w, k.kind), k.descending)
}

// sortValue returns the value by which an offer is sorted.
func (r *Ranked) sortValue(row *Row, about *subject, descending bool) value {
	if about.field == fieldNumGPUs {
		return number(int64(len(r.Match.Slots)))
	}
	var best value
	for i := range r.Offer.Slots {
		s := &r.Offer.Slots[i]
		if len(r.Match.Slots) > 0 && !slices.Contains(r.Match.Slots, s.Index) {
			continue
		}
		v := about.read(row, s)
		if v.known && (!best.known || directed(v.compare(best, about.kind), descending) < 0) {
			best = v
		}
		if !about.field.perSlot() {
			break
		}
	}
	return best
}

func directed(order int, descending bool) int {
	if descending {
		return -order
	}
	return order
}
