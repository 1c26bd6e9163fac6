package market

// advance moves the meter to now and takes in what a tick tells. Only a running job is billed, at most MaxTickMs for one
// reading, and never beyond the leased time or the budget.
func (l Lease) advance(now Instant, e Event) Lease {
	m := l.Meter
	passed := max(0, now.Mono-m.LastMono)
	m.LastMono, m.LastWall = now.Mono, now.Wall
	if tick, ok := e.(Tick); ok {
		m.In, m.Out = max(m.In, tick.In), max(m.Out, tick.Out)
		if len(tick.Slots) > 0 {
			m.Slots = tick.Slots
		}
	}
	if l.Job != JobRunning {
		l.Meter = m
		return l
	}
	billed := l.affordable(m, min(passed, MaxTickMs))
	m.BilledMs += billed
	m.UnbilledMs += passed - billed
	if l.Away {
		l.AwayMs += billed
	}
	l.Meter = m
	return l
}

// affordable returns how many of the next ms the leased time and the budget still cover. The bill grows with time, so the
// last affordable millisecond is found by halving.
func (l Lease) affordable(m Meter, ms int64) int64 {
	ms = max(0, min(ms, l.Terms.DurationMs-m.BilledMs))
	fits := func(more int64) bool {
		bill, err := l.Terms.Prices.Bill(l.Terms.UsageAt(m.BilledMs+more, m.In, m.Out))
		return err == nil && bill.Total <= l.Terms.Budget
	}
	if fits(ms) {
		return ms
	}
	low, high := int64(0), ms // low fits or is nothing, high does not fit
	for high-low > 1 {
		if mid := (low + high) / 2; fits(mid) {
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
