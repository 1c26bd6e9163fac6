package renter

import (
	"context"
	"time"

	"haggle/internal/index"
	"haggle/internal/view"
	"haggle/market"
)

// priceOf is the time for which offers are priced where nobody says for how long.
const priceOf = time.Hour

// checkShape refuses a job that makes no sense.
func checkShape(j view.JobShape) error {
	switch {
	case j.GPUs < 0 || j.GPUs > market.MaxSlots:
		return badRequest("the number of cards does not fit into one rig")
	case min(j.DurationMs, j.DiskMB, j.InMB, j.OutMB, j.ImageBytes) < 0:
		return badRequest("a time, a disk or traffic of the job is negative")
	}
	return nil
}

// shapeOf is the job for which offers are priced.
func shapeOf(j view.JobShape) *market.JobShape {
	shape := &market.JobShape{
		Slots: max(j.GPUs, 1), DurationMs: j.DurationMs, DiskMB: j.DiskMB, InMB: j.InMB, OutMB: j.OutMB, Image: j.Image,
	}
	if shape.DurationMs == 0 {
		shape.DurationMs = priceOf.Milliseconds()
	}
	if j.ImageBytes > 0 {
		shape.ImageBytes = &j.ImageBytes
	}
	return shape
}

// Offer is LookAt for an hour of one slot.
func (a *Agent) Offer(ctx context.Context, id string) (view.Offer, error) {
	return a.LookAt(ctx, id, view.JobShape{})
}

// LookAt returns one offer in detail, priced for a job, after asking its rig again: what is looked at is to be its owner's word, and the
// view says whose word it is where the rig keeps silent. It is named by at least 3 digits of its hash, or by the name of its rig where no
// other rig has that name.
func (a *Agent) LookAt(ctx context.Context, id string, job view.JobShape) (view.Offer, error) {
	if err := checkShape(job); err != nil {
		return view.Offer{}, err
	}
	shape := shapeOf(job)
	found, err := a.search(ctx, market.Query{}, shape)
	if err != nil {
		return view.Offer{}, err
	}
	k, err := found.named(id)
	if err != nil {
		return view.Offer{}, err
	}
	row, k, err := a.lookAgain(ctx, k, shape)
	if err != nil {
		return view.Offer{}, err
	}
	return view.OfferOfRow(row, k.Hash, k.Offer.Free(), true), nil
}

// lookAgain asks an offer's rig again and returns the offer's row as it is known then.
func (a *Agent) lookAgain(ctx context.Context, k *index.Known, job *market.JobShape) (market.Row, *index.Known, error) {
	if a.index.Look(ctx, k.Offer.Rig) {
		for _, now := range a.index.Of(k.Offer.Rig, a.cfg.Clock()) {
			if now.Offer.ID == k.Offer.ID {
				k = now
			}
		}
		a.measureTrip(ctx, k.Offer.Rig)
	}
	row, err := a.row(ctx, k, job)
	return row, k, err
}

// measureTrip measures the round trip to a rig that somebody looks at, where that can be had.
func (a *Agent) measureTrip(ctx context.Context, rig market.Key) {
	if a.cfg.Measure == nil {
		return
	}
	if _, rtt := a.cfg.Net.PathTo(rig); rtt > 0 {
		return
	}
	if err := a.cfg.Measure(ctx, rig); err != nil {
		a.cfg.Log.Debug("round trip is not known", "peer", rig.String(), "err", err)
	}
}
