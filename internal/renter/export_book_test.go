package renter

import (
	"context"

	"haggle/market"
)

// PlainOffers answers a query from the index's list, row by row: what the book must answer, too. It returns all that match, in order.
func PlainOffers(ctx context.Context, a *Agent, q market.Query, slots int, order string) (list []market.Ranked, funnel market.Funnel, err error) {
	d, err := a.dealtWith(ctx)
	if err != nil {
		return nil, funnel, err
	}
	now := a.cfg.Clock()
	offers, _ := a.index.Live(now)
	var rows []market.Row
	job := &market.JobShape{Slots: slots, DurationMs: priceOf.Milliseconds()}
	for _, k := range offers {
		rows = append(rows, market.Row{Offer: &k.Offer, Standing: a.standing(k, d), Job: job, Now: now.UnixMilli()})
	}
	for _, r := range rows {
		if m, ok := q.MatchRow(r); ok && len(m.Slots) >= slots {
			if ranked, priced := market.RankedRow(r, m); priced {
				list = append(list, ranked)
			}
		}
	}
	return list, q.ExplainRows(rows), market.Rank(list, order)
}
