package market

// Times of the state machine that the terms do not carry. Milliseconds.
const (
	RetentionMs = int64(24 * msPerHour) // a job's disk and log are kept so long after its end
	stopAgainMs = int64(10_000)         // after the notice, the kill is sent again
	failedCode  = int64(125)            // the exit code of a job that never ran
)

// Step returns the state of a lease after an event, and what the shell must do then. It is a pure function: the shell
// stores the state first and performs the actions after, so that a crash between the two repeats an action and never
// loses one (see Pending). An event that does not fit the state changes nothing and is an error with code CodeBadState,
// unless it is a late echo of something already known, which is ignored.
//
// Invariants: billed time, kept time and total never fall; the total never exceeds the ceiling, nor the billed time the leased time;
// ended stays ended; a draft never changes until it is agreed; an attempt begins only once the cards of the one before are clean.
func Step(l Lease, now Instant, e Event) (Lease, []Action, error) {
	l.Since = min(l.Since, now.Wall) // a wall clock that was set back makes no deadline longer
	switch e := e.(type) {
	case Restarted:
		return l.rebase(now, e), nil, nil
	case Unseen:
		return l.overlook(now), nil, nil
	}
	l = l.advance(now, e)
	switch e := e.(type) {
	case Paid:
		return l.paid(now, e)
	case Signed:
		return l.signed(now)
	case Prepared:
		return l.prepared(now)
	case Started:
		return l.after(JobStarting, JobRunning, now)
	case Failed:
		return l.failed(now, e)
	case Exited:
		return l.exited(now, e)
	case Tick:
		return l.tick(now)
	case Contact:
		return l.contact(e), nil, nil
	case Agreed:
		return l.agreed(now, e)
	case Rejected:
		return l.rejected(now)
	case Stop:
		return l.stop(now, e)
	case Scrubbed:
		return l.scrubbed(now, e)
	case Removed:
		return l.removed(now)
	case Begin:
		return l.begin(now)
	case Resume:
		return l.resume(now)
	case Extend:
		return l.extend(e)
	}
	return l, nil, l.misfit(e)
}

// Pending returns the actions that a lease in this state still needs. A shell performs them after a restart, when it
// cannot know which of the actions of its last life were done.
func Pending(l Lease) []Action {
	var actions []Action
	switch l.Job {
	case JobGranted:
		if l.Early && !l.Ready {
			actions = append(actions, Prepare{})
		}
	case JobPreparing:
		if !l.Ready && l.Funded() {
			actions = append(actions, Prepare{})
		}
	case JobStarting:
		actions = append(actions, Start{})
	case JobStopping:
		actions = append(actions, EndJob{})
	}
	if l.Wiping {
		actions = append(actions, Scrub{})
	}
	if l.Slice != nil && l.Job != JobEnded && l.Debt == DebtOpen {
		actions = append(actions, AskPay{Slice: *l.Slice})
	}
	if l.Draft != nil {
		actions = append(actions, Propose{Receipt: *l.Draft})
	}
	return actions
}

func (l Lease) misfit(e Event) error {
	return NewError(CodeBadState, "state", string(l.Job), "event", e.event())
}

// into moves the job to a state.
func (l Lease) into(s JobState, now Instant) Lease {
	l.Job, l.Since = s, now.Wall
	l.Touched = l.Touched || s == JobStarting
	return l
}

// after moves the job on if it is in the state before; anything later is a late echo.
func (l Lease) after(from, to JobState, now Instant, actions ...Action) (Lease, []Action, error) {
	switch l.Job {
	case from:
		return l.into(to, now), actions, nil
	case JobGranted:
		return l, nil, NewError(CodeBadState, "state", string(l.Job), "event", string(to))
	}
	return l, nil, nil
}

func (l Lease) signed(now Instant) (Lease, []Action, error) {
	switch {
	case l.Job == JobGranted && now.Wall-l.Since >= l.Terms.HoldMs:
		return l.lapse(now)
	case l.Job == JobGranted:
		return l.into(JobPreparing, now).proceed(now)
	case l.Reason == ReasonHoldExpired:
		return l, nil, NewError(CodeHoldExpired)
	}
	return l, nil, nil
}

func (l Lease) failed(now Instant, e Failed) (Lease, []Action, error) {
	if l.Job != JobPreparing && l.Job != JobStarting && l.Job != JobStopping {
		return l, nil, l.misfit(e)
	}
	if e.Code != "" {
		l.Code = e.Code
	}
	if l.Job == JobStopping {
		e.Reason = l.Reason
	}
	if l.Attempt > 0 && (l.Job != JobStopping || l.Keeping) {
		return l.unmade(now, e.Reason)
	}
	return l.finish(now, Exit{Reason: e.Reason, Code: failedCode})
}

