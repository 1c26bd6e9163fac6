package renter_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// inShop runs a test with a rig that wants its money ahead and an agent that can pay.
func inShop(t *testing.T, change func(*testRig), test func(t *testing.T, h *house, b *bank)) {
	t.Helper()
	inHouse(t, oneRig(func(r *testRig) {
		paidAhead(r)
		if change != nil {
			change(r)
		}
	}), func(t *testing.T, h *house) {
		h.down() // it had no purse
		h.purse = h.rig(0).till
		h.up()
		test(t, h, h.rig(0).till)
	})
}

func asked(l view.Lease, state string) bool {
	return l.Pay != nil && l.Pay.Asked != nil && l.Pay.Asked.State == state
}

// wantFair holds that both sides agree on every payment and that nothing was paid twice or for nothing.
func wantFair(t *testing.T, h *house, b *bank, l view.Lease) {
	t.Helper()
	rig := h.rigLease(0)
	if sum := b.sum(); market.Micro(l.Pay.Paid.Micro) != sum || market.Micro(l.Pay.Sent.Micro) != sum || rig.state.Paid != sum {
		t.Errorf("the bank moved %s, the rig signed for %s, the agent sent %s and knows of %s", sum, rig.state.Paid, l.Pay.Sent.Text, l.Pay.Paid.Text)
	}
	if rig.state.Paid < rig.state.Head.Total {
		t.Errorf("paid %s of %s", rig.state.Paid, rig.state.Head.Total)
	}
	file, err := h.agent.Evidence(t.Context(), l.ID)
	if err != nil {
		t.Fatal(err)
	}
	if j := market.Judge(file); j.Verdict != market.VerdictAgreed || j.Paid != rig.state.Paid {
		t.Errorf("verdict %s, paid %s: %+v", j.Verdict, j.Paid, j.Checks)
	}
}

func TestTwoStrangersSixHoursAheadWhileTheAgentSleepsNowAndThen(t *testing.T) {
	inShop(t, func(r *testRig) { r.run = 6 * time.Hour }, func(t *testing.T, h *house, b *bank) {
		l := h.mustBid(func(r *view.BidRequest) { r.DurationMs = 7 * 3_600_000 })
		if terms := h.rigLease(0).state.Terms; terms.Pay != "lab" || terms.Limits.Credit != 0 {
			t.Fatalf("it is paid by %q on a credit of %d", terms.Pay, terms.Limits.Credit)
		}
		for range 6 {
			pass(45 * time.Minute)
			h.down() // the laptop is shut, and what was paid covers it
			pass(4 * time.Minute)
			h.up()
		}
		l = h.until(l.ID, "settled", settled)
		pass(time.Minute)
		if l.Reason != "completed" || l.BilledMs != 6*3_600_000 {
			t.Errorf("%s after %d ms", l.Reason, l.BilledMs)
		}
		wantFair(t, h, b, h.lease(l.ID))
		rig := h.rigLease(0)
		if over := rig.state.Paid - rig.state.Head.Total; over > 400_000 {
			t.Errorf("%s more was paid than used", over)
		}
		if rig.accepted == nil {
			t.Error("the outcome was not accepted")
		}
		ledger, err := h.agent.Ledger(t.Context())
		if err != nil || len(ledger.Entries) != 1 || ledger.Entries[0].Owed.Micro != 0 || ledger.Entries[0].Paid.Micro != int64(rig.state.Paid) {
			t.Errorf("ledger %+v, %v", ledger, err)
		}
		invoice, err := h.agent.Invoice(t.Context(), keyText(1), "")
		if err != nil || invoice.Total.Micro != int64(rig.state.Head.Total) || len(invoice.Payments) != len(rig.payments) {
			t.Errorf("invoice %+v, %v", invoice, err)
		}
		history, err := h.agent.History(t.Context(), keyText(1))
		if err != nil || history.Leases != 1 || history.Completed != 1 || history.Hours != "6.00" {
			t.Errorf("history %+v, %v", history, err)
		}
	})
}

