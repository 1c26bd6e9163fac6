package renter

import (
	"context"

	"haggle/market"
)

// status takes the rig's word on the job. It is stored when the job moved on, which it does only forwards, so that a rig
// cannot make this side write without end; running figures stay in memory.
func (k *link) status(ctx context.Context, s Stream, m market.StatusMessage) error {
	if !bounded(m) {
		return market.NewError(market.CodeUnexpected, "got", "status out of bounds")
	}
	now := k.a.cfg.Clock()
	started := k.seen.hear(m.State == market.JobRunning, now)
	r, _ := k.l.get()
	moved := rank(m.State) > rank(r.State.Job) || m.State == r.State.Job && r.State.Exit == nil && m.Exit != nil
	r.State.Seen = now.UnixMilli()
	r.State.BilledMs, r.State.Total = m.BilledMs, m.Total
	r.State.KillAt, r.State.Code, r.State.DiskFull = m.KillAt, m.Code, m.DiskFull
	r.State.In, r.State.Out, r.State.DiskUsed = m.In, m.Out, m.DiskUsed
	r.Cards = m.Cards
	if moved {
		r.State.Job, r.State.Reason, r.State.Exit = m.State, m.Reason, m.Exit
		r.State.Since = now.UnixMilli()
		if m.SinceMs > r.State.SignedAt && m.SinceMs < r.State.Since {
			r.State.Since = m.SinceMs
		}
	}
	if started {
		r.State.RunningAt = k.seen.base.UnixMilli()
	}
	if r.State.Job == market.JobEnded {
		r.Env = nil
		if r.State.Reason == market.ReasonHoldExpired {
			r.State.Refused = market.Public(market.NewError(market.CodeHoldExpired))
		}
	}
	if !moved && !started {
		k.a.show(k.l, r)
	} else if err := k.a.commit(ctx, k.l, func(old *Record) { *old = r }); err != nil {
		return err
	}
	if m.State == market.JobGranted && r.State.Job == market.JobGranted {
		return s.Send(ctx, market.AcceptMessage{Lease: r.Sealed, Env: r.Env}) // it has not got our signature
	}
	return nil
}

// bounded reports whether a rig's word can be kept and shown.
func bounded(m market.StatusMessage) bool {
	return rank(m.State) > 0 && len(m.Reason) <= maxReason && len(m.Code) <= maxReason && len(m.Cards) <= market.MaxSlots &&
		(m.Exit == nil || len(m.Exit.Reason) <= maxReason) && min(m.BilledMs, int64(m.Total), m.KillAt, m.In, m.Out, m.DiskUsed) >= 0
}
