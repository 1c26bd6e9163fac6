package renter_test

import (
	"strings"
	"testing"
	"time"

	"haggle/market"
)

func TestARigThatAsksForMoreThanTheRulesGetsNothing(t *testing.T) {
	for name, cheat := range map[string]func(*market.AskMessage){
		"twice the amount":        func(m *market.AskMessage) { m.Slice.Amount *= 2 },
		"one millionth too much":  func(m *market.AskMessage) { m.Slice.Amount++ },
		"a longer time":           func(m *market.AskMessage) { m.Slice.ForMs *= 2; m.Slice.Amount *= 2 },
		"another method":          func(m *market.AskMessage) { m.Method = "gold" },
		"a wish that nobody made": func(m *market.AskMessage) { m.Slice.Seq |= 1 << 31 },
	} {
		t.Run(name, func(t *testing.T) {
			inShop(t, func(r *testRig) { r.cheat.ask = cheat }, func(t *testing.T, h *house, b *bank) {
				l := h.mustBid(nil)
				pass(10 * time.Second)
				got := h.lease(l.ID)
				if b.sum() != 0 {
					t.Errorf("%s were paid", b.sum())
				}
				if name != "a wish that nobody made" && (!asked(got, "failed") || !strings.Contains(got.Pay.Asked.Why, "may not")) {
					t.Errorf("shown: %+v", got.Pay)
				}
			})
		})
	}
}

func TestARequestThatIsRepeatedOrComesTooEarlyIsNotPaid(t *testing.T) {
	inShop(t, func(r *testRig) { r.run = 30 * time.Minute }, func(t *testing.T, h *house, b *bank) {
		l := h.mustBid(nil)
		pass(time.Minute)
		before := b.sum()
		rig := h.rig(0)
		rig.set(func() {
			rl := h.rigLease2()
			again := market.Slice{Seq: 1, Amount: 13_333, ForMs: market.FirstSliceMs}
			for range 3 {
				rl.send(market.AskMessage{Slice: again, Method: "lab", Currency: "USD"}) // it is paid
			}
			early := market.Slice{Seq: rl.state.Slices + 1, Amount: 60_000, ForMs: market.SliceMs}
			rl.send(market.AskMessage{Slice: early, Method: "lab", Currency: "USD"})
		})
		pass(10 * time.Second)
		if b.sum() != before {
			t.Errorf("%s were paid, and then %s", before, b.sum())
		}
		l = h.until(l.ID, "settled", settled)
		pass(time.Minute)
		wantFair(t, h, b, h.lease(l.ID))
	})
}

func TestTwoPaymentsOfOneNumberProveTheRigsFraud(t *testing.T) {
	inShop(t, func(r *testRig) { r.run = 30 * time.Minute }, func(t *testing.T, h *house, b *bank) {
		l := h.mustBid(nil)
		pass(time.Minute)
		rig := h.rig(0)
		rig.set(func() {
			rl := h.rigLease2()
			p, _, err := market.OpenPayment(testNetwork, rl.payments[0], rl.state.Terms)
			if err != nil {
				t.Fatal(err)
			}
			p.Reference = "another"
			rl.send(market.PaymentMessage{Payment: market.SealPayment(testNetwork, rig.key, p).Encode()})
		})
		pass(time.Second)
		file, err := h.agent.Evidence(t.Context(), l.ID)
		if err != nil {
			t.Fatal(err)
		}
		if j := market.Judge(file); j.Verdict != market.VerdictFraud || j.Guilty != rig.self {
			t.Errorf("verdict %s of %s", j.Verdict, j.Guilty)
		}
	})
}

// TestARigThatSignsForMoneyThatNobodySentSpendsNoOthersBudget lets a rig sign for a fortune, and for a payment of a number that none has.
func TestARigThatSignsForMoneyThatNobodySentSpendsNoOthersBudget(t *testing.T) {
	inShop(t, func(r *testRig) { r.run = 30 * time.Minute }, func(t *testing.T, h *house, b *bank) {
		l := h.mustBid(nil)
		pass(time.Minute)
		rig := h.rig(0)
		for _, seq := range []uint32{50, 1<<31 | 7} {
			rig.set(func() {
				rl := h.rigLease2()
				p, _, err := market.OpenPayment(testNetwork, rl.payments[0], rl.state.Terms)
				if err != nil {
					t.Fatal(err)
				}
				p.Seq, p.Amount, p.Total = seq, 1e14, 2e14+market.Micro(seq)
				rl.send(market.PaymentMessage{Payment: market.SealPayment(testNetwork, rig.key, p).Encode()})
			})
			pass(time.Second)
		}
		budgets, err := h.agent.Budgets(t.Context())
		if err != nil || budgets[0].SpentDay.Micro > int64(h.rigLease(0).state.Terms.Budget) {
			t.Errorf("budgets %+v, %v", budgets, err)
		}
		if l = h.lease(l.ID); l.Pay.Payments > 50 {
			t.Errorf("%d payments", l.Pay.Payments)
		}
	})
}