func TestALeaseIsPaidToItsEndAndNoFurther(t *testing.T) {
	inShop(t, nil, func(t *testing.T, h *house, b *bank) {
		l := h.mustBid(func(r *view.BidRequest) { r.DurationMs = 10 * 60_000 })
		l = h.until(l.ID, "settled", settled)
		pass(time.Minute)
		if l.Reason != "expired" || l.BilledMs != 10*60_000 {
			t.Errorf("%s after %d ms", l.Reason, l.BilledMs)
		}
		if l = h.lease(l.ID); l.Pay.Balance.Micro > 1 || l.Risk.Lose.Micro > 1 {
			t.Errorf("%s are left", l.Pay.Balance.Text)
		}
		wantFair(t, h, b, l)
	})
}

func TestWhatIsPaidAheadCoversTheTimeThatTheLaptopIsShut(t *testing.T) {
	inShop(t, func(r *testRig) { r.run = 4 * time.Hour }, func(t *testing.T, h *house, b *bank) {
		l := h.mustBid(func(r *view.BidRequest) { r.DurationMs, r.UnattendedMs = 5*3_600_000, 3*3_600_000 })
		pass(time.Minute)
		if paid, want := b.sum(), market.Micro(3*400_000); paid < want {
			t.Errorf("%s are paid ahead, want at least %s", paid, want)
		}
		h.down()
		pass(170 * time.Minute)
		if got := h.rigLease(0).state.Job; got != market.JobRunning {
			t.Fatalf("while the laptop was shut the job came to be %s", got)
		}
		h.up()
		pass(time.Minute) // and what the user may be away is paid ahead again, up to the end
		if paid := b.sum(); paid != 5*400_000 {
			t.Errorf("%s are paid after 3 hours", paid)
		}
		l = h.until(l.ID, "settled", settled)
		if l.BilledMs != 4*3_600_000 {
			t.Errorf("billed %d ms", l.BilledMs)
		}
		pass(time.Minute)
		wantFair(t, h, b, h.lease(l.ID))
	})
}

func TestAPaymentProgramThatMisbehavesForAWhilePaysOnce(t *testing.T) {
	for _, fault := range []string{hangs, late, dies, refuses} {
		t.Run(fault, func(t *testing.T) {
			inShop(t, func(r *testRig) { r.run = 20 * time.Minute }, func(t *testing.T, h *house, b *bank) {
				b.set(fault)
				l := h.mustBid(nil)
				pass(70 * time.Second)
				if got := h.lease(l.ID); got.State == "running" && fault != late || got.Pay == nil {
					t.Errorf("while it does not work: %s, %+v", got.State, got.Pay)
				}
				b.set("")
				h.until(l.ID, "running", running)
				pass(5 * time.Minute)
				b.set(fault)
				pass(90 * time.Second)
				b.set("")
				l = h.until(l.ID, "settled", settled)
				pass(time.Minute)
				if l.Reason != "completed" {
					t.Errorf("ended: %s", l.Reason)
				}
				wantFair(t, h, b, h.lease(l.ID))
			})
		})
	}
}

func TestAPaymentProgramThatLiedIsAskedAgain(t *testing.T) {
	inShop(t, func(r *testRig) { r.run = 10 * time.Minute }, func(t *testing.T, h *house, b *bank) {
		b.set(lies)
		l := h.mustBid(nil)
		pass(5 * time.Second)
		b.set("")
		l = h.until(l.ID, "settled", settled)
		pass(time.Minute)
		if l.Reason != "completed" {
			t.Errorf("reason %s", l.Reason)
		}
		wantFair(t, h, b, h.lease(l.ID))
	})
}

// TestMoneyThatMayHaveLeftCountsUntilSomebodyKnows lets a payment program take money without saying so, and refuse every word from
// then on: the budget does not get the money back, and no other amount is paid under the same order.
func TestMoneyThatMayHaveLeftCountsUntilSomebodyKnows(t *testing.T) {
	inShop(t, func(r *testRig) { r.run = 10 * time.Minute }, func(t *testing.T, h *house, b *bank) {
		h.rig(0).deaf = true
		b.set(late)
		l := h.mustBid(nil)
		pass(time.Second)
		b.set(refuses)
		pass(80 * time.Second)
		if b.sum() == 0 {
			t.Fatal("nothing was taken")
		}
		l = h.lease(l.ID)
		budgets, err := h.agent.Budgets(t.Context())
		if err != nil || len(budgets) != 1 || budgets[0].SpentDay.Micro != int64(b.sum()) || !asked(l, "pending") {
			t.Errorf("budgets %+v, %v, of %s that left; %+v", budgets, err, b.sum(), l.Pay.Asked)
		}
		h.down()
		h.up()
		pass(30 * time.Second)
		if l = h.lease(l.ID); !asked(l, "pending") {
			t.Errorf("after a restart: %+v", l.Pay.Asked)
		}
	})
}

