package sim

import (
	"fmt"
	"slices"

	"haggle/market"
)

// receive takes a message of the rig.
func (r *renter) receive(m market.Message) {
	w := r.w
	r.heard = w.now
	if err := r.handle(m); err != nil {
		w.note("renter", "ends the conversation: "+err.Error())
		if r.conn != nil {
			r.conn.cut("the renter ends it")
			r.offline()
		}
	}
}

func (r *renter) handle(m market.Message) error {
	switch m := m.(type) {
	case market.Refuse:
		return r.refused(&m.Err)
	case market.Hello:
		r.greeted = true
		return r.catchUp(m)
	case market.StatusMessage:
		return r.status(m)
	case market.ReceiptMessage:
		return r.receipt(m.Receipt)
	case market.AckMessage:
		r.acknowledged(m.Seq)
		return nil
	case market.AskMessage:
		r.ask(m)
		return nil
	case market.PaymentMessage:
		return r.payment(m.Payment)
	case market.ExtendMessage:
		return r.extended(m.Extension)
	case market.DeclineMessage:
		if m.What == market.OrderExtend {
			r.disk.asking = nil
		}
		if m.What == market.OrderKeep && r.wish != nil && r.wish.Keep {
			r.wish = nil
		}
		return nil
	case market.OutcomeMessage:
		if r.disk.outcome == nil {
			r.write(func(d *renterDisk) { d.outcome = m.Outcome })
		}
		return nil
	}
	return market.Unexpected(m)
}

// refused takes the rig's last word. One that does not know what this side signed has nothing to bill.
func (r *renter) refused(err *market.Error) error {
	if r.disk.job == market.JobGranted && err.Code == market.CodeHoldExpired {
		r.write(func(d *renterDisk) { d.void, d.job = true, market.JobEnded })
	}
	return err
}

// catchUp compares heads. A rig that lost this side's signature, or its own, gets it again.
func (r *renter) catchUp(theirs market.Hello) error {
	d := &r.disk
	r.theirs = theirs.Seq
	if theirs.Seq == d.head.Seq && theirs.Hash != d.head.Hash {
		return market.NewError(market.CodeReceiptChain, "seq", "newest", "why", "the rig has another one of the same number")
	}
	if !r.w.opt.Bugs.ExtensionSentOnce {
		for _, raw := range d.extensions {
			r.send(market.ExtendMessage{Extension: raw})
		}
	}
	for _, p := range d.payments {
		if p.seq > theirs.Paid {
			r.send(market.PaymentMessage{Payment: p.raw})
		}
	}
	for _, k := range d.receipts {
		if k.seq > theirs.Seq {
			r.send(market.ReceiptMessage{Receipt: k.raw})
		}
	}
	switch {
	case theirs.Seq == d.head.Seq:
		r.acknowledged(theirs.Seq)
	case theirs.Seq < d.head.Seq:
		r.awaitAck()
	}
	if d.paying != nil && d.paying.sent {
		r.claim()
	}
	r.wishes()
	return nil
}

// status takes the rig's word on the job.
func (r *renter) status(m market.StatusMessage) error {
	began := false
	r.measure, began = r.measure.Hear(m, r.now())
	r.billed, r.keptMs = m.BilledMs, m.KeptMs
	if r.w.opt.Cheat == "" && m.State == market.JobEnded && m.Reason == market.ReasonHoldExpired {
		r.write(func(d *renterDisk) { d.void, d.job = true, market.JobEnded })
		return nil
	}
	if r.forward(m) || began {
		r.w.watch.hears(m, began)
		r.write(func(d *renterDisk) { d.job, d.attempt = m.State, max(d.attempt, m.Attempt) })
		if r.wish != nil && r.wish.Keep && (m.State == market.JobPaused || m.State == market.JobEnded) {
			r.wish = nil
		}
		if m.State != market.JobPaused {
			r.again = r.again && m.State == market.JobStopping
		}
	}
	if m.State == market.JobGranted && r.disk.job == market.JobGranted {
		r.send(market.AcceptMessage{Lease: r.w.deal.sealed})
	}
	return nil
}

// forward reports whether a rig's word moves the lease on.
func (r *renter) forward(m market.StatusMessage) bool {
	order := []market.JobState{
		market.JobGranted, market.JobPreparing, market.JobStarting, market.JobRunning, market.JobStopping, market.JobPaused, market.JobEnded,
	}
	rank := func(s market.JobState) int { return slices.Index(order, s) }
	if m.Attempt != r.disk.attempt && m.State != market.JobEnded { // a rig that was put back ends an older one
		return m.Attempt > r.disk.attempt && r.disk.job != market.JobEnded
	}
	return rank(m.State) > rank(r.disk.job)
}

