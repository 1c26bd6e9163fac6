package renter

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// priceOf is the time for which offers are priced when they are listed.
const priceOf = time.Hour

// Offers answers a query from the index, after making it fresh: that takes 3 seconds at most, and what could not be had in
// time is said in the list's Reason. A query that makes no sense is refused before anything is asked. The error has code
// CodeNoPeers where the network answers nothing and nothing is known of it.
func (a *Agent) Offers(ctx context.Context, ask view.OfferQuery) (view.OfferList, error) {
	q, err := market.ParseQuery(ask.Query)
	if err == nil {
		err = market.SortOffers(nil, ask.Sort)
	}
	if err != nil {
		return view.OfferList{}, err
	}
	found, err := a.search(ctx, q)
	if err != nil {
		return view.OfferList{}, err
	}
	rows := found.match(q, 1, priceOf)
	if err := market.SortOffers(rows, ask.Sort); err != nil {
		return view.OfferList{}, err
	}
	list := view.OfferList{Offers: []view.Offer{}, Known: len(found.offers), Rigs: found.rigs, Reason: found.reason}
	now := a.cfg.Clock()
	for _, r := range rows {
		list.Offers = append(list.Offers, view.OfferOf(*r.Offer, found.byOffer[r.Offer].hash, r.Match.Slots, now, false))
	}
	if ask.Explain {
		list.Funnel = found.explain(q)
	}
	return list, nil
}

// Offer returns one offer in detail. It is named by at least 3 digits of its hash, or by the name of its rig where no
// other rig has that name.
func (a *Agent) Offer(ctx context.Context, id string) (view.Offer, error) {
	found, err := a.search(ctx, market.Query{})
	if err != nil {
		return view.Offer{}, err
	}
	k, err := found.named(id)
	if err != nil {
		return view.Offer{}, err
	}
	return view.OfferOf(k.offer, k.hash, k.offer.Free(), a.cfg.Clock(), true), nil
}

// found is what the index held at one moment.
type found struct {
	offers  []*known
	byOffer map[*market.Offer]*known
	rigs    int
	reason  string
}

// search makes the index fresh and returns what it holds.
func (a *Agent) search(ctx context.Context, q market.Query) (found, error) {
	bucket := anyBucket
	if b := q.Buckets(); len(b) > 0 {
		bucket = b[0]
	}
	fresh := a.discovery.refresh(ctx, bucket)
	if err := ctx.Err(); err != nil {
		return found{}, fmt.Errorf("search offers: %w", err)
	}
	offers, answering, silent := a.index.live(a.cfg.Clock())
	f := found{offers: offers, rigs: answering, byOffer: make(map[*market.Offer]*known, len(offers))}
	for _, k := range offers {
		f.byOffer[&k.offer] = k
	}
	unready := a.discovery.reason()
	if unready != nil && len(offers) == 0 && answering == 0 {
		return found{}, unready
	}
	skews := a.index.skews()
	if len(offers) == 0 && len(skews) > 0 {
		return found{}, market.NewError(market.CodeClockSkew, "peer", skews[0].rig, "skew", skews[0].skew.Abs().String())
	}
	var why []string
	for _, s := range skews[:min(len(skews), maxWarnings)] {
		why = append(why, s.sentence())
	}
	if unready != nil {
		why = append(why, market.Explain(unready).Message)
	}
	if !fresh {
		why = append(why, "the lookup is still running")
	}
	if silent > 0 {
		why = append(why, strconv.Itoa(silent)+" rigs do not answer")
	}
	f.reason = strings.Join(why, "; ")
	return f, nil
}

// match returns the offers that answer a query with enough slots, each with the cost of a job of that many slots and time.
func (f found) match(q market.Query, slots int, d time.Duration) []market.Ranked {
	var rows []market.Ranked
	for _, k := range f.offers {
		m, ok := q.Match(k.offer)
		if !ok || len(m.Slots) < slots {
			continue
		}
		cost, err := wholeCost(k.offer, slots, 0, d.Milliseconds())
		if err != nil {
			continue // a price that does not fit into money is none
		}
		rows = append(rows, market.Ranked{Offer: &k.offer, Match: m, Cost: cost})
	}
	return rows
}

// wholeCost prices a job's slots and disk for its whole time; diskMB is what is asked for, 0 what is granted then. Traffic is
// unknown before.
func wholeCost(o market.Offer, slots int, diskMB, ms int64) (market.Micro, error) {
	bill, err := o.Prices.Bill(market.UsageAt(ms, slots, o.DiskMB(slots, diskMB), 0, 0))
	return bill.Total, err
}

// named finds one offer by the beginning of its hash, or of one that it had before it was renewed, or by its rig's name.
func (f found) named(id string) (*known, error) {
	id = strings.ToLower(id)
	var hits []*known
	for _, k := range f.offers {
		if isPrefix(id) && k.isNamed(id) || strings.ToLower(k.offer.Name) == id {
			hits = append(hits, k)
		}
	}
	switch {
	case len(hits) == 1:
		return hits[0], nil
	case len(hits) > 1:
		why := market.Printable(clip(id)) + " fits " + strconv.Itoa(len(hits)) + " offers: type more digits of the offer's id"
		return nil, market.NewError(market.CodeBadRequest, "why", why)
	}
	return nil, market.NewError(market.CodeOfferUnknown, "offer", clip(id))
}

func (f found) explain(q market.Query) *view.Funnel {
	offers := make([]market.Offer, len(f.offers))
	for i, k := range f.offers {
		offers[i] = k.offer
	}
	told := q.Explain(offers)
	v := &view.Funnel{Known: told.Offers, Steps: []view.FunnelStep{}}
	for _, s := range told.Steps {
		v.Steps = append(v.Steps, view.FunnelStep{Clause: s.Clause, Left: s.Left})
	}
	if miss := told.Nearest; miss != nil && miss.Offer < len(offers) {
		var parts []string
		for _, m := range miss.Missed {
			parts = append(parts, m.Clause+" (it is "+m.Value+")")
		}
		v.Nearest = market.Printable(offers[miss.Offer].Name) + " misses " + strings.Join(parts, ", ")
	}
	return v
}

// isPrefix reports whether a text can be the beginning of an id: at least 3 hexadecimal digits.
func isPrefix(id string) bool {
	return len(id) >= 3 && len(id) <= 64 && strings.Trim(id, "0123456789abcdef") == ""
}

// clip bounds what is repeated in an error.
func clip(s string) string { return s[:min(len(s), 64)] }
