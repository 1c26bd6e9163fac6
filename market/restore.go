package market

// lostSlices is by how much the numbers of slices jump when a rig's store was put back: a number that it used and forgot is never
// used again.
const lostSlices = uint32(1 << 16)

// contact takes that the renter's side has come or gone. Where the rig's store was put back, the renter's own first word says how
// much the rig has forgotten.
func (l Lease) contact(e Contact) Lease {
	l.Away = e.Away
	if e.Away || e.Deputy || !l.Unsure && l.MaySign() {
		return l
	}
	if l.Unsure {
		l.Unsure = false
		l.Slices += lostSlices
	}
	l.Wait, l.WaitPaid = e.Seq, e.Paid
	return l
}

// MaySign reports whether the rig may sign something new for the lease: not after its store was put back and before it has got
// back what it signed and forgot.
func (l Lease) MaySign() bool { return !l.Unsure && l.Head.Seq >= l.Wait && l.PaidSeq >= l.WaitPaid }

// forgotten reports whether a receipt that both signed is one that the rig signed before its store was put back.
func (l Lease) forgotten(r Receipt) bool {
	return !l.Unsure && r.Lease == l.ID && r.Seq == l.Head.Seq+1 && r.Seq <= l.Wait && r.Prev == l.Head.Hash
}

// recall takes up a receipt that the rig had forgotten, and what it says was used, and how the lease ended.
func (l Lease) recall(r Receipt) Lease {
	m := l.Meter
	m.BilledMs, m.UnbilledMs, m.KeptMs = max(m.BilledMs, r.BilledMs), max(m.UnbilledMs, r.UnbilledMs), max(m.KeptMs, r.KeptMs)
	m.In, m.Out = max(m.In, r.Usage.InBytes), max(m.Out, r.Usage.OutBytes)
	m.SeenIn, m.SeenOut = max(m.SeenIn, m.In), max(m.SeenOut, m.Out)
	if !l.covers(m.BilledMs, m.KeptMs, m.In, m.Out) { // what was counted before and after do not go together: what both signed does
		m.KeptMs = r.KeptMs
	}
	if !l.covers(m.BilledMs, m.KeptMs, m.In, m.Out) {
		m.BilledMs, m.In, m.Out = r.BilledMs, r.Usage.InBytes, r.Usage.OutBytes
		l.Base.BilledMs = min(l.Base.BilledMs, m.BilledMs)
	}
	l.Meter, l.Draft = m, nil
	if r.Exit != nil {
		exit := *r.Exit
		l.Reason, l.Exit = exit.Reason, &exit
	}
	for _, was := range r.Gaps {
		l.Gaps = addGap(l.Gaps, was.Reason, was.Ms-gapOf(l.Gaps, was.Reason))
	}
	return l
}
