package sim

import (
	"fmt"

	"haggle/market"
)

// ask takes the rig's request for money. The same request again, or an old one, gets the same answer; one that the rule does not
// ask is not paid.
func (r *renter) ask(m market.AskMessage) {
	d, s := &r.disk, m.Slice
	switch {
	case d.disputed || s.Seq <= d.slices || r.busy:
		return
	case d.paying != nil && d.paying.sent:
		r.claim() // also where the rig, put back, asks for another: it finds this money first
		return
	case d.paying != nil && d.paying.slice.Seq != s.Seq && r.w.bank.sent(r.w.orderName(d.paying.slice.Seq)) > 0:
		return // the one before has moved after all: pay will see it
	case d.job == market.JobEnded:
		return
	}
	if most := r.due(s); s.Amount > most || s.ForMs > market.KeptSliceMs {
		r.w.note("renter", fmt.Sprintf("does not pay slice %d: %d asked, %d due", s.Seq, s.Amount, most))
		if r.w.opt.Cheat == "" && r.w.watch.restores != 1 { // a rig that was put back asks before it knows what it was paid
			r.w.broken("an honest request for money is refused: %d asked, %d due", s.Amount, most)
		}
		return
	}
	if d.paying != nil && d.paying.slice.Seq == s.Seq {
		return // pay is at it
	}
	next := &paying{slice: s, amount: s.Amount}
	if r.w.rng.IntN(4) == 0 { // more is paid ahead
		next.amount = max(s.Amount, min(3*s.Amount, d.terms(r.w.deal.terms).Budget-d.paid))
	}
	if r.w.opt.Bugs.PaysWithoutIntent {
		r.run(next)
	}
	r.write(func(d *renterDisk) { d.paying = next })
	r.payAt, r.tries = 0, 0
	if !r.w.opt.Bugs.PaysWithoutIntent {
		r.pay()
	}
}

// due is the most that a slice may be: what its time costs, and what was used and not paid.
func (r *renter) due(s market.Slice) market.Micro {
	t, seen := r.disk.terms(r.w.deal.terms), r.measure.Seen(r.now())
	ran := max(r.disk.head.BilledMs, r.billed)
	if seen.RanMs != market.Unlimited {
		ran = max(r.disk.head.BilledMs, min(ran, seen.RanMs+seen.RanMs/1000)) + 6000 // its last word is a few seconds old
	}
	runMs, keptMs := s.ForMs, max(r.disk.head.KeptMs, r.keptMs)
	if s.ForMs > market.MostSliceMs {
		runMs, keptMs = 0, keptMs+s.ForMs+120_000
	}
	bill, err := t.Prices.Bill(t.UsedBy(min(ran+runMs, t.DurationMs), keptMs, 0, 0))
	if err != nil {
		return 0
	}
	return min(bill.Total, t.Budget) - t.Ceiling(r.disk.paid)
}

// pay goes on with the slice that is being paid.
func (r *renter) pay() {
	w, p := r.w, r.disk.paying
	if p == nil || r.busy || w.now < r.payAt {
		return
	}
	moved := w.bank.sent(r.name(p))
	switch {
	case moved > 0 && !p.sent:
		r.paidOut(p)
	case moved > 0:
		r.payAt = w.now + recheckMs
		r.claim()
	case r.disk.job == market.JobEnded || r.disk.disputed: // it is not needed any more, and nothing has moved
		r.write(func(d *renterDisk) {
			if p.sent {
				d.sent -= p.amount
			}
			d.paying = nil
		})
	default:
		r.run(p)
	}
}

// name is what the payment program calls the order.
func (r *renter) name(p *paying) string {
	name := r.w.orderName(p.slice.Seq)
	if r.w.opt.Bugs.PaysUnderNewName && r.tries > 0 {
		name += fmt.Sprint("-", r.tries)
	}
	return name
}

// run runs the payment program.
func (r *renter) run(p *paying) {
	w := r.w
	if w.opt.Cheat == CheatClaims {
		r.disk.paying = p
		r.disk.paying.sent = true
		r.claim()
		r.payAt = w.now + 3*recheckMs
		return
	}
	r.busy = true
	life := r.life
	w.bank.pay(p.slice.Seq, r.name(p), int64(p.amount), func(said paid) {
		if !r.alive || r.life != life {
			return
		}
		r.busy, r.payAt = false, w.now+w.between(2000, 8000)
		w.note("bank", "the payer's program says: "+string(said))
		w.guard(func() {
			if said == paidSent && r.disk.paying == p {
				r.paidOut(p)
			} else if said != paidSent {
				r.tries++
			}
		})
	})
}

// paidOut notes that the money is sent, as much as the program says, and tells the rig: a store that was put back may hold another
// intent for the same order.
func (r *renter) paidOut(p *paying) {
	if !p.sent {
		done := *p
		done.sent = true
		if moved := r.w.bank.sent(r.name(p)); moved > 0 {
			done.amount = market.Micro(moved)
		}
		r.write(func(d *renterDisk) { d.paying, d.sent = &done, d.sent+done.amount })
	}
	r.payAt = r.w.now + recheckMs
	r.claim()
}

// claim tells the rig that a slice is paid.
func (r *renter) claim() {
	if p := r.disk.paying; p != nil && r.greeted {
		r.send(market.PaidMessage{Slice: p.slice.Seq, Amount: p.amount, Reference: r.name(p)})
	}
}