func TestAPaymentThatFailsForGoodCostsNothing(t *testing.T) {
	inShop(t, nil, func(t *testing.T, h *house, b *bank) {
		b.set(fails)
		l := h.mustBid(nil)
		l = h.until(l.ID, "ended", ended)
		if l.Reason != "unpaid" || l.Spent.Micro != 0 || l.Pay.Sent.Micro != 0 || !asked(l, "failed") || !strings.Contains(l.Pay.Asked.Why, "closed") {
			t.Errorf("%s, spent %s, %+v", l.Reason, l.Spent.Text, l.Pay.Asked)
		}
		if b.sum() != 0 {
			t.Errorf("%s moved", b.sum())
		}
	})
}

func TestAPaymentThatAPersonMustMakeIsShownAndWaitsForTheRig(t *testing.T) {
	inShop(t, func(r *testRig) { r.run = time.Minute }, func(t *testing.T, h *house, b *bank) {
		b.set(waits)
		l := h.mustBid(nil)
		pass(5 * time.Second)
		l = h.lease(l.ID)
		if !asked(l, "waiting") || l.Pay.Asked.Text == "" || l.Pay.Asked.QR == "" || l.Pay.Asked.Deadline == 0 || l.Pay.Asked.Settles != "instant" {
			t.Fatalf("%+v", l.Pay)
		}
		rig := h.rigLease(0)
		b.mu.Lock()
		b.taken[l.ID+"-1"] = int64(rig.state.Slice.Amount) // by hand
		b.mu.Unlock()
		l = h.until(l.ID, "running", running)
		if l.Pay.Asked != nil && l.Pay.Asked.Slice == 1 || l.Pay.Paid != l.Pay.Sent || l.Pay.Paid.Micro == 0 {
			t.Errorf("%+v", l.Pay)
		}
	})
}

func TestMoneyThatNeverArrivesIsShownAsWhatCanBeLost(t *testing.T) {
	inShop(t, nil, func(t *testing.T, h *house, b *bank) {
		b.set(lies)
		l := h.mustBid(nil)
		pass(5 * time.Second)
		l = h.lease(l.ID)
		if !asked(l, "sent") || l.Risk.Lose.Micro == 0 || l.Risk.Lose != l.Pay.Sent {
			t.Errorf("%+v, %+v", l.Pay, l.Risk)
		}
		l = h.until(l.ID, "ended", ended)
		if l.Reason != "unpaid" {
			t.Errorf("reason %s", l.Reason)
		}
		pass(25 * time.Hour) // nobody waits for ever
		if n := h.agent.OpenLeases(); n != 0 {
			t.Errorf("%d leases are open", n)
		}
		if l = h.lease(l.ID); !asked(l, "failed") || l.Pay.Sent.Micro == 0 {
			t.Errorf("%+v", l.Pay.Asked)
		}
	})
}

func TestMoneyThatWasTakenBeforeAnythingCouldBeStoredIsNotPaidAgain(t *testing.T) {
	inShop(t, func(r *testRig) { r.run = 10 * time.Minute }, func(t *testing.T, h *house, b *bank) {
		b.after = func() {
			h.store.mu.Lock()
			h.store.broken = errors.New("the disk is gone")
			h.store.mu.Unlock()
		}
		l := h.mustBid(nil)
		pass(3 * time.Second)
		h.down()
		h.store.mu.Lock()
		h.store.broken = nil
		h.store.mu.Unlock()
		if b.sum() == 0 {
			t.Fatal("nothing was taken")
		}
		h.up()
		l = h.until(l.ID, "settled", settled)
		pass(time.Minute)
		wantFair(t, h, b, h.lease(l.ID))
	})
}

