package host_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"haggle/internal/pay"
	"haggle/internal/view"
	"haggle/market"
)

func TestAPaymentProgramThatHangsOrDiesHoldsUpNothingButItsMoney(t *testing.T) {
	for name, trouble := range map[string]func(b *bank, on bool){
		"hangs": func(b *bank, on bool) { b.hangs = on },
		"dies":  func(b *bank, on bool) { b.dies = map[bool]error{true: errors.New("exit status 2")}[on] },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBank()
			inMarket(t, b, func(t *testing.T, r *rig) {
				a, c := newRenter(r, "ann"), newRenter(r, "cid")
				a.setBank(b)
				a.rentAhead(nil, "probe", "polite")
				pass(10 * time.Second)
				b.set(func(b *bank) { trouble(b, true) })
				c.setBank(b)
				c.rentAhead(nil, "probe", "polite")
				paid, _ := a.received()
				pass(90 * time.Second)
				a.wantState(market.JobRunning, "")
				c.wantState(market.JobPreparing, "")
				if list := a.receipts(); len(list) == 0 || r.status(a).Pay == nil {
					t.Errorf("%d receipts", len(list))
				}
				if s := r.status(c); s.Pay.Asked == nil || s.Pay.Asked.State != "failed" || s.Pay.Asked.Why == "" {
					t.Errorf("the owner reads %+v", s.Pay.Asked)
				}
				// What was sent meanwhile is found when the program is back.
				b.set(func(b *bank) { trouble(b, false) })
				pass(r.runsFor(paid))
				a.wantState(market.JobRunning, "")
				c.wantState(market.JobRunning, "")
				got, _ := a.received()
				more, _ := c.received()
				if got+more != b.total() {
					t.Errorf("%s and %s are signed for, %s were sent", got, more, b.total())
				}
			})
		})
	}
}

// status is a lease as its rig's owner sees it.
func (r *rig) status(a *renter) view.Lease {
	r.t.Helper()
	list, err := r.Leases(r.t.Context(), true)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, l := range list {
		if l.ID == a.id.String() {
			return l
		}
	}
	r.t.Fatal("no such lease")
	return view.Lease{}
}

func TestAPaymentProgramThatLiesIsBelievedOnceAndOnlyForTheWholeSum(t *testing.T) {
	b := newBank()
	inMarket(t, b, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		b.set(func(b *bank) { b.premium, b.lies = true, 1 }) // settled, with a millionth
		a.rentAhead(nil, "probe", "polite")
		pass(10 * time.Second)
		a.wantState(market.JobPreparing, "")
		if _, n := a.received(); n != 0 || r.status(a).Pay.Asked.Why == "" {
			t.Errorf("%d payments for a millionth", n)
		}
		b.set(func(b *bank) { b.lies = -5 })
		pass(10 * time.Second)
		b.set(func(b *bank) { b.lies = 1 << 62 }) // more than any money
		pass(10 * time.Second)
		if _, n := a.received(); n != 0 {
			t.Errorf("%d payments", n)
		}
		first := a.asked()[0].Slice.Amount
		b.set(func(b *bank) { b.lies = int64(first) })
		pass(10 * time.Second)
		a.say(market.PaidMessage{Slice: 1, Amount: first}) // the renter says it twice
		a.say(market.PaidMessage{Slice: 1, Amount: first})
		a.say(market.PaidMessage{Slice: 77, Amount: first}) // and of what nobody asked for
		pass(5 * time.Second)
		a.wantState(market.JobRunning, "")
		a.mu.Lock()
		defer a.mu.Unlock()
		seen := map[uint32]int{}
		for _, p := range a.payments {
			seen[p.Slice]++
		}
		if seen[1] != 1 || seen[77] != 0 {
			t.Errorf("payments by slice: %v", seen)
		}
	})
}

