package renter

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"haggle/internal/view"
	"haggle/market"
)

// facetValues is how many values are listed of each field that is counted.
const facetValues = 12

// Offers answers a query from the index, after making it fresh: that takes 3 seconds at most, and what could not be had in
// time is said in the list's Reason. A query that makes no sense is refused before anything is asked. The error has code
// CodeNoPeers where the network answers nothing and nothing is known of it.
func (a *Agent) Offers(ctx context.Context, ask view.OfferQuery) (view.OfferList, error) {
	q, err := a.question(ctx, ask)
	if err != nil {
		return view.OfferList{}, err
	}
	job := shapeOf(ask.Job)
	found, err := a.search(ctx, q, job)
	if err != nil {
		return view.OfferList{}, err
	}
	rows, matches, err := found.best(q, job.Slots, ask.Sort, ask.Limit)
	if err != nil {
		return view.OfferList{}, err
	}
	list := view.OfferList{Offers: []view.Offer{}, Matches: matches, Known: found.known, Rigs: found.rigs, Reason: found.reason}
	progress := a.index.Progress(q)
	list.About, list.Reading = max(progress.About, list.Known), progress.Reading
	for _, r := range rows {
		list.Offers = append(list.Offers, view.OfferOfRow(r.Row(), r.known.Hash, r.Match.Slots, false))
	}
	if ask.Facets != "" {
		if list.Facets, err = found.facets(q, splitFields(ask.Facets)); err != nil {
			return view.OfferList{}, err
		}
	}
	if ask.Explain {
		funnel, nearest := found.explain(q)
		list.Funnel = view.FunnelOf(funnel, func(int) string { return a.calls(nearest.Offer) })
	}
	return list, nil
}

// question checks what is asked for before anybody is asked, and returns its query.
func (a *Agent) question(ctx context.Context, ask view.OfferQuery) (market.Query, error) {
	q, err := a.query(ctx, ask.Query)
	if err == nil {
		err = market.Rank(nil, ask.Sort)
	}
	if err == nil && ask.Facets != "" {
		_, err = market.Query{}.Facets(nil, splitFields(ask.Facets), facetValues)
	}
	if err == nil {
		err = checkShape(ask.Job)
	}
	if err == nil && ask.Job.GPUs > 1 {
		q, err = withCount(q, ask.Job.GPUs)
	}
	return q, err
}

// withCount adds to a query that a job needs so many cards: as a clause, which counts, facets and the funnel then show like any other.
func withCount(q market.Query, slots int) (market.Query, error) {
	text := q.String()
	if text != "" {
		text = "(" + text + ") "
	}
	return market.ParseQuery(text + "num_gpus>=" + strconv.Itoa(slots))
}

// splitFields splits a list of fields at its commas.
func splitFields(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// held returns the book as it is, for a job, without asking anybody.
func (a *Agent) held(ctx context.Context, job *market.JobShape) (found, error) {
	if err := a.catchUp(ctx); err != nil {
		return found{}, err
	}
	now := a.cfg.Clock()
	tally := a.index.Tally(now)
	f := found{a: a, job: job, now: now.UnixMilli(), rigs: tally.Listed, silent: tally.Silent}
	a.book.mu.RLock()
	defer a.book.mu.RUnlock()
	f.known = a.book.table.Live(f.now)
	return f, nil
}

// search makes the index fresh and returns what is known then, for a job.
func (a *Agent) search(ctx context.Context, q market.Query, job *market.JobShape) (found, error) {
	fresh := a.index.Refresh(ctx, q)
	if err := ctx.Err(); err != nil {
		return found{}, fmt.Errorf("search offers: %w", err)
	}
	f, err := a.held(ctx, job)
	if err != nil {
		return found{}, err
	}
	unready := a.index.Reason()
	if unready != nil && f.known == 0 && f.rigs == 0 {
		return found{}, unready
	}
	skews := a.index.Skews()
	if f.known == 0 && len(skews) > 0 {
		return found{}, market.NewError(market.CodeClockSkew, "peer", skews[0].Rig, "skew", skews[0].Skew.Abs().String())
	}
	var why []string
	for _, s := range skews[:min(len(skews), maxWarnings)] {
		why = append(why, s.Sentence())
	}
	if unready != nil {
		why = append(why, market.Explain(unready).Message)
	}
	if !fresh {
		why = append(why, "the lookup is still running")
	}
	if f.silent > 0 {
		why = append(why, strconv.Itoa(f.silent)+" rigs do not answer")
	}
	f.reason = strings.Join(why, "; ")
	return f, nil
}

// wholeCost prices a job's slots and disk for its whole time; diskMB is what is asked for, 0 what is granted then. Traffic is
// unknown before.
func wholeCost(o market.Offer, slots int, diskMB, ms int64) (market.Micro, error) {
	bill, err := o.Prices.Bill(market.UsageAt(ms, slots, o.DiskMB(slots, diskMB), 0, 0))
	return bill.Total, err
}

// isPrefix reports whether a text can be the beginning of an id: at least 3 hexadecimal digits.
func isPrefix(id string) bool {
	return len(id) >= 3 && len(id) <= 64 && strings.Trim(id, "0123456789abcdef") == ""
}

// clip bounds what is repeated in an error.
func clip(s string) string { return s[:min(len(s), 64)] }