func (l Lease) exited(now Instant, e Exited) (Lease, []Action, error) {
	switch l.Job {
	case JobEnded, JobPaused:
		return l, nil, nil
	case JobGranted:
		return l, nil, l.misfit(e)
	}
	if e.RanMs > 0 {
		l.Meter.BilledMs = min(l.Meter.BilledMs, max(l.Base.BilledMs+e.RanMs, l.claimed()))
	}
	exit := Exit{Reason: ReasonCompleted, Code: e.Code}
	switch {
	case l.Keeping && e.Lost && !l.Ready: // a new attempt that was never made
		return l.unmade(now, l.Reason)
	case l.Keeping && !e.Lost:
		l.Disk = l.Attempt // though nobody may have said that it was made
		return l.pause(now, Exit{Reason: l.Reason, Code: e.Code})
	case l.Keeping: // and its disk is gone with it
		exit.Reason = ReasonLost
	case l.Job == JobStopping:
		exit.Reason = l.Reason
	case e.Lost:
		exit.Reason = ReasonLost
	case e.OOM:
		exit.Reason = ReasonOOM
	case e.DiskFull:
		exit.Reason = ReasonDiskFull
	}
	return l.finish(now, exit)
}

// finish ends the job. Its slots stay held until the memory of the cards that it may have used is overwritten.
func (l Lease) finish(now Instant, exit Exit) (Lease, []Action, error) {
	l = l.end(now, exit)
	l.Wiping, l.Keeping = l.Touched, false
	l, actions, err := l.propose(now)
	if l.Wiping {
		actions = append(actions, Scrub{})
	}
	return l, actions, err
}

// claimed is the billed time that a receipt has stated already: it can never fall.
func (l Lease) claimed() int64 {
	if l.Draft != nil {
		return l.Draft.BilledMs
	}
	return l.Head.BilledMs
}

func (l Lease) end(now Instant, exit Exit) Lease {
	l = l.into(JobEnded, now)
	l.Reason, l.Exit = exit.Reason, &exit
	return l
}

// lapse ends a grant that nobody signed. Nobody owes anything for terms that only one side signed.
func (l Lease) lapse(now Instant) (Lease, []Action, error) {
	l = l.end(now, Exit{Reason: ReasonHoldExpired, Code: failedCode})
	l.Debt, l.Gone = DebtFinal, !l.Early
	if l.Gone {
		return l, nil, nil
	}
	return l, []Action{Remove{}}, nil
}

func (l Lease) tick(now Instant) (Lease, []Action, error) {
	inState := now.Wall - l.Since
	switch {
	case l.Job == JobGranted && inState >= l.Terms.HoldMs:
		return l.lapse(now)
	case l.Job == JobPreparing:
		return l.tickPreparing(now, inState)
	case l.Job == JobStarting && inState >= StartMs:
		l.Keeping = l.Attempt > 0
		return l.halt(now, ReasonStart, 0)
	case l.Job == JobRunning:
		if reason := l.over(now); reason != "" {
			l.Keeping = reason == ReasonUnpaid
			return l.halt(now, reason, l.Terms.NoticeMs)
		}
		return l.charge(now)
	case l.Job == JobStopping && inState >= l.Terms.NoticeMs+stopAgainMs:
		return l, []Action{EndJob{}}, nil
	case l.Job == JobPaused:
		if reason := l.overKept(now); reason != "" {
			return l.giveUp(now, reason)
		}
		return l.charge(now)
	case l.Job == JobEnded:
		return l.tickEnded(now, inState)
	}
	return l, nil, nil
}

// tickEnded removes what is left of a job when its time has come, and drafts the final receipt where the rig could not sign before.
func (l Lease) tickEnded(now Instant, inState int64) (Lease, []Action, error) {
	l, actions, err := l.propose(now)
	if !l.Gone && (inState >= RetentionMs || l.Reason == ReasonHoldExpired || l.Discard) {
		actions = append(actions, Remove{})
	}
	return l, actions, err
}

// tickPreparing ends what is not paid or not made ready in time.
func (l Lease) tickPreparing(now Instant, inState int64) (Lease, []Action, error) {
	switch {
	case !l.Funded() && inState >= FirstPayMs:
		l.Code, l.Discard = CodeUnpaid, true
		return l.finish(now, Exit{Reason: ReasonUnpaid, Code: failedCode})
	case !l.Funded():
		l, actions := l.ask(now)
		return l, actions, nil
	case inState < l.Terms.PrepareMs:
		return l, nil, nil
	case l.Awaits():
		l.Code = CodeUploadMissing
	}
	l.Keeping = l.Attempt > 0
	return l.halt(now, ReasonPrepare, 0)
}