func TestTheOwnersWordStandsForMoneyThatNoProgramSees(t *testing.T) {
	b := newBank(pay.Method{Name: "hand", Settles: "hand"})
	inMarket(t, b, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rentAhead(func(bid *market.Bid, _ *market.BidMessage) { bid.Pay = "hand" }, "probe", "polite")
		pass(30 * time.Second)
		a.wantState(market.JobPreparing, "")
		calls := b.calls
		pass(30 * time.Second)
		if len(a.asked()) != 1 || a.asked()[0].Text == "" || b.calls != calls {
			t.Errorf("requests %+v, and the program was asked %d times for nothing", a.asked(), b.calls-calls)
		}
		short := a.id.String()[:8]
		if _, err := r.Confirm(t.Context(), short, view.Confirm{Slice: 5}); market.CodeOf(err) != market.CodeNothingOwed {
			t.Errorf("a slice that was never asked for: %v", err)
		}
		l, err := r.Confirm(t.Context(), short, view.Confirm{Reference: "cash, Monday"})
		if err != nil || l.Pay == nil || l.Pay.Payments != 1 {
			t.Fatalf("lease %+v: %v", l, err)
		}
		pass(2 * time.Second)
		a.wantState(market.JobRunning, "")
		if _, n := a.received(); n != 1 || a.payments[0].Reference != "cash, Monday" || a.payments[0].Method != "hand" {
			t.Errorf("payments %+v", a.payments)
		}
		_, err = r.Confirm(t.Context(), "ffffffff", view.Confirm{})
		wantCode(t, err, market.CodeLeaseUnknown)
		_, err = r.Confirm(t.Context(), short, view.Confirm{AmountMicro: -1})
		wantCode(t, err, market.CodeBadRequest)
	})
}

func TestADebtIsPaidLongAfterTheLease(t *testing.T) {
	b := newBank()
	inMarket(t, b, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "polite")
		pass(10 * time.Minute)
		a.say(market.StopMessage{Kill: true})
		pass(25 * time.Hour)
		owed := r.lease().Total()
		if v, err := r.Ledger(t.Context()); err != nil || len(v.Entries) != 1 || v.Entries[0].Owed.Micro != int64(owed) {
			t.Fatalf("ledger %+v: %v", v, err)
		}
		// Half by a wish of the renter and its program, half by the owner's word.
		a.connect()
		wish := market.AskMessage{Slice: market.Slice{Seq: 1<<31 | 1, Amount: owed / 2}, Method: "lab", Currency: "USD"}
		a.setBank(b)
		a.say(wish)
		pass(3 * time.Second)
		if paid, n := a.received(); n != 1 || paid != owed/2 {
			t.Errorf("%d payments of %s", n, paid)
		}
		a.say(market.PaidMessage{Slice: 1<<31 | 1, Amount: owed / 2})
		pass(3 * time.Second)
		if _, n := a.received(); n != 1 {
			t.Errorf("%d payments of one sum", n)
		}
		if _, err := r.Confirm(t.Context(), a.id.String(), view.Confirm{}); err != nil {
			t.Fatal(err)
		}
		a.hangUp()
		r.stop()
		r.start()
		v, err := r.Ledger(t.Context())
		if err != nil || v.Entries[0].Owed.Micro != 0 || v.Entries[0].Paid.Micro != int64(owed) {
			t.Errorf("ledger %+v: %v", v, err)
		}
		_, err = r.Confirm(t.Context(), a.id.String(), view.Confirm{})
		wantCode(t, err, market.CodeNothingOwed)
		i, err := r.Invoice(t.Context(), a.self().String(), "")
		if err != nil || i.Total.Micro != int64(owed) || i.Due.Micro != 0 || len(i.Payments) != 2 {
			t.Errorf("invoice %+v: %v", i, err)
		}
		if h, err := r.History(t.Context(), a.self().String()); err != nil || h.Leases != 1 || h.EndedByMe != 1 {
			t.Errorf("history %+v: %v", h, err)
		}
		a.connect()
		if paid, n := a.received(); n != 2 || paid != owed {
			t.Errorf("%d payments of %s came to the renter", n, paid)
		}
		a.hangUp()
	})
}

