package renter

import (
	"context"

	"haggle/market"
)

// maxAttempts is how often a rig can say in one life of this program that an attempt began: that is written down.
const maxAttempts = 1000

// status takes the rig's word on the job. It is stored when the job moved on, which it does only forwards, so that a rig
// cannot make this side write without end; running figures stay in memory.
func (k *link) status(ctx context.Context, s Stream, m market.StatusMessage) error {
	if !bounded(m) {
		return market.NewError(market.CodeUnexpected, "got", "status out of bounds")
	}
	r, err := k.told(ctx, m)
	if err != nil {
		return err
	}
	if m.State == market.JobGranted && r.State.Job == market.JobGranted && r.State.Serves.IsZero() {
		return k.accept(ctx, s, r) // it has not got our signature
	}
	return nil
}

// told notes the rig's word and returns the record as it is then.
func (k *link) told(ctx context.Context, m market.StatusMessage) (Record, error) {
	k.l.writing.Lock()
	defer k.l.writing.Unlock()
	now := k.a.cfg.Clock()
	r, _ := k.l.get()
	at, _ := k.a.instant()
	measure, started := r.State.Measure.Hear(m, at)
	r.State.Measure = measure
	moved := k.forward(r.State, m)
	r.State.Seen = now.UnixMilli()
	r.State.BilledMs, r.State.Total = m.BilledMs, m.Total
	r.State.KillAt, r.State.Code, r.State.DiskFull = m.KillAt, m.Code, m.DiskFull
	r.State.In, r.State.Out, r.State.DiskUsed = m.In, m.Out, m.DiskUsed
	r.State.KeptMs = max(r.State.KeptMs, m.KeptMs)
	r.State.DryMs = m.Dry
	r.Cards = m.Cards
	if moved {
		r.State.Job, r.State.Reason, r.State.Exit = m.State, m.Reason, m.Exit
		r.State.Attempt = max(r.State.Attempt, m.Attempt)
		r.State.Since = now.UnixMilli()
		if m.SinceMs > r.State.SignedAt && m.SinceMs < r.State.Since {
			r.State.Since = m.SinceMs
		}
	}
	r.State.Ready = m.Ready && r.State.Job == market.JobPreparing
	if r.State.RunningAt == 0 && r.State.Job == market.JobRunning {
		r.State.RunningAt = r.State.Since
	}
	if r.State.Job == market.JobEnded {
		r.Env = nil
		k.l.change(func() { k.l.secrets = nil })
		if r.State.Reason == market.ReasonHoldExpired {
			r.State.Refused = market.Public(market.NewError(market.CodeHoldExpired))
		}
	}
	if !moved && !started {
		k.a.show(k.l, r)
		return r, nil
	}
	return r, k.a.commitLocked(ctx, k.l, func(old *Record) { *old = r })
}

// accept sends the signature again. A job whose secrets were lost with this program's last life is not begun without them.
func (k *link) accept(ctx context.Context, s Stream, r Record) error {
	m, whole := k.l.acceptance(r)
	if whole {
		return s.Send(ctx, m)
	}
	return k.a.fail(ctx, k.l, market.NewError(market.CodeSecretsLost))
}

// forward reports whether a rig's word moves a lease on. An attempt begins at the front again; its number never falls.
func (k *link) forward(s State, m market.StatusMessage) bool {
	switch {
	case m.State == market.JobEnded && s.Job != market.JobEnded:
		return true // a rig whose store was put back may end an older attempt
	case m.Attempt > s.Attempt && s.Job != market.JobEnded && k.turns < maxAttempts:
		k.turns++
		return true
	case m.Attempt != s.Attempt:
		return false
	case m.State == s.Job:
		return s.Exit == nil && m.Exit != nil
	}
	return rank(m.State) > rank(s.Job)
}

// bounded reports whether a rig's word can be kept and shown.
func bounded(m market.StatusMessage) bool {
	return rank(m.State) > 0 && len(m.Reason) <= maxReason && len(m.Code) <= maxReason && len(m.Cards) <= market.MaxSlots &&
		(m.Exit == nil || len(m.Exit.Reason) <= maxReason) && min(m.BilledMs, int64(m.Total), m.KillAt, m.In, m.Out, m.DiskUsed, m.KeptMs, int64(m.Paid), m.Dry) >= 0
}
