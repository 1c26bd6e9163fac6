package renter

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"haggle/internal/index"
	"haggle/market"
)

// maxProofs is how many rigs are asked again for a bid whose residency needs more than their word: the best that match.
const maxProofs = 8

// residencyOf puts a residency clause into the form in which it is signed; nil stays nil.
func residencyOf(r *market.Residency) *market.Residency {
	if r == nil {
		return nil
	}
	c := &market.Residency{Level: cmp.Or(r.Level, market.ResidencyClaimed)}
	for _, country := range r.Countries {
		c.Countries = append(c.Countries, strings.ToUpper(strings.TrimSpace(country)))
	}
	slices.Sort(c.Countries)
	c.Countries = slices.Compact(c.Countries)
	return c
}

// prove asks the rigs that an order could go to again where its residency needs more than their word: an address and a round trip are known
// only of a rig that is connected.
func (a *Agent) prove(ctx context.Context, o order, f *found) error {
	if o.residency == nil || o.residency.Level == market.ResidencyClaimed {
		return nil
	}
	var asked sync.WaitGroup
	for _, k := range o.toProve(*f) {
		asked.Go(func() {
			if a.index.Look(ctx, k.Offer.Rig) {
				a.measureTrip(ctx, k.Offer.Rig)
			}
		})
	}
	asked.Wait()
	again, err := a.held(ctx, o.shape())
	if err != nil {
		return err
	}
	*f = again
	return nil
}

// toProve returns the offers whose place must be proven.
func (o order) toProve(f found) []*index.Known {
	if o.offer != "" {
		k, err := f.named(o.offer)
		if err != nil {
			return nil // placing the order meets the same fault, and tells it
		}
		return []*index.Known{k}
	}
	rows, _, err := f.best(o.query, o.count, "", 0)
	if err != nil {
		return nil
	}
	var list []*index.Known
	for _, r := range rows {
		if o.residency.Admits(*r.Offer) && len(list) < maxProofs {
			list = append(list, r.known)
		}
	}
	return list
}

// misplaced says why a bid with a residency clause does not go to an offer, or nil where what is seen of it proves enough.
func (o order) misplaced(row market.Row) error {
	switch {
	case o.residency.Proves(row):
		return nil
	case !o.residency.Admits(*row.Offer):
		return market.NewError(market.CodeResidency, "rig", row.Offer.Name,
			"country", cmp.Or(row.Offer.Net.Country, "no country"), "countries", strings.Join(o.residency.Countries, ", "))
	}
	return market.NewError(market.CodeUnproven, "rig", row.Offer.Name, "seen", string(row.Residency()), "level", string(o.residency.Level))
}

// nowhere says why none of the offers that match is where the job may run: the fault of the best that stands there, if any does.
func (o order) nowhere(rows []placed) error {
	for _, r := range rows {
		if o.residency.Admits(*r.Offer) {
			return o.misplaced(r.Row())
		}
	}
	return market.NewError(market.CodeNoPlace, "offers", strconv.Itoa(len(rows)), "countries", strings.Join(o.residency.Countries, ", "))
}