// receipt answers a receipt.
func (r *renter) receipt(raw []byte) error {
	w, d := r.w, &r.disk
	receipt, sealed, err := w.open(raw)
	if err != nil {
		return err
	}
	rental := market.Rental{
		Lease: w.deal.id, Terms: w.deal.terms, Extension: d.extension, Head: d.head, Paid: d.paid, Sent: d.sent, Disputed: d.disputed, Keeps: d.keeps,
		Theirs: r.theirs,
	}
	var stored *market.Hash
	old := receiptOf(d.receipts, receipt.Seq)
	if old != nil {
		stored = &old.hash
	}
	seen := r.measure.Seen(r.now())
	if w.opt.Bugs.IgnoresTime {
		seen = market.Seen{RanMs: market.Unlimited, SinceMs: market.Unlimited}
	}
	a := rental.Answer(receipt, sealed.Hash(), sealed.SignedBy(market.RoleRenter), stored, seen)
	if r.play(raw, receipt, sealed, a) {
		return nil
	}
	switch a.Kind {
	case market.AnswerKeep:
		r.measure = r.measure.Signed(a.Head, w.deal.terms, r.now())
		r.write(func(d *renterDisk) {
			d.head, d.receipts = a.Head, append(d.receipts, kept{seq: receipt.Seq, hash: sealed.Hash(), raw: raw})
		})
		r.acknowledged(receipt.Seq)
	case market.AnswerSign:
		r.sign(receipt, sealed, a)
	case market.AnswerAgain:
		if *stored != sealed.Hash() && !w.rig.honest() {
			r.disk.refused = append(r.disk.refused, raw)
		}
		r.send(market.ReceiptMessage{Receipt: old.raw})
	case market.AnswerRefuse:
		r.refuse(raw, a)
	case market.AnswerStored:
		r.send(market.RejectMessage{Reject: d.rejects[len(d.rejects)-1]})
	case market.AnswerBroken:
		return a.Why
	}
	return nil
}

// sign signs a receipt, stores it, and sends it then.
func (r *renter) sign(receipt market.Receipt, sealed market.Sealed, a market.Answer) {
	both := sealed.Sign(market.RoleRenter, r.w.deal.renterKey).Encode()
	if r.w.opt.Bugs.RenterSendsBeforeStore {
		r.send(market.ReceiptMessage{Receipt: both})
	}
	r.write(func(d *renterDisk) {
		d.head, d.receipts = a.Head, append(d.receipts, kept{seq: receipt.Seq, hash: sealed.Hash(), raw: both})
	})
	r.w.watch.signs(receipt, r.measure.Seen(r.now()))
	if !r.w.opt.Bugs.RenterSendsBeforeStore {
		r.send(market.ReceiptMessage{Receipt: both})
	}
	if r.w.opt.Bugs.LeavesBeforeAck && receipt.Kind == market.ReceiptFinal {
		r.write(func(d *renterDisk) { d.acked = true })
	}
	r.awaitAck()
}

// refuse signs the refusal of a receipt, stores it, and sends it then.
func (r *renter) refuse(raw []byte, a market.Answer) {
	r.w.note("renter", "refuses: "+a.Why.Error())
	if r.w.opt.Cheat == "" {
		r.w.broken("an honest receipt is refused: %v", a.Why)
	}
	reject := market.SealReject(netName, r.w.deal.renterKey, *a.Reject).Encode()
	r.write(func(d *renterDisk) {
		d.disputed, d.rejects, d.refused = true, append(d.rejects, reject), append(d.refused, raw)
	})
	r.send(market.RejectMessage{Reject: reject})
}

func (r *renter) awaitAck() {
	if r.disk.head.Kind == market.ReceiptFinal && r.settle == 0 {
		r.settle = r.w.now + ackMs
	}
}

// acknowledged notes that the rig has stored a receipt with both signatures.
func (r *renter) acknowledged(seq uint32) {
	d := &r.disk
	r.theirs = max(r.theirs, min(seq, d.head.Seq))
	if d.head.Kind != market.ReceiptFinal || seq != d.head.Seq {
		return
	}
	r.settle = 0
	if !d.acked {
		r.write(func(d *renterDisk) { d.acked = true })
	}
}

// payment takes the rig's word that money has arrived.
func (r *renter) payment(raw []byte) error {
	d := &r.disk
	p, _, err := market.OpenPayment(netName, raw, r.w.deal.terms)
	if err != nil || p.Seq <= d.paidSeq {
		return err
	}
	if err := market.CheckPayment(r.w.deal.id, d.paidSeq, d.paid, p); err != nil {
		return err
	}
	r.write(func(d *renterDisk) {
		d.paid, d.paidSeq, d.payments = p.Total, p.Seq, append(d.payments, kept{seq: p.Seq, raw: raw})
		d.sent, d.slices = max(d.sent, d.paid), max(d.slices, p.Slice)
		if d.paying != nil && d.paying.slice.Seq == p.Slice {
			d.paying = nil
		}
	})
	r.w.note("renter", fmt.Sprintf("has payment %d, total %d", p.Seq, p.Total))
	return nil
}
