package sim

import (
	"fmt"

	"haggle/market"
)

// send sends to the renter, if it is there.
func (r *rig) send(m market.Message) { r.conn.send(toRenter, m) }

func (r *rig) status() {
	if r.conn != nil {
		r.said = r.clock.read().Mono
		r.send(r.state.Status())
	}
}

// propose sends the receipt that waits for the renter's signature. It always has the same bytes.
func (r *rig) propose() {
	if r.state.Draft == nil || r.state.Debt != market.DebtOpen {
		return
	}
	if r.draft == nil {
		r.draft = market.SealReceipt(netName, r.w.deal.rigKey, *r.state.Draft).Encode()
	}
	r.send(market.ReceiptMessage{Receipt: r.draft})
}

// receive takes a message of a connection. One of an older connection is answered on the present one.
func (r *rig) receive(c *conn, m market.Message) {
	w := r.w
	if r.stalled > w.now {
		life := r.life
		w.after(r.stalled-w.now, func() {
			if r.alive && r.life == life {
				w.guard(func() { r.receive(c, m) })
			}
		})
		return
	}
	if hello, ok := m.(market.Hello); ok {
		r.serve(c, hello)
		return
	}
	if err := r.handle(m); err != nil {
		w.note("rig", "ends the conversation: "+err.Error())
		c.send(toRenter, market.Refuse{Err: *market.Public(err)})
		if r.conn == c {
			c.cut("the rig ends it")
		}
	}
}

func (r *rig) handle(m market.Message) error {
	switch m := m.(type) {
	case market.AcceptMessage:
		return r.accept()
	case market.ReceiptMessage:
		return r.countersigned(m.Receipt)
	case market.RejectMessage:
		return r.rejected(m.Reject)
	case market.StopMessage:
		if r.state.Job == market.JobEnded && !m.Keep || r.state.Job == market.JobPaused && m.Keep {
			r.status()
			return nil
		}
		if err := r.step(market.Stop{Reason: market.ReasonRenter, Kill: m.Kill, Keep: m.Keep}, nil); err != nil {
			r.decline(market.OrderKeep, err)
		}
		return nil
	case market.ResumeMessage:
		if err := r.step(market.Resume{}, nil); err != nil {
			r.decline(market.OrderResume, err)
		}
		return nil
	case market.ExtendMessage:
		return r.extended(m.Extension)
	case market.PaidMessage:
		r.claimed(m)
		return nil
	case market.PaymentMessage:
		return r.remembered(m.Payment)
	}
	return market.Unexpected(m)
}

// decline refuses one order. The conversation goes on.
func (r *rig) decline(what string, err error) {
	r.w.note("rig", "declines "+what+": "+err.Error())
	r.send(market.DeclineMessage{What: what, Err: *market.Public(err)})
}

// serve begins a conversation: heads, then what the renter lacks, then where the lease stands. Payments come before the draft: a
// renter that was put back must know what it has paid.
func (r *rig) serve(c *conn, theirs market.Hello) {
	state := r.state
	if theirs.Seq > 0 && theirs.Seq <= state.Head.Seq {
		if k := receiptOf(r.disk.receipts, theirs.Seq); k == nil || k.hash != theirs.Hash {
			c.send(toRenter, market.Refuse{Err: *market.Public(market.NewError(market.CodeReceiptChain, "seq", "newest", "why", "the rig has signed another one"))})
			c.cut("chains differ")
			return
		}
	}
	c.send(toRenter, market.Hello{
		Instance: market.Nonce{r.disk.instance}, WallMs: r.clock.wall(), Lease: state.ID, Seq: state.Head.Seq, Hash: state.Head.Hash,
		Paid: state.PaidSeq,
	})
	c.send(toRenter, state.Status())
	if !r.w.opt.Bugs.ExtensionSentOnce {
		for _, raw := range r.disk.extensions {
			c.send(toRenter, market.ExtendMessage{Extension: raw})
		}
	}
	for _, p := range r.disk.payments {
		if p.seq > theirs.Paid {
			c.send(toRenter, market.PaymentMessage{Payment: p.raw})
		}
	}
	for _, k := range r.disk.receipts {
		if k.seq > theirs.Seq && k.agreed {
			c.send(toRenter, market.ReceiptMessage{Receipt: k.raw})
		}
	}
	if r.conn != nil && r.conn != c {
		r.conn.cut("a newer one")
	}
	r.conn, r.asked = c, 0
	if err := r.step(market.Contact{Seq: theirs.Seq, Paid: theirs.Paid}, nil); err != nil {
		r.w.note("rig", "contact: "+err.Error())
	}
	r.tell()
}