// over names the limit at which a running job must stop, or "".
func (l Lease) over(now Instant) Reason {
	terms := l.Current()
	dry, spent := l.Dry(), l.DryMs >= DryGraceMs // paying a millionth now and then does not change that
	switch {
	case (dry || spent) && l.Meter.BilledMs >= terms.DurationMs: // it was paid to the end
		return ReasonExpired
	case spent:
		return ReasonUnpaid
	case !dry && !l.fits(l.Meter.BilledMs+1, l.Meter.SeenIn, l.Meter.SeenOut):
		return l.spentReason()
	case l.Meter.BilledMs >= terms.DurationMs:
		return ReasonExpired
	case now.Wall >= terms.Deadline:
		return ReasonDeadline
	case !l.Away && l.Meter.BilledMs-l.Head.BilledMs-l.AwayMs > l.Terms.Limits.UnsignedMs:
		return ReasonUnsigned
	case l.Away && l.Terms.Limits.UnattendedMs != Unlimited && l.AwayMs > l.Terms.Limits.UnattendedMs:
		return ReasonUnattended
	case l.Terms.Idle != nil && l.IdleMs >= l.Terms.Idle.ForMs:
		return ReasonIdle
	}
	return ""
}

// spentReason says what ran out when nothing more can be billed.
func (l Lease) spentReason() Reason {
	switch {
	case l.Ceiling() >= l.Current().Budget:
		return ReasonBudget
	case l.Terms.PaysAhead():
		return ReasonUnpaid
	}
	return ReasonCredit
}

func (l Lease) stop(now Instant, e Stop) (Lease, []Action, error) {
	if e.Keep {
		return l.keep(now, e)
	}
	grace := l.Terms.NoticeMs
	if e.Kill || l.Job != JobRunning {
		grace = 0
	}
	switch {
	case l.Job == JobEnded:
		return l, nil, NewError(CodeLeaseEnded, "reason", string(l.Reason))
	case l.Job == JobGranted:
		return l.lapse(now)
	case l.Job == JobPaused:
		return l.giveUp(now, e.Reason)
	}
	l.Keeping = l.Keeping && e.Reason != ReasonRenter // only the renter gives its disk up
	switch {
	case l.Job == JobStopping && !e.Kill:
		return l, nil, nil
	case l.Job == JobStopping:
		l.KillAt = min(l.KillAt, now.Wall)
		return l, []Action{EndJob{}}, nil
	}
	return l.halt(now, e.Reason, grace)
}

// halt orders the end of a job. From here on nothing is billed. A renter that did not order it is told, under the rig's signature,
// where there is a time to be told.
func (l Lease) halt(now Instant, reason Reason, graceMs int64) (Lease, []Action, error) {
	l = l.into(JobStopping, now)
	l.Reason, l.KillAt = reason, now.Wall+graceMs
	end := EndJob{GraceMs: graceMs}
	if graceMs == 0 || reason == ReasonRenter {
		return l, []Action{end}, nil
	}
	notice := Notice{Lease: l.ID, Seq: l.Attempt + 1, Reason: reason, At: now.Wall, KillAt: l.KillAt}
	return l, []Action{Warn{Notice: notice}, end}, nil
}

func (l Lease) agreed(now Instant, e Agreed) (Lease, []Action, error) {
	switch {
	case e.Receipt.Seq <= l.Head.Seq:
		return l, nil, nil // a late echo
	case l.forgotten(e.Receipt) && (l.Draft == nil || e.Hash != HashOf(l.Draft.Body())):
		if e.Receipt.Kind == ReceiptFinal && l.Job != JobEnded {
			return l, nil, l.misfit(e) // it is over, and the engine will say so: nothing is billed behind a closed chain
		}
		l = l.recall(e.Receipt)
	case l.Draft == nil || e.Receipt.Seq != l.Draft.Seq || e.Hash != HashOf(l.Draft.Body()):
		return l, nil, NewError(CodeReceiptChain, "seq", "signed", "why", "it is not the draft")
	}
	l.Head, l.Draft = HeadOf(e.Receipt, e.Hash), nil
	l.AwayMs = min(l.AwayMs, l.Meter.BilledMs-l.Head.BilledMs)
	if e.Receipt.Kind == ReceiptFinal {
		l.Debt = DebtFinal
		return l, nil, nil
	}
	return l.propose(now)
}

func (l Lease) rejected(now Instant) (Lease, []Action, error) {
	if l.Draft == nil {
		return l, nil, l.misfit(Rejected{})
	}
	l.Debt, l.Keeping = DebtDisputed, false
	if l.Job == JobEnded {
		return l, nil, nil
	}
	return l.stop(now, Stop{Reason: ReasonDisputed})
}
