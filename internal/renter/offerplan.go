package renter

import (
	"cmp"
	"context"

	"haggle/internal/index"
	"haggle/internal/view"
	"haggle/market"
)

// Plan says what a budget buys: the cheapest, the quickest and the safest offer for one job. Nothing is ordered. The errors are those of
// Offers, and CodeBadRequest for a budget of nothing.
func (a *Agent) Plan(ctx context.Context, r view.PlanRequest) (view.Plan, error) {
	if r.BudgetMicro <= 0 {
		return view.Plan{}, badRequest("a plan needs a budget that is more than nothing")
	}
	asked := view.JobShape{
		GPUs: r.GPUs, DurationMs: r.DurationMs, DiskMB: r.DiskMB, InMB: r.InMB, OutMB: r.OutMB, Image: r.Image, ImageBytes: r.ImageBytes,
	}
	q, err := a.question(ctx, view.OfferQuery{Query: r.Query, Job: asked})
	if err != nil {
		return view.Plan{}, err
	}
	job := shapeOf(asked)
	job.DurationMs = r.DurationMs // none: as long as the budget lasts
	found, err := a.search(ctx, q, job)
	if err != nil {
		return view.Plan{}, err
	}
	var rows []market.Row
	var hashes []market.Hash
	found.visit(q, 0, func(r market.Row, k *index.Known) { rows, hashes = append(rows, r), append(hashes, k.Hash) })
	plan := market.PlanFor(q, rows, market.Micro(r.BudgetMicro), cmp.Or(r.Currency, defaultCurrency), *job)
	if miss := plan.Nearest; len(rows) == 0 && miss != nil {
		funnel, near := found.explain(q)
		miss.Funnel = &funnel
		if funnel.Nearest != nil && near != nil {
			rows, hashes, miss.Row = append(rows, *near), append(hashes, found.hashOf(near.Offer)), 0
		}
	}
	times := map[int]int64{} // for which the job runs, by row
	for _, c := range []*market.Choice{plan.Cheapest, plan.Quickest, plan.Safest} {
		if c != nil {
			times[c.Row] = c.RunMs
		}
	}
	return view.PlanOf(plan, func(at int, slots []uint8) view.Offer {
		row, shape := rows[at], *job
		shape.DurationMs = cmp.Or(times[at], shape.DurationMs, priceOf.Milliseconds())
		row.Job = &shape
		return view.OfferOfRow(row, hashes[at], slots, false)
	}), nil
}