func TestAMethodIsChosenOrNamed(t *testing.T) {
	inShop(t, nil, func(t *testing.T, h *house, b *bank) {
		for method, code := range map[string]market.Code{"gold": market.CodePayMethod, "none": market.CodePayAhead, "euro": market.CodePayMethod} {
			_, err := h.bid(func(r *view.BidRequest) { r.Pay = method })
			wantCode(t, err, code)
		}
		if h.rig(0).bids != 0 {
			t.Error("a bid was sent that could not be paid")
		}
		h.rig(0).set(func() { h.rig(0).cheat.refuse = market.NewError(market.CodePayAhead, "methods", "lab") })
		h.rig(0).update(func(o *market.Offer) { o.Rules.Credit = 1_000_000 }) // for those that it trusts
		pass(time.Minute)
		_, err := h.bid(nil)
		wantCode(t, err, market.CodePayAhead)
		if h.rig(0).bids != 2 {
			t.Errorf("%d bids, want one on credit and one ahead", h.rig(0).bids)
		}
	})
}

func TestAPersonPaysADebtAheadAndOnlyWhatThereIs(t *testing.T) {
	t.Run("a debt after the end", func(t *testing.T) {
		inHouse(t, oneRig(func(r *testRig) {
			r.run = 10 * time.Minute
			paidAhead(r)
			r.update(func(o *market.Offer) { o.Rules.Credit = market.Unlimited })
		}), func(t *testing.T, h *house) {
			h.down()
			h.purse = h.rig(0).till
			h.up()
			l := h.until(h.mustBid(nil).ID, "settled", settled)
			pass(time.Minute)
			ledger, err := h.agent.Ledger(t.Context())
			if err != nil || ledger.Entries[0].Owed.Micro != l.Signed.Micro {
				t.Fatalf("owed %+v, %v", ledger.Entries, err)
			}
			_, err = h.agent.PayLease(t.Context(), l.ID, view.PayRequest{AmountMicro: l.Signed.Micro + 1})
			wantCode(t, err, market.CodeBadRequest)
			if _, err := h.agent.PayLease(t.Context(), l.ID, view.PayRequest{}); err != nil {
				t.Fatal(err)
			}
			pass(10 * time.Second)
			l = h.lease(l.ID)
			if l.Pay.Paid != l.Signed || l.Pay.Asked != nil {
				t.Errorf("%+v", l.Pay)
			}
			_, err = h.agent.PayLease(t.Context(), l.ID, view.PayRequest{})
			wantCode(t, err, market.CodeNothingOwed)
			if n := h.agent.OpenLeases(); n != 0 {
				t.Errorf("%d leases are open", n)
			}
		})
	})
	t.Run("by a rig that declines", func(t *testing.T) {
		inShop(t, func(r *testRig) { r.run = 30 * time.Minute }, func(t *testing.T, h *house, b *bank) {
			l := h.mustBid(nil)
			pass(time.Minute)
			h.rig(0).set(func() { h.rig(0).decline = market.NewError(market.CodePayMethod) })
			for range 2 { // a wish that is over can be made again
				_, err := h.agent.PayLease(t.Context(), l.ID, view.PayRequest{AmountMicro: 100_000})
				wantCode(t, err, market.CodePayFailed)
			}
			h.rig(0).set(func() { h.rig(0).decline = nil })
			l = h.until(l.ID, "settled", settled)
			pass(time.Minute)
			wantFair(t, h, b, h.lease(l.ID))
		})
	})
	t.Run("ahead", func(t *testing.T) {
		inShop(t, func(r *testRig) { r.run = 30 * time.Minute }, func(t *testing.T, h *house, b *bank) {
			l := h.mustBid(nil)
			pass(time.Minute)
			before := b.sum()
			if _, err := h.agent.PayLease(t.Context(), l.ID, view.PayRequest{AmountMicro: 100_000}); err != nil {
				t.Fatal(err)
			}
			if got := b.sum() - before; got != 100_000 {
				t.Errorf("%s were paid", got)
			}
			l = h.until(l.ID, "settled", settled)
			pass(time.Minute)
			wantFair(t, h, b, h.lease(l.ID))
		})
	})
}
