package renter

import (
	"strconv"
	"strings"

	"haggle/internal/index"
	"haggle/internal/view"
	"haggle/market"
)

// mostPlaces is up to how many of the best offers a table keeps in order while it is asked. Of more, all that match are put in order.
const mostPlaces = 4096

// found is what was known when somebody asked, for one job. Its methods ask the book as it is when they are called: what came or went
// since is in it.
type found struct {
	a      *Agent
	job    *market.JobShape
	now    int64 // Unix milliseconds
	known  int   // offers that are valid, free or not
	rigs   int
	silent int // rigs that do not answer
	reason string
}

// placed is an offer that matches, in its place.
type placed struct {
	market.Ranked
	known *index.Known
}

func (f found) ask(q market.Query, slots int) market.TableQuery {
	return market.TableQuery{Query: q, Job: f.job, Now: f.now, Slots: slots}
}

// best returns the best of the offers that match with enough free slots, each with the cost of the job, and how many match; a limit of 0
// returns all of them.
func (f found) best(q market.Query, slots int, order string, limit int) (list []placed, matches int, err error) {
	for {
		if limit > 0 && limit <= mostPlaces {
			list, matches, err = f.selected(q, slots, order, limit)
		} else {
			list, err = f.sorted(q, slots, order)
			matches = len(list)
			if limit > 0 {
				list = list[:min(len(list), limit)]
			}
		}
		if err != nil || !f.refuse(list) {
			return list, matches, err
		}
	}
}

// refuse takes offers out of the book whose rig or owner has been blocked since it was last seen to, and reports whether there were any.
func (f found) refuse(list []placed) bool {
	any := false
	for _, p := range list {
		if f.a.admits(p.known) {
			continue
		}
		any = true
		f.a.book.mu.Lock()
		f.a.enterRig(p.known.Offer.Rig)
		f.a.book.mu.Unlock()
	}
	return any
}

func (f found) selected(q market.Query, slots int, order string, limit int) ([]placed, int, error) {
	b := &f.a.book
	b.mu.RLock()
	defer b.mu.RUnlock()
	asked := f.ask(q, slots)
	asked.Order, asked.Limit = order, limit
	answer, err := b.table.Select(asked)
	if err != nil {
		return nil, 0, err
	}
	list := make([]placed, 0, len(answer.Best))
	for _, r := range answer.Best {
		if k := b.find(r.Offer.Rig, r.Offer.ID); k != nil {
			list = append(list, placed{r, k})
		}
	}
	return list, answer.Matches, nil
}

// sorted returns all offers that match, in order.
func (f found) sorted(q market.Query, slots int, order string) ([]placed, error) {
	var ranked []market.Ranked
	known := map[*market.Offer]*index.Known{}
	f.visit(q, slots, func(r market.Row, k *index.Known) {
		m, _ := q.MatchRow(r)
		if in, priced := market.RankedRow(r, m); priced { // a price that does not fit into money is none
			ranked = append(ranked, in)
			known[in.Offer] = k
		}
	})
	if err := market.Rank(ranked, order); err != nil {
		return nil, err
	}
	list := make([]placed, len(ranked))
	for i, r := range ranked {
		list[i] = placed{r, known[r.Offer]}
	}
	return list, nil
}

// visit visits the offers that match with enough free slots, in no order.
func (f found) visit(q market.Query, slots int, visit func(market.Row, *index.Known)) {
	b := &f.a.book
	b.mu.RLock()
	defer b.mu.RUnlock()
	b.table.Visit(f.ask(q, slots), func(rig market.Key, id string, s market.Standing) {
		if k := b.find(rig, id); k != nil {
			visit(market.Row{Offer: &k.Offer, Standing: &s, Job: f.job, Now: f.now}, k)
		}
	})
}

// facets counts fields of what matches.
func (f found) facets(q market.Query, fields []string) ([]market.Facet, error) {
	f.a.book.mu.RLock()
	defer f.a.book.mu.RUnlock()
	return f.a.book.table.Facets(f.ask(q, 0), fields, facetValues)
}

// explain says what each clause leaves; the nearest miss, if there is one, is returned whole.
func (f found) explain(q market.Query) (market.Funnel, *market.Row) {
	f.a.book.mu.RLock()
	defer f.a.book.mu.RUnlock()
	return f.a.book.table.Explain(f.ask(q, 0))
}

// row is an offer as a row for the job.
func (f found) row(k *index.Known) market.Row {
	f.a.book.mu.RLock()
	defer f.a.book.mu.RUnlock()
	return market.Row{Offer: &k.Offer, Standing: f.a.standing(k, f.a.book.dealt), Job: f.job, Now: f.now}
}

// hashOf returns the hash of an offer that the book has; zero where it has gone.
func (f found) hashOf(o *market.Offer) (hash market.Hash) {
	f.a.book.mu.RLock()
	defer f.a.book.mu.RUnlock()
	if k := f.a.book.find(o.Rig, o.ID); k != nil {
		hash = k.Hash
	}
	return hash
}

// named finds one offer by the beginning of its hash, or of one that it had before it was renewed, or by its rig's name;
// a name that the user gave wins over one that a rig gave itself.
func (f found) named(id string) (*index.Known, error) {
	id = strings.ToLower(id)
	var hits, mine []*index.Known // mine: what the user calls so
	digits := isPrefix(id)
	f.a.offersNow(func(k *index.Known) {
		if digits && k.Named(id) || strings.ToLower(k.Offer.Name) == id {
			hits = append(hits, k)
		}
		if id != "" && strings.ToLower(f.a.nameOf(k.Offer.Rig, k.Offer.Owner)) == id {
			mine = append(mine, k)
		}
	})
	if len(mine) > 0 {
		hits = mine // whatever others call themselves
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

// calls is what an offer's rig is called, safe to print.
func (a *Agent) calls(o *market.Offer) string {
	return market.Printable(view.Named(a.nameOf(o.Rig, o.Owner), o.Name))
}
