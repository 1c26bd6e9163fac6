package renter

import (
	"context"
	"fmt"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// stopTime is how long Stop waits for the rig.
const stopTime = 10 * time.Second

// Stop ends a lease's job: with SIGTERM and the notice of the terms, or at once. It returns when the rig says that it
// stops, or has ended where kill is true. With a rig that cannot be reached the error has code CodeUnreachable; the order
// is kept and sent as soon as the rig is back, while this agent runs.
func (a *Agent) Stop(ctx context.Context, id string, kill bool) (view.Lease, error) {
	r, err := a.find(ctx, id)
	if err != nil {
		return view.Lease{}, err
	}
	l := a.opened(r.Bid)
	if l == nil && !r.State.over() {
		return view.Lease{}, fmt.Errorf("stop lease %s: %w", r.Lease.Short(), errStopped)
	}
	if l != nil {
		r, _ = l.get()
	}
	if r.State.Job == market.JobEnded {
		return view.Lease{}, market.NewError(market.CodeLeaseEnded, "reason", string(r.State.Reason))
	}
	failures := l.attempts()
	l.order(kill)
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	for {
		change := l.watch()
		r, connected := l.get()
		switch job := r.State.Job; {
		case job == market.JobEnded, job == market.JobStopping && !kill:
			return a.leaseView(r, connected), nil
		case !connected && l.attempts() > failures:
			return view.Lease{}, unreachable(r.Terms.Rig)
		}
		select {
		case <-change:
		case <-a.stopped:
			return view.Lease{}, fmt.Errorf("stop lease %s: %w", r.Lease.Short(), errStopped)
		case <-ctx.Done():
			return view.Lease{}, fault(context.WithoutCancel(ctx), ctx.Err(), r.Terms.Rig)
		}
	}
}
