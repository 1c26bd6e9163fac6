package sim

import (
	"fmt"

	"haggle/market"
)

// askAgainMs is after how long a slice that is not paid is asked for again.
const askAgainMs = int64(20_000)

// orderName names the payment of a slice.
func (w *world) orderName(slice uint32) string { return fmt.Sprintf("%s-%d", w.deal.id.Short(), slice) }

// charge asks for the slice that is outstanding, and asks the payment program for its money.
func (r *rig) charge() {
	w := r.w
	s := r.state.Slice
	if s == nil {
		return
	}
	if r.conn != nil && (r.asked != s.Seq || w.now-r.askedAt > askAgainMs) && !w.chance(100) { // the program may not say in time how it wants to be paid
		r.asked, r.askedAt = s.Seq, w.now
		ask := *s
		if w.opt.Cheat == CheatOverask {
			ask.Amount += 1 + ask.Amount*market.Micro(w.watch.permille)/100
		}
		w.note("rig", fmt.Sprintf("asks for slice %d: %d for %d ms", ask.Seq, ask.Amount, ask.ForMs))
		r.send(market.AskMessage{Slice: ask, Method: method, Currency: w.deal.terms.Prices.Currency, Text: w.orderName(s.Seq)})
	}
	if w.now >= r.poll {
		wait := pollMs
		if w.now < r.pollEnd {
			wait = pollSoonMs
		}
		r.poll = w.now + wait
		r.question(s.Seq)
	}
}

// question asks the payment program whether the money of a slice has arrived.
func (r *rig) question(slice uint32) {
	life := r.life
	r.w.after(r.w.between(20, 500), func() {
		if !r.alive || r.life != life {
			return
		}
		if amount := r.w.bank.landed(r.w.orderName(slice)); amount > 0 {
			r.w.guard(func() { r.settled(slice, market.Micro(amount)) })
		}
	})
}

// claimed takes the renter's word that it has paid. It proves nothing.
func (r *rig) claimed(m market.PaidMessage) {
	if seq, filed := r.disk.paidFor[m.Slice]; filed {
		if k := receiptOf(r.disk.payments, seq); k != nil {
			r.send(market.PaymentMessage{Payment: k.raw})
		}
		return
	}
	if r.w.opt.Bugs.BelievesPaid {
		r.settled(m.Slice, m.Amount)
		return
	}
	r.question(m.Slice)
}

// settled signs for money that has arrived, once a slice.
func (r *rig) settled(slice uint32, amount market.Micro) {
	s := r.state
	_, filed := r.disk.paidFor[slice]
	switch {
	case !s.MaySign() || s.Job == market.JobGranted:
		return
	case filed && !r.w.opt.Bugs.CountsPaymentTwice:
		return
	case s.Slice != nil && s.Slice.Seq == slice && amount < s.Slice.Amount:
		return
	}
	p := market.Payment{
		Lease: s.ID, Seq: s.PaidSeq + 1, Payee: s.Terms.RigOwner, Payer: s.Terms.RenterOwner, Currency: s.Terms.Prices.Currency,
		Amount: amount, Total: s.Paid + amount, Method: method, Reference: r.w.orderName(slice), Wall: r.clock.wall(), Slice: slice,
	}
	raw := market.SealPayment(netName, r.w.deal.rigKey, p).Encode()
	err := r.step(market.Paid{Payment: p}, func(d *rigDisk) {
		d.pay(p, raw)
		r.w.watch.signsPayment(p)
	})
	if err != nil {
		r.w.note("rig", "payment: "+err.Error())
		return
	}
	r.w.stats.Payments++
	r.w.note("rig", fmt.Sprintf("signs payment %d of %d, total %d", p.Seq, p.Amount, p.Total))
	r.send(market.PaymentMessage{Payment: raw})
	if r.w.opt.Cheat == CheatVanish && p.Seq > 1 {
		r.vanish()
	}
}

// remembered takes a payment that this rig signed in a life that its store has forgotten.
func (r *rig) remembered(raw []byte) error {
	p, _, err := market.OpenPayment(netName, raw, r.w.deal.terms)
	if err != nil || p.Seq <= r.state.PaidSeq {
		return err
	}
	return r.step(market.Paid{Payment: p}, func(d *rigDisk) { d.pay(p, raw) })
}
