package market

import (
	"cmp"
	"slices"
	"strings"
)

// SortPrice is the key of the default order, beside the names of fields: the whole cost of the job.
const SortPrice = "price"

// Ranked is an offer that matched, with what a list is sorted by.
type Ranked struct {
	Offer *Offer // never nil; only read
	Match Match
	Cost  Micro // the whole cost of the renter's job on this offer, in the offer's currency
}

// SortOffers sorts a list in place. The key is SortPrice or a field's name, with - behind it for descending; empty is
// SortPrice. Offers that are equal by the key stand in the default order: price up, then memory of the card down, then
// name. Money of different currencies is not compared: offers are grouped by currency first. What is unknown stands last
// in both directions. Where the slots of an offer differ, its best matching slot counts: the lowest value ascending, the
// highest descending. The error has code CodeUnknownField.
func SortOffers(offers []Ranked, by string) error {
	name, descending := strings.CutSuffix(by, "-")
	if by == "" || strings.EqualFold(name, SortPrice) {
		slices.SortStableFunc(offers, func(a, b Ranked) int {
			return cmp.Or(compareCurrency(a, b), directed(cmp.Compare(a.Cost, b.Cost), descending), compareDefault(a, b))
		})
		return nil
	}
	field, row, err := fieldNamed(name, SortPrice)
	if err != nil {
		return err
	}
	keyed := make([]sortRow, len(offers))
	for i, r := range offers {
		keyed[i] = sortRow{Ranked: r, value: r.sortValue(field, row.kind, descending)}
	}
	slices.SortStableFunc(keyed, func(a, b sortRow) int {
		currency := 0
		if row.kind == kindMoney {
			currency = compareCurrency(a.Ranked, b.Ranked)
		}
		return cmp.Or(currency, a.compare(b, row.kind, descending), compareDefault(a.Ranked, b.Ranked))
	})
	for i, r := range keyed {
		offers[i] = r.Ranked
	}
	return nil
}

type sortRow struct {
	Ranked
	value value
}

func (r sortRow) compare(s sortRow, k kind, descending bool) int {
	switch {
	case !r.value.known && !s.value.known:
		return 0
	case !r.value.known:
		return 1
	case !s.value.known:
		return -1
	}
	return directed(r.value.compare(s.value, k), descending)
}

// sortValue returns the value by which an offer is sorted.
func (r Ranked) sortValue(field fieldID, k kind, descending bool) value {
	if field == fieldNumGPUs {
		return number(int64(len(r.Match.Slots)))
	}
	var best value
	for i := range r.Offer.Slots {
		s := &r.Offer.Slots[i]
		if len(r.Match.Slots) > 0 && !slices.Contains(r.Match.Slots, s.Index) {
			continue
		}
		v := field.read(r.Offer, s)
		if v.known && (!best.known || directed(v.compare(best, k), descending) < 0) {
			best = v
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

func compareCurrency(a, b Ranked) int {
	return cmp.Compare(a.Offer.Prices.Currency, b.Offer.Prices.Currency)
}

// compareDefault is the order of offers that are equal by the key.
func compareDefault(a, b Ranked) int {
	return cmp.Or(
		compareCurrency(a, b),
		cmp.Compare(a.Cost, b.Cost),
		cmp.Compare(b.memory(), a.memory()),
		cmp.Compare(a.Offer.Name, b.Offer.Name),
		cmp.Compare(a.Offer.ID, b.Offer.ID),
	)
}

// memory is that of the largest matching card, as it is sold.
func (r Ranked) memory() int64 { return r.sortValue(fieldGPURAM, kindMemory, true).num }
