package sim

import (
	"haggle/market"
)

// honest reports whether a rig means well.
func (r *rig) honest() bool { return !r.w.opt.Cheat.OfRig() }

// meddle returns the state from which a rig's program with a mistake steps.
func (r *rig) meddle(l market.Lease, now market.Instant, e market.Event) market.Lease {
	bugs := r.w.opt.Bugs
	_, tick := e.(market.Tick)
	switch {
	case bugs.BillsUnpaid:
		l.Terms.Limits.Credit = market.Unlimited
	case bugs.NewDraftWhileOneIsOut && tick && l.Draft != nil && l.Job == market.JobRunning && now.Wall-l.Draft.WallMs > l.Terms.IntervalMs/2:
		l.Draft = nil
	case bugs.NoClamp && tick:
		for at := l.Meter.LastMono + tickMs; at < now.Mono; at += tickMs {
			l, _, _ = market.Step(l, market.Instant{Mono: at, Wall: now.Wall}, market.Contact{Away: l.Away, Deputy: true})
		}
	}
	return l
}

// cheat changes what an honest rig would do.
func (r *rig) cheat(next market.Lease, actions []market.Action) (market.Lease, []market.Action) {
	for i, a := range actions {
		p, ok := a.(market.Propose)
		if !ok {
			continue
		}
		receipt := p.Receipt
		switch c := r.w.opt.Cheat; {
		case c == CheatOverbill:
			receipt = r.overbilled(next, receipt)
		case c == CheatSkip && receipt.Seq == 3:
			receipt.Seq++
		case c == CheatOtherLease && receipt.Seq == 3:
			receipt.Lease[0]++
		default:
			continue
		}
		actions[i] = market.Propose{Receipt: receipt}
		next.Draft = &receipt
		next.Meter.BilledMs = max(next.Meter.BilledMs, receipt.BilledMs)
	}
	return next, actions
}

// overbilled returns a receipt of more time than the job ran, as far as duration and ceiling let it.
func (r *rig) overbilled(l market.Lease, receipt market.Receipt) market.Receipt {
	t := l.Current()
	over := receipt
	over.BilledMs = min(receipt.BilledMs+receipt.BilledMs*r.w.watch.permille/1000, t.DurationMs)
	over.Usage = t.UsedBy(over.BilledMs, over.KeptMs, 0, 0)
	bill, err := t.Prices.Bill(over.Usage)
	if err != nil || bill.Total > l.Ceiling() {
		return receipt
	}
	over.Bill = bill
	return over
}

// mischief is what a cheating rig does now and then.
func (r *rig) mischief() {
	w := r.w
	if r.conn == nil || w.rng.IntN(20) > 0 {
		return
	}
	var old *kept
	for i := range r.disk.receipts {
		if k := &r.disk.receipts[i]; k.agreed && (old == nil || w.rng.IntN(2) == 0) {
			old = k
		}
	}
	if old == nil {
		return
	}
	receipt, sealed, err := w.open(old.raw)
	if err != nil {
		return
	}
	switch w.opt.Cheat {
	case CheatReplay:
		sealed.Sigs = sealed.Sigs[:1]
		r.send(market.ReceiptMessage{Receipt: sealed.Encode()})
	case CheatFork:
		receipt.WallMs++
		if w.watch.permille%2 == 0 { // as if it had been put back
			r.send(market.Hello{Instance: market.Nonce{9}, Lease: w.deal.id, Seq: 0})
		}
		r.send(market.ReceiptMessage{Receipt: market.SealReceipt(netName, w.deal.rigKey, receipt).Encode()})
		w.watch.forked = true
	}
}

// vanish ends a rig that has what it wanted.
func (r *rig) vanish() {
	r.w.note("rig", "vanishes")
	r.alive, r.gone = false, true
	r.life++
	if j := r.w.engine.runs(); j != nil {
		r.w.engine.kill(r.state.Attempt)
	}
	r.w.net.breakAll("the rig vanished")
}

// play is what a cheating renter does with a receipt. It reports whether that is all.
func (r *renter) play(raw []byte, receipt market.Receipt, sealed market.Sealed, a market.Answer) bool {
	w := r.w
	if a.Kind != market.AnswerSign {
		return false
	}
	switch w.opt.Cheat {
	case CheatSilent:
		return true
	case CheatLate:
		if r.lateFor == receipt.Seq {
			return false
		}
		life := r.life
		w.after(w.between(20_000, 400_000), func() {
			if r.alive && r.life == life && r.conn != nil {
				r.lateFor = receipt.Seq
				w.guard(func() { _ = r.receipt(raw) })
			}
		})
		return true
	case CheatDouble:
		if receipt.Seq < 3 {
			return false
		}
		reject := market.SealReject(netName, w.deal.renterKey, market.Reject{
			Lease: w.deal.id, Seq: receipt.Seq, Receipt: sealed.Hash(), Code: market.CodeReceiptTime,
		}).Encode()
		r.send(market.RejectMessage{Reject: reject})
		w.watch.doubled = true
		r.sign(receipt, sealed, a)
		return true
	}
	return false
}
