package renter

import (
	"context"
	"fmt"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// stopTime is how long an order waits for the rig's answer.
const stopTime = 10 * time.Second

// Stop ends a lease's job: with SIGTERM and the notice of the terms, or at once. It returns when the rig says that it
// stops, or has ended where kill is true. With a rig that cannot be reached the error has code CodeUnreachable; the order
// is kept and sent as soon as the rig is back, while this agent runs.
func (a *Agent) Stop(ctx context.Context, id string, kill bool) (view.Lease, error) {
	return a.perform(ctx, id, request{
		give: func(l *lease) { l.order(market.StopMessage{Kill: kill}) },
		done: func(r Record) bool { return r.State.Job == market.JobStopping && !kill },
	})
}

// Keep ends a lease's job and keeps its disk at the disk's price. It returns when the rig says that the job stops. Errors are as
// those of Stop.
func (a *Agent) Keep(ctx context.Context, id string) (view.Lease, error) {
	r, err := a.find(ctx, id)
	if err != nil {
		return view.Lease{}, err
	}
	if r.State.Job != market.JobEnded { // from now on time for which only the disk is kept can be believed
		if _, err := a.amend(ctx, r, func(in *Inside) error { in.Keeps = true; return nil }); err != nil {
			return view.Lease{}, err
		}
	}
	return a.perform(ctx, id, request{
		what: market.OrderKeep,
		give: func(l *lease) { l.order(market.StopMessage{Keep: true}) },
		done: func(r Record) bool { return r.State.Job == market.JobStopping || r.State.Job == market.JobPaused },
	})
}

// Resume starts the job of a paused lease again. It returns when the rig prepares it; the error is the rig's where it does not: the
// cards may be taken. Otherwise errors are as those of Stop, and with CodeNotPaused.
func (a *Agent) Resume(ctx context.Context, id string) (view.Lease, error) {
	r, err := a.find(ctx, id)
	if err != nil {
		return view.Lease{}, err
	}
	r, _ = a.latest(r)
	before := r.State.Attempt
	return a.perform(ctx, id, request{
		what: market.OrderResume,
		only: market.JobPaused,
		give: func(l *lease) { l.orderAgain() },
		done: func(r Record) bool { return r.State.Attempt > before },
	})
}

// Remove ends a paused lease, and its disk is wiped. Errors are as those of Stop, and with CodeNotPaused.
func (a *Agent) Remove(ctx context.Context, id string) (view.Lease, error) {
	return a.perform(ctx, id, request{
		only: market.JobPaused,
		give: func(l *lease) { l.order(market.StopMessage{Kill: true}) },
		done: func(Record) bool { return false },
	})
}

// request is an order and the answer that it waits for. The end of the job is an answer to all of them.
type request struct {
	what string          // as the rig calls it when it declines; "" if it cannot
	only market.JobState // the state in which it can be given; "" for any but the end
	give func(*lease)
	done func(Record) bool
}

// perform gives an order and waits for the rig's answer.
func (a *Agent) perform(ctx context.Context, id string, c request) (view.Lease, error) {
	r, err := a.find(ctx, id)
	if err != nil {
		return view.Lease{}, err
	}
	if !r.State.Serves.IsZero() {
		return view.Lease{}, market.NewError(market.CodeNotYours) // a deputy signs, pays and collects
	}
	l := a.opened(r.Bid)
	if l == nil && !r.State.over() {
		return view.Lease{}, fmt.Errorf("lease %s: %w", r.Lease.Short(), errStopped)
	}
	if l != nil {
		r, _ = l.get()
	}
	switch {
	case r.State.Job == market.JobEnded:
		return view.Lease{}, market.NewError(market.CodeLeaseEnded, "reason", string(r.State.Reason))
	case c.only != "" && r.State.Job != c.only:
		return view.Lease{}, market.NewError(market.CodeNotPaused, "state", string(r.State.Job))
	}
	failures := l.attempts()
	c.give(l)
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	for {
		change := l.watch()
		r, connected := l.get()
		switch {
		case l.refusal(c.what) != nil:
			return view.Lease{}, l.refusal(c.what)
		case r.State.Job == market.JobEnded, c.done(r):
			return a.leaseView(r, connected), nil
		case !connected && l.attempts() > failures:
			return view.Lease{}, unreachable(r.Terms.Rig)
		}
		select {
		case <-change:
		case <-a.stopped:
			return view.Lease{}, fmt.Errorf("lease %s: %w", r.Lease.Short(), errStopped)
		case <-ctx.Done():
			return view.Lease{}, fault(context.WithoutCancel(ctx), ctx.Err(), r.Terms.Rig)
		}
	}
}