// tell sends where the lease stands.
func (r *rig) tell() {
	r.status()
	if !r.w.opt.Bugs.FinalSentOnce || r.state.Job != market.JobEnded {
		r.propose()
	}
	if r.disk.outcome != nil {
		r.send(market.OutcomeMessage{Outcome: r.disk.outcome})
	}
}

// detach notes that the renter has gone, unless another conversation has taken over.
func (r *rig) detach(c *conn) {
	if r.conn != c {
		return
	}
	r.conn = nil
	r.w.guard(func() {
		if err := r.step(market.Contact{Away: true}, nil); err != nil {
			r.w.note("rig", "contact: "+err.Error())
		}
	})
}

// accept takes the renter's signature under the terms.
func (r *rig) accept() error {
	if r.state.Job == market.JobGranted {
		if err := r.step(market.Signed{}, func(*rigDisk) {}); err != nil {
			return err
		}
	}
	if r.state.Reason == market.ReasonHoldExpired {
		return market.NewError(market.CodeHoldExpired)
	}
	r.tell()
	return nil
}

// countersigned takes a receipt with both signatures.
func (r *rig) countersigned(raw []byte) error {
	receipt, sealed, err := r.w.open(raw)
	switch {
	case err != nil:
		return err
	case !sealed.SignedBy(market.RoleRenter):
		return market.NewError(market.CodeBadSignature, "kind", string(market.KindReceipt), "role", string(market.RoleRenter))
	}
	if receipt.Seq <= r.state.Head.Seq {
		if k := receiptOf(r.disk.receipts, receipt.Seq); k == nil || k.hash != sealed.Hash() {
			return market.NewError(market.CodeReceiptChain, "seq", fmt.Sprint(receipt.Seq), "why", "the rig has signed another one")
		}
		r.send(market.AckMessage{Seq: receipt.Seq})
		return nil
	}
	if r.w.opt.Bugs.AcksBeforeStore {
		r.send(market.AckMessage{Seq: receipt.Seq})
	}
	both := kept{seq: receipt.Seq, hash: sealed.Hash(), raw: raw, agreed: true}

	err = r.step(market.Agreed{Receipt: receipt, Hash: sealed.Hash()}, func(d *rigDisk) {
		d.keep(both)
	})
	if err != nil {
		return err
	}

	r.w.stats.Receipts++
	r.send(market.AckMessage{Seq: receipt.Seq})
	return nil
}

// rejected takes the renter's signed refusal of the draft.
func (r *rig) rejected(raw []byte) error {
	reject, _, err := market.OpenReject(netName, raw, r.w.deal.terms)
	if err != nil {
		return err
	}
	if r.state.Debt == market.DebtDisputed {
		return nil
	}
	if d := r.state.Draft; d == nil || reject.Seq != d.Seq || reject.Receipt != market.HashOf(d.Body()) {
		return market.NewError(market.CodeReceiptChain, "seq", fmt.Sprint(reject.Seq), "why", "the refusal is not of the draft")
	}
	r.w.stats.Refusals++
	p := market.Paper{Lease: r.w.deal.id, Kind: market.KindReject, Seq: reject.Seq, Sealed: raw}
	return r.step(market.Rejected{}, func(d *rigDisk) { d.papers = append(d.papers, p) })
}
