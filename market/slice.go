package market

// Lengths of what is paid ahead, and times to pay. Milliseconds.
const (
	FirstSliceMs = int64(120_000)        // of running time that is paid before the job is made
	SliceMs      = int64(600_000)        // then; doubled for each hour that both have signed
	MostSliceMs  = int64(msPerHour)      // at most
	KeptSliceMs  = int64(24 * msPerHour) // of a kept disk, while no job runs
	FirstPayMs   = int64(180_000)        // time to pay the first slice; the slots are held meanwhile
	DryGraceMs   = int64(60_000)         // a job runs on unbilled for so long once what was paid is used up
)

// PaysAhead reports whether the lease is paid in slices: by a method, and not on unlimited credit.
func (t Terms) PaysAhead() bool { return t.Pay != "" && t.Limits.Credit != Unlimited }

// Ceiling returns the most that a lease may have cost at a moment at which so much was paid for it: what was paid and the credit,
// and never more than the budget. Nothing beyond it is billed.
func (t Terms) Ceiling(paid Micro) Micro {
	if t.Limits.Credit == Unlimited || Micro(t.Limits.Credit) >= t.Budget {
		return t.Budget
	}
	return min(t.Budget, max(0, min(paid, maxMoney))+Micro(t.Limits.Credit))
}

// Ceiling is the terms' Ceiling as the lease stands now.
func (l Lease) Ceiling() Micro { return l.Current().Ceiling(l.Paid) }

// Funded reports whether the money for the first stretch is there, or none is needed: before that the rig makes nothing ready and
// takes no upload.
func (l Lease) Funded() bool {
	return !l.Terms.PaysAhead() || l.Attempt > 0 || l.costAfter(FirstSliceMs, 0) <= l.Ceiling()
}

// Dry reports whether what was paid ahead is used up, though the budget is not.
func (l Lease) Dry() bool {
	return l.Terms.PaysAhead() && l.Ceiling() < l.Current().Budget &&
		!l.fits(l.Meter.BilledMs+1, l.Meter.SeenIn, l.Meter.SeenOut)
}

// NextSlice returns the money that the rig asks for at this moment, if it asks for any; never while a slice is outstanding. AskedAt
// is not set. The first slice is asked for before the job is made ready, each other one when what is left covers neither half a
// stretch nor the rest of the lease. Traffic is asked for once it was seen and not before: only the rig counts it.
func (l Lease) NextSlice() (Slice, bool) {
	runMs, keptMs := l.stretch()
	ceiling := l.Ceiling()
	switch {
	case !l.Terms.PaysAhead() || l.Slice != nil || l.Debt != DebtOpen || !l.MaySign() || runMs+keptMs == 0 || ceiling >= l.Current().Budget:
		return Slice{}, false
	case l.Job == JobPreparing && l.Funded():
		return Slice{}, false
	case l.Job != JobPreparing && !l.Dry() && l.costAfter(runMs/2, keptMs/2) <= ceiling:
		return Slice{}, false
	}
	amount := l.costAfter(runMs, keptMs) - ceiling
	left := max(0, l.Current().DurationMs-l.Meter.BilledMs)
	return Slice{Seq: l.Slices + 1, Amount: amount, ForMs: min(runMs, left) + keptMs}, amount > 0
}

// stretch returns the running time, or the time of a kept disk, that the next slice is for; nothing in states in which none is
// asked for.
func (l Lease) stretch() (runMs, keptMs int64) {
	switch l.Job {
	case JobPreparing:
		runMs = FirstSliceMs
	case JobRunning:
		hours := min(l.Head.BilledMs/msPerHour, 3)
		runMs = min(SliceMs<<hours, MostSliceMs)
	case JobPaused:
		return 0, KeptSliceMs
	}
	return runMs, 0
}

// costAfter returns what the lease will have cost after more running time and more time of a kept disk, with the traffic that was
// seen; the budget where that is less.
func (l Lease) costAfter(runMs, keptMs int64) Micro {
	t, m := l.Current(), l.Meter
	runMs = max(0, min(runMs, t.DurationMs-m.BilledMs))
	bill, err := t.Prices.Bill(t.UsedBy(m.BilledMs+runMs, m.KeptMs+keptMs, m.SeenIn, m.SeenOut))
	if err != nil {
		return t.Budget
	}
	return min(bill.Total, t.Budget)
}

// ask asks for the next slice if it is time to.
func (l Lease) ask(now Instant) (Lease, []Action) {
	s, due := l.NextSlice()
	if !due {
		return l, nil
	}
	s.AskedAt = now.Wall
	l.Slices, l.Slice, l.Need = s.Seq, &s, l.Paid+s.Amount
	return l, []Action{AskPay{Slice: s}}
}

// paid takes money that has arrived, in any state: what was not asked for stays as the lease's balance.
func (l Lease) paid(now Instant, e Paid) (Lease, []Action, error) {
	switch {
	case e.Payment.Seq <= l.PaidSeq && e.Payment.Lease == l.ID:
		return l, nil, nil // a late echo
	case l.Job == JobGranted:
		return l, nil, l.misfit(e)
	}
	seq, total := l.PaidSeq, l.Paid
	if p := e.Payment; p.Seq <= l.WaitPaid && p.Total-p.Amount >= total {
		seq, total = p.Seq-1, p.Total-p.Amount // one that the rig signed and forgot
	}
	if err := CheckPayment(l.ID, seq, total, e.Payment); err != nil {
		return l, nil, err
	}
	waited := l.Job == JobPreparing && !l.Funded()
	l.Paid, l.PaidSeq = e.Payment.Total, e.Payment.Seq
	if l.Slice != nil && (l.Paid >= l.Need || e.Payment.Slice != l.Slice.Seq) {
		// Of a slice that other money has made too large, what is left is asked for anew: the renter would rightly refuse it.
		l.Slice, l.Need = nil, 0
	}
	if _, due := l.NextSlice(); !due && !l.Dry() && l.Slice == nil && l.Job != JobPreparing { // less than is due buys no new grace
		l.DryMs = 0
	}
	if !waited || !l.Funded() {
		return l, nil, nil
	}
	return l.into(JobPreparing, now).proceed(now) // the time to prepare begins now
}

// proceed takes a job that both have signed towards its start: it asks for the first money, makes the job ready, or starts it.
func (l Lease) proceed(now Instant) (Lease, []Action, error) {
	switch {
	case !l.Funded():
		l, actions := l.ask(now)
		return l, actions, nil
	case l.Ready:
		return l.launch(now)
	}
	return l, []Action{Prepare{}}, nil
}
