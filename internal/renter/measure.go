package renter

import (
	"haggle/market"
)

// instant returns this moment as a measure takes it, and the machine's boot.
func (a *Agent) instant() (market.Instant, market.Nonce) {
	now := a.cfg.Clock()
	at := market.Instant{Mono: now.Sub(a.born).Milliseconds(), Wall: now.UnixMilli()}
	var boot market.Nonce
	if a.cfg.Boot != nil {
		at.Mono, boot = a.cfg.Boot()
	}
	return at, boot
}

// measured begins the measure of a lease that this side has just signed: that moment counts as a word of the rig.
func (a *Agent) measured() market.Measure {
	now, boot := a.instant()
	m, _ := market.Measure{}.Begin(boot, now).Hear(market.StatusMessage{State: market.JobGranted}, now)
	return m
}

// woken returns a record with the measure of another life gone on with. Where there is none, the job cannot have run before this
// side signed.
func (a *Agent) woken(r Record) Record {
	if r.Lease.IsZero() || r.State.over() {
		return r
	}
	now, boot := a.instant()
	m := r.State.Measure
	if m.IsZero() {
		at := r.State.SignedAt
		if r.State.RunningAt > 0 {
			at = r.State.RunningAt
		}
		passed := max(0, now.Wall-at)
		m = m.Begin(boot, market.Instant{Mono: now.Mono - passed, Wall: now.Wall - passed})
	}
	t := r.terms()
	if len(t.Deputies) > 0 {
		t.Limits.UnattendedMs = market.Unlimited // a deputy was there all the while
	}
	r.State.Measure = m.Wake(boot, now, t, r.Head)
	return r
}

// measure changes a lease's measure in memory. It is stored with the next change of the record.
func (a *Agent) measure(l *lease, change func(Record) market.Measure) {
	l.writing.Lock()
	defer l.writing.Unlock()
	r, _ := l.get()
	m := change(r)
	l.change(func() { l.record.State.Measure = m })
}

// seen returns the longest time for which a lease's job can have run, or Unlimited.
func (a *Agent) seen(r Record) market.Seen {
	now, _ := a.instant()
	return r.State.Measure.Seen(now)
}