func TestARunningLeaseTakesMoneyThatNobodyAskedFor(t *testing.T) {
	b := newBank()
	inMarket(t, b, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.setBank(b)
		a.rentAhead(nil, "probe", "polite")
		pass(10 * time.Second)
		before, _ := a.received()
		a.say(market.AskMessage{Slice: market.Slice{Seq: 1<<31 | 9, Amount: 100_000}, Method: "lab", Currency: "USD"})
		pass(5 * time.Second)
		if paid, _ := a.received(); paid != before+100_000 {
			t.Errorf("%s are paid, %s before", paid, before)
		}
		a.say(market.AskMessage{Slice: market.Slice{Seq: 1<<31 | 10, Amount: 1}, Method: "gold", Currency: "USD"})
		pass(time.Second)
		a.wantDecline("pay", market.CodePayMethod)
		a.wantState(market.JobRunning, "")
	})
}

// TestADeathAtEveryStoredStepLosesAndDoublesNothing lets the rig's store take one write fewer than a whole lease makes, and each
// number of writes before: then the daemon dies, and another one goes on.
func TestADeathAtEveryStoredStepLosesAndDoublesNothing(t *testing.T) {
	for writes := 1; ; writes++ {
		died := false
		b := newBank()
		t.Run(strconv.Itoa(writes), func(t *testing.T) {
			inMarket(t, b, func(t *testing.T, r *rig) { died = paidLife(t, r, b, writes) })
		})
		if !died || t.Failed() {
			if writes < 8 {
				t.Errorf("a whole life is %d writes", writes)
			}
			return
		}
	}
}

// paidLife is a lease that is paid ahead, with a death after so many writes; it reports whether it came to that.
func paidLife(t *testing.T, r *rig, b *bank, writes int) (died bool) {
	a := newRenter(r, "ann")
	a.setBank(b)
	a.order([]string{"probe", "wait", "240"}, func(bid *market.Bid, m *market.BidMessage) { ahead(bid, m); bid.DurationMs = 300_000 })
	if err := a.send(); err != nil {
		t.Fatal(err)
	}
	r.store.breakAfter(writes, errors.New("the power is off"))
	a.accept()
	for range 40 {
		pass(10 * time.Second)
		if r.store.isBroken() && !died {
			died = true
			r.stop()
			a.hangUp()
			r.store.breakWith(nil)
			r.start()
			a.comeBack(r)
		}
	}
	pass(2 * time.Minute)
	a.hangUp()
	l := r.lease()
	if l.Job != market.JobEnded || l.Reason != market.ReasonCompleted && l.Reason != market.ReasonHoldExpired {
		t.Fatalf("job is %s (%s)", l.Job, l.Reason)
	}
	if l.Reason == market.ReasonHoldExpired {
		return died
	}
	paid, n := a.received()
	if paid != b.total() || l.Paid != paid || int(l.PaidSeq) != n {
		t.Errorf("%d payments of %s at the renter, %d of %s at the rig, %s were sent", n, paid, l.PaidSeq, l.Paid, b.total())
	}
	if l.Debt != market.DebtFinal || l.Total() > paid {
		t.Errorf("debt is %s, %s used of %s", l.Debt, l.Total(), paid)
	}
	raw, err := r.Evidence(t.Context(), a.id.String())
	if err != nil {
		t.Fatal(err)
	}
	if j := market.Judge(raw); j.Verdict != market.VerdictAgreed {
		t.Errorf("verdict %s: %+v", j.Verdict, j.Checks)
	}
	return died
}

// comeBack comes back after a break of the rig, with the signature if that may not have arrived.
func (a *renter) comeBack(r *rig) {
	if r.lease().Job != market.JobGranted {
		a.connect()
		return
	}
	if err := a.send(); err != nil {
		a.t.Logf("the bid again: %v", err)
		return
	}
	a.accept()
}

func TestADeathRightAfterEachStoredStepLosesAndDoublesNothing(t *testing.T) {
	for writes := 1; ; writes++ {
		died := false
		b := newBank()
		t.Run(strconv.Itoa(writes), func(t *testing.T) {
			inBubbleOf(t, func(r *rig) {
				r.config.Till, r.config.Store = b, tornStore{r.store}
			}, func(t *testing.T, r *rig) { died = paidLife(t, r, b, writes) })
		})
		if !died || t.Failed() {
			if writes < 8 {
				t.Errorf("a whole life is %d writes", writes)
			}
			return
		}
	}
}
