package market

// Times of a kept disk. Milliseconds.
const (
	KeepMostMs     = int64(7 * 24 * msPerHour) // one pause lasts so long at most
	KeptIntervalMs = int64(900_000)            // between receipts while only the disk is kept
)

// maxAttempts bounds the starts of one lease: preparing one costs the rig time that nobody pays.
const maxAttempts = 100

// AttemptMs returns the billed time of the present attempt; 0 if it has not run.
func (l Lease) AttemptMs() int64 { return l.Meter.BilledMs - l.Base.BilledMs }

// keep takes the renter's order to end the job and to keep its disk.
func (l Lease) keep(now Instant, e Stop) (Lease, []Action, error) {
	switch {
	case l.Job == JobPaused:
		return l, nil, nil
	case l.Job == JobEnded || l.Job == JobStopping && l.Reason != ReasonRenter && !l.Keeping:
		return l, nil, NewError(CodeKeepEnded, "reason", string(l.Reason))
	case l.Job == JobStopping:
		l.Keeping = true
		if e.Kill {
			l.KillAt = min(l.KillAt, now.Wall)
			return l, []Action{EndJob{}}, nil
		}
		return l, nil, nil
	case l.Job != JobRunning && l.Attempt == 0:
		return l, nil, NewError(CodeNotRunning) // there is nothing on the disk yet
	}
	l.Keeping = true
	grace := l.Terms.NoticeMs
	if e.Kill || l.Job != JobRunning {
		grace = 0
	}
	return l.halt(now, e.Reason, grace)
}

// pause frees the slots and keeps the disk at its price. The slots stay held until the memory of the cards that the job may have
// used is overwritten.
func (l Lease) pause(now Instant, exit Exit) (Lease, []Action, error) {
	if l.Job == JobStopping {
		l.PausedMs += max(0, now.Wall-l.Since) // the notice is not running time
	}
	l = l.into(JobPaused, now)
	l.Reason, l.Exit, l.Keeping = exit.Reason, &exit, false
	l.Wiping = l.Touched
	l, actions, err := l.propose(now)
	if l.Wiping {
		actions = append(actions, Scrub{})
	}
	return l, actions, err
}

// unmade pauses a lease whose new attempt could not be made or started. One that was never made has left the disk where it was.
func (l Lease) unmade(now Instant, reason Reason) (Lease, []Action, error) {
	return l.pause(now, Exit{Reason: reason, Code: failedCode})
}

// resume starts a paused lease again. Duration and budget go on where they were; the deadline moves by the pause and by the time
// that preparing and starting may take.
func (l Lease) resume(now Instant) (Lease, []Action, error) {
	switch {
	case l.Attempt > 0 && (l.Job == JobPreparing || l.Job == JobStarting):
		return l, nil, nil // an echo
	case l.Job == JobEnded:
		return l, nil, NewError(CodeLeaseEnded, "reason", string(l.Reason))
	case l.Job != JobPaused:
		return l, nil, NewError(CodeNotPaused, "state", string(l.Job))
	case l.Wiping:
		return l, nil, NewError(CodeCardBusy)
	case l.Attempt >= maxAttempts:
		return l, nil, NewError(CodeUnsupported, "what", "another start of a lease that was started so often", "instead", "copy its files and rent anew")
	case l.Terms.PaysAhead() && l.Ceiling() < l.Current().Budget && l.costAfter(FirstSliceMs, 0) > l.Ceiling():
		return l, nil, NewError(CodeUnpaid) // as at the first start
	case !l.fits(l.Meter.BilledMs+1, l.Meter.SeenIn, l.Meter.SeenOut):
		return l, nil, NewError(CodeBudgetSpent, "budget", l.Ceiling().String())
	case l.Meter.BilledMs >= l.Current().DurationMs:
		return l, nil, NewError(CodeTimeSpent, "duration", span(l.Current().DurationMs))
	}
	l.PausedMs += max(0, now.Wall-l.Since) + l.Terms.PrepareMs + StartMs
	l = l.into(JobPreparing, now)
	l.Attempt++
	l.DryMs = min(l.DryMs, DryGraceMs-1) // there is a grace again once a slice is paid in full
	l.Base = Base{BilledMs: l.Meter.BilledMs, In: l.Meter.SeenIn, Out: l.Meter.SeenOut}
	l.Reason, l.Exit, l.Code, l.KillAt = "", nil, "", 0
	l.Ready, l.Begun, l.Touched = false, true, false
	l.IdleMs = 0
	return l, []Action{Prepare{}}, nil
}

// giveUp ends a paused lease: no job is left to end. A renter that gives its disk up has it destroyed at once.
func (l Lease) giveUp(now Instant, reason Reason) (Lease, []Action, error) {
	exit := Exit{Reason: reason, Code: failedCode}
	if l.Exit != nil {
		exit.Code = l.Exit.Code
	}
	l = l.end(now, exit)
	l.Discard = reason == ReasonRenter
	l, actions, err := l.propose(now)
	if l.Discard {
		actions = append(actions, Remove{})
	}
	return l, actions, err
}

// overKept names the limit at which a kept disk is given up, or "". Nobody needs to be there: the budget bounds it. Where what was
// paid ahead is used up, it is kept for as long as that of an ended job, unbilled.
func (l Lease) overKept(now Instant) Reason {
	switch {
	case l.Dry() && l.DryMs >= RetentionMs:
		return ReasonUnpaid
	case !l.Dry() && !l.covers(l.Meter.BilledMs, l.Meter.KeptMs+1, l.Meter.In, l.Meter.Out):
		return l.spentReason()
	case now.Wall-l.Since >= KeepMostMs:
		return ReasonExpired
	}
	return ""
}
