package market

// advance moves the meter to now and takes in what a tick or an exit tells. Only a running job and a kept disk are billed, at most
// MaxTickMs for one reading, and never beyond the leased time, the budget or the credit.
func (l Lease) advance(now Instant, e Event) Lease {
	m := l.Meter
	passed := max(0, now.Mono-m.LastMono)
	m.LastMono, m.LastWall = now.Mono, now.Wall
	if tick, ok := e.(Tick); ok && len(tick.Slots) > 0 {
		m.Slots = tick.Slots
	}
	if l.Job == JobPaused {
		m.KeptMs += most(min(passed, MaxTickMs), func(more int64) bool { return l.covers(m.BilledMs, m.KeptMs+more, m.In, m.Out) })
	}
	if l.Job != JobRunning {
		l.Meter = m
		return l
	}
	billed := l.affordable(m, min(passed, MaxTickMs))
	m.BilledMs += billed
	m.UnbilledMs += passed - billed
	m = l.traffic(m, e)
	if l.Away {
		l.AwayMs += billed
	}
	l.Meter = m
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
	return err == nil && bill.Total <= l.Current().Most()
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

// rebase takes the first reading in a new process. The time since the last reading of the old one is not billed.
func (l Lease) rebase(now Instant) Lease {
	if l.Job == JobRunning {
		l.Meter.UnbilledMs += max(0, now.Wall-l.Meter.LastWall)
	}
	l.Meter.LastMono, l.Meter.LastWall = now.Mono, now.Wall
	l.Away = true // the agent has to connect again
	return l
}
