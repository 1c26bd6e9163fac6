package market

// advance moves the meter to now and takes in what a tick or an exit tells. Only a running job and a kept disk are billed, at most
// MaxTickMs for one reading, and never beyond the leased time or the ceiling.
func (l Lease) advance(now Instant, e Event) Lease {
	passed := l.passed(now)
	counted := min(passed, MaxTickMs)
	before := l.Meter.Slots
	tick, ticked := e.(Tick)
	if ticked && len(tick.Slots) > 0 {
		l.Meter.Slots = tick.Slots
	}
	if l.Job != JobRunning {
		return l.wait(passed, counted)
	}
	billed := l.affordable(l.Meter, counted)
	l.Meter.BilledMs += billed
	l = l.unbilled(UnbilledStalled, passed-counted).unbilled(UnbilledUnpaid, counted-billed)
	l.Meter = l.traffic(l.Meter, e)
	if l.Away {
		l.AwayMs += billed
	}
	if l.Dry() {
		l.DryMs += counted
	}
	if ticked {
		l = l.watchIdle(before, tick)
	}
	return l
}

// passed takes the clock's reading and returns the time since the last one.
func (l *Lease) passed(now Instant) int64 {
	passed := max(0, now.Mono-l.Meter.LastMono)
	l.Meter.LastMono, l.Meter.LastWall = now.Mono, now.Wall
	return passed
}

// wait lets time pass in which no job runs: a kept disk is billed as far as the ceiling covers it.
func (l Lease) wait(passed, counted int64) Lease {
	l.Gaps = addGap(l.Gaps, l.idleGap(), passed)
	if l.Job != JobPaused {
		return l
	}
	m := l.Meter
	l.Meter.KeptMs += most(counted, func(more int64) bool { return l.covers(m.BilledMs, m.KeptMs+more, m.In, m.Out) })
	if l.Dry() {
		l.DryMs += counted
	}
	return l
}

// affordable returns how many of the next ms the leased time and the budget still cover.
func (l Lease) affordable(m Meter, ms int64) int64 {
	ms = max(0, min(ms, l.Current().DurationMs-m.BilledMs))
	fits := func(more int64) bool {
		return l.fits(m.BilledMs+more, m.In, m.Out)
	}
	return most(ms, fits)
}

// traffic takes in the engine's count of a running job's traffic. What the budget does not cover is seen and not billed.
func (l Lease) traffic(m Meter, e Event) Meter {
	switch e := e.(type) {
	case Tick:
		m.SeenIn, m.SeenOut = max(m.SeenIn, l.Base.In+e.In), max(m.SeenOut, l.Base.Out+e.Out)
	case Exited:
		m.SeenIn, m.SeenOut = max(m.SeenIn, l.Base.In+e.In), max(m.SeenOut, l.Base.Out+e.Out)
	}
	m.In += most(m.SeenIn-m.In, func(more int64) bool { return l.fits(m.BilledMs, m.In+more, m.Out) })
	m.Out += most(m.SeenOut-m.Out, func(more int64) bool { return l.fits(m.BilledMs, m.In, m.Out+more) })
	return m
}

// fits reports whether a use costs no more than the lease may.
func (l Lease) fits(billedMs, in, out int64) bool {
	return l.covers(billedMs, l.Meter.KeptMs, in, out)
}

// covers is fits for another time for which the disk is kept.
func (l Lease) covers(billedMs, keptMs, in, out int64) bool {
	bill, err := l.Terms.Prices.Bill(l.Terms.UsedBy(billedMs, keptMs, in, out))
	return err == nil && bill.Total <= l.Ceiling()
}

// most returns the greatest n from 0 to all that fits, by halving: what fits grows no larger with n.
func most(all int64, fits func(n int64) bool) int64 {
	if all <= 0 || fits(all) {
		return max(0, all)
	}
	low, high := int64(0), all // low fits or is nothing, high does not fit
	for high-low > 1 {
		if mid := low + (high-low)/2; fits(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// rebase takes the first reading in a new process. The time for which the rig's program did not run is not billed.
func (l Lease) rebase(now Instant, e Restarted) Lease {
	down := min(max(0, e.DownMs), maxLeaseTime.Milliseconds())
	l.passed(now)
	if l.Job == JobRunning {
		l = l.unbilled(UnbilledDown, down)
	} else {
		l.Gaps = addGap(l.Gaps, l.idleGap(), down)
	}
	if l.Job == JobPaused && l.Dry() {
		l.DryMs += down
	}
	l.Away = true // the agent has to connect again
	return l
}

// overlook takes the first reading after a time in which nobody could see whether the job runs: a running job is not billed for it.
func (l Lease) overlook(now Instant) Lease {
	passed := l.passed(now)
	if l.Job == JobRunning {
		return l.unbilled(UnbilledFault, passed)
	}
	return l.wait(passed, min(passed, MaxTickMs))
}
