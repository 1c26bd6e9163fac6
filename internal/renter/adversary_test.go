package renter_test

import (
	"testing"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

func TestARigThatTakesASliceAndVanishesCostsThatSlice(t *testing.T) {
	inShop(t, nil, func(t *testing.T, h *house, b *bank) {
		l := h.mustBid(nil)
		pass(20 * time.Second)
		h.rig(0).setDown(true)
		pass(3 * time.Hour)
		l = h.lease(l.ID)
		// two minutes before the start, and ten when it ran
		if most := market.Micro(400_000 * 12 / 60); b.sum() > most || l.Risk.Lose.Micro > int64(most) || l.Risk.Lose.Micro == 0 {
			t.Errorf("%s were paid, and %s can be lost", b.sum(), l.Risk.Lose.Text)
		}
		if n := h.agent.OpenLeases(); n != 0 {
			t.Errorf("the agent waits for %d leases", n)
		}
	})
}

func TestARigThatLostItsPaymentsGetsThemBack(t *testing.T) {
	inShop(t, func(r *testRig) { r.run = 30 * time.Minute }, func(t *testing.T, h *house, _ *bank) {
		l := h.mustBid(nil)
		pass(time.Minute)
		paid := h.lease(l.ID).Pay.Payments
		rig := h.rig(0)
		rig.set(func() { h.rigLease2().payments = nil }) // it says in its next Hello that it has none
		rig.cut()
		pass(2 * time.Second)
		if got := h.rigLease(0).reminded; got != paid || paid < 2 {
			t.Errorf("the rig got %d of %d payments back", got, paid)
		}
	})
}

func TestAPaymentThatIsNotTheRigsOrNotTheLeasesIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(*market.Payment){
		"another lease":    func(p *market.Payment) { p.Lease = market.LeaseID{9} },
		"another currency": func(p *market.Payment) { p.Currency = "EUR" },
		"another payer":    func(p *market.Payment) { p.Payer = market.Key{9} },
		"a falling total":  func(p *market.Payment) { p.Total = p.Amount },
	} {
		t.Run(name, func(t *testing.T) {
			inShop(t, func(r *testRig) { r.run = 30 * time.Minute }, func(t *testing.T, h *house, b *bank) {
				l := h.mustBid(nil)
				pass(time.Minute)
				before := h.lease(l.ID).Pay
				rig := h.rig(0)
				rig.set(func() {
					rl := h.rigLease2()
					p := market.Payment{
						Lease: rl.state.ID, Seq: 99, Payee: rig.self, Payer: rl.state.Terms.RenterOwner, Currency: "USD", Amount: 1,
						Total: rl.state.Paid + 1, Method: "lab",
					}
					spoil(&p)
					rl.send(market.PaymentMessage{Payment: market.SealPayment(testNetwork, rig.key, p).Encode()})
				})
				pass(time.Second)
				if after := h.lease(l.ID).Pay; after.Paid != before.Paid || after.Payments != before.Payments {
					t.Errorf("before %+v, after %+v", before, after)
				}
				l = h.until(l.ID, "settled", settled) // the next connection is as good as the last
				pass(time.Minute)
				wantFair(t, h, b, h.lease(l.ID))
			})
		})
	}
}

func TestOnlyAsMuchTrafficIsPaidAheadAsTheLineCanHaveCarried(t *testing.T) {
	inShop(t, func(r *testRig) {
		r.update(func(o *market.Offer) { o.Prices.Out, o.Host.SlotUp = 10_000, 1_000_000 })
		r.cheat.ask = func(m *market.AskMessage) {
			if m.Slice.Seq > 1 {
				m.Slice.Amount = 5_000_000
			}
		}
	}, func(t *testing.T, h *house, b *bank) {
		l := h.mustBid(func(r *view.BidRequest) { r.BudgetMicro = 9_000_000 })
		h.rig(0).set(func() {
			rl := h.rigLease2()
			m := rl.state.Status()
			m.State, m.Out = market.JobRunning, 1<<50
			rl.send(m)
		})
		pass(10 * time.Second)
		if b.sum() > 20_000 {
			t.Errorf("%s were paid on the rig's word", b.sum())
		}
		if got := h.lease(l.ID); !asked(got, "failed") {
			t.Errorf("%+v", got.Pay)
		}
	})
}

func TestASliceThatABalanceHasPaidIsNotAskedForInVain(t *testing.T) {
	inShop(t, func(r *testRig) { r.run = 10 * time.Minute }, func(t *testing.T, h *house, b *bank) {
		h.rig(0).set(func() { h.rig(0).fromBalance = 1 })
		l := h.mustBid(nil)
		l = h.until(l.ID, "running", running)
		pass(time.Second)
		l = h.lease(l.ID)
		if b.arrived(l.ID+"-1") != 0 || l.Pay.Asked != nil && l.Pay.Asked.Slice == 1 || l.Pay.Paid.Micro <= l.Pay.Sent.Micro {
			t.Errorf("%s moved, %+v", b.sum(), l.Pay)
		}
		l = h.until(l.ID, "settled", settled)
		pass(time.Minute)
		rig := h.rigLease(0)
		if l = h.lease(l.ID); l.Pay.Paid.Micro != int64(rig.state.Paid) || market.Micro(l.Pay.Sent.Micro) != b.sum() {
			t.Errorf("%+v", l.Pay)
		}
	})
}
