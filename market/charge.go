package market

// charge drafts a receipt and asks for money, where either is due.
func (l Lease) charge(now Instant) (Lease, []Action, error) {
	l, actions, err := l.propose(now)
	if err != nil {
		return l, actions, err
	}
	l, asked := l.ask(now)
	return l, append(actions, asked...), nil
}

// propose drafts a receipt if one is due and none waits for a signature.
func (l Lease) propose(now Instant) (Lease, []Action, error) {
	if l.Draft != nil || l.Debt != DebtOpen || !l.MaySign() || !l.due() {
		return l, nil, nil
	}
	usage := l.usage()
	bill, err := l.Terms.Prices.Bill(usage)
	if err != nil {
		return l, nil, err // advance never lets the meter come here
	}
	r := Receipt{
		Lease: l.ID, Seq: l.Head.Seq + 1, Prev: l.Head.Hash, Kind: ReceiptInterval,
		BilledMs: l.Meter.BilledMs, UnbilledMs: l.Meter.UnbilledMs, Usage: usage, Bill: bill,
		Slots: l.Meter.Slots, WallMs: now.Wall, KeptMs: l.Meter.KeptMs, Gaps: l.Gaps, Paid: l.Paid,
	}
	if l.Job == JobEnded {
		r.Kind, r.Exit = ReceiptFinal, l.Exit
	}
	l.Draft = &r
	return l, []Action{Propose{Receipt: r}}, nil
}

func (l Lease) due() bool {
	since := l.Meter.BilledMs - l.Head.BilledMs
	switch {
	case l.Job == JobEnded:
		return true
	case l.Job == JobPaused:
		return since > 0 || l.Meter.KeptMs-l.Head.KeptMs >= KeptIntervalMs
	case l.Job != JobRunning:
		return false
	case l.Head.Seq == 0:
		return since >= l.Terms.FirstMs
	}
	return since >= l.Terms.IntervalMs
}
