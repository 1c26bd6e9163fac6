package host_test

import (
	"testing"
	"time"

	"haggle/market"
	"haggle/nvml"
	"haggle/nvml/sim"
)

func TestAJobStopsAtItsBudgetAndNeverBeyond(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.order([]string{"probe", "polite"}, func(b *market.Bid, _ *market.BidMessage) { b.Budget = 10_050 })
		if err := a.send(); err != nil {
			t.Fatal(err)
		}
		a.accept()
		pass(2 * time.Minute)
		a.wantState(market.JobEnded, market.ReasonBudget)
		list := a.receipts()
		last := list[len(list)-1]
		if last.Bill.Total > 10_050 || last.Bill.Total < 10_000 || last.Exit.Code != 143 {
			t.Errorf("total %s, exit %+v", last.Bill.Total, last.Exit)
		}
	})
}

func TestAJobStopsWhenItsTimeIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.order([]string{"probe", "stubborn"}, func(b *market.Bid, _ *market.BidMessage) { b.DurationMs = 90_000 })
		if err := a.send(); err != nil {
			t.Fatal(err)
		}
		a.accept()
		pass(95 * time.Second)
		a.wantState(market.JobStopping, market.ReasonExpired)
		pass(2 * time.Minute)
		a.wantState(market.JobEnded, market.ReasonExpired)
		list := a.receipts()
		if last := list[len(list)-1]; last.BilledMs != 90_000 || last.Bill.Total != 9000 || last.Exit.Code != 137 {
			t.Errorf("last receipt %+v", last)
		}
	})
}

func TestARenterThatAnswersAndDoesNotSignIsStopped(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.setMute(true)
		a.rent("probe", "polite")
		pass(179 * time.Second)
		a.wantState(market.JobRunning, "")
		pass(5 * time.Second)
		a.wantState(market.JobEnded, market.ReasonUnsigned)
		l := r.lease()
		if l.Debt != market.DebtOpen || l.Meter.BilledMs > 182_000 {
			t.Errorf("debt %s, billed %d", l.Debt, l.Meter.BilledMs)
		}
		// It can still sign: first the draft of old, then the final receipt.
		a.setMute(false)
		a.hangUp()
		a.connect()
		if l := r.lease(); l.Debt != market.DebtFinal || len(a.receipts()) != 2 {
			t.Errorf("debt %s after %d receipts", l.Debt, len(a.receipts()))
		}
	})
}

func TestAJobGoesOnWithoutItsRenterForAsLongAsWasAllowed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "polite")
		pass(75 * time.Second)
		a.hangUp()
		pass(9 * time.Minute)
		if l := r.lease(); l.Job != market.JobRunning || !l.Away {
			t.Fatalf("job is %s, away %t", l.Job, l.Away)
		}
		pass(2 * time.Minute)
		if l := r.lease(); l.Job != market.JobEnded || l.Reason != market.ReasonUnattended {
			t.Fatalf("job is %s (%s)", l.Job, l.Reason)
		}
	})
}

func TestARefusedReceiptEndsTheJobAndOpensADispute(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.setMute(true)
		a.rent("probe", "polite")
		pass(11 * time.Second)
		receipt, s, err := market.OpenReceipt(network, a.drafts[0], a.terms)
		if err != nil {
			t.Fatal(err)
		}
		a.say(market.RejectMessage{Reject: market.SealReject(network, a.key, market.Reject{
			Lease: a.id, Seq: receipt.Seq, Receipt: s.Hash(), Code: market.CodeReceiptTime,
		}).Encode()})
		pass(time.Second)
		a.wantState(market.JobEnded, market.ReasonDisputed)
		if l := r.lease(); l.Debt != market.DebtDisputed {
			t.Errorf("debt %s", l.Debt)
		}
	})
}

func TestAJobWhoseCardsDoNothingEndsWhereItsRenterWishes(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.order([]string{"probe", "polite"}, func(b *market.Bid, _ *market.BidMessage) {
			b.Idle = &market.IdleStop{Permille: 50, ForMs: 120_000}
		})
		if err := a.send(); err != nil {
			t.Fatal(err)
		}
		a.accept()
		pass(5 * time.Minute)
		a.wantState(market.JobRunning, "") // a simulated card is busy while its job runs
		cards, err := r.Cards(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := r.cards.SetLoad(cards[0].UUID, 10, 0); err != nil {
			t.Fatal(err)
		}
		pass(110 * time.Second)
		a.wantState(market.JobRunning, "")
		pass(20 * time.Second)
		a.wantState(market.JobEnded, market.ReasonIdle)
		if len(a.notices) != 1 || a.notices[0].Reason != market.ReasonIdle {
			t.Errorf("notices %+v", a.notices)
		}
	})
}

func TestACardThatFailsEndsItsJobAndLeavesTheOffer(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "polite")
		pass(time.Minute)
		cards, err := r.Cards(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leased := cards[0]
		if leased.Lease != a.id.String() || *leased.UtilPercent != 90 || *leased.PowerW < 100 {
			t.Errorf("card %+v", leased)
		}
		if err := r.cards.Inject(leased.UUID, sim.Fault{Kind: nvml.EventXid, Code: 79}); err != nil {
			t.Fatal(err)
		}
		pass(3 * time.Second)
		a.wantState(market.JobEnded, market.ReasonFault)
		if o, _, _ := r.offer(); len(o.Slots) != 1 || o.Slots[0].Index != 1 {
			t.Errorf("slots %+v", o.Slots)
		}
		b := newRenter(r, "bob")
		b.order([]string{"probe", "polite"}, func(b *market.Bid, _ *market.BidMessage) { b.Count = 2 })
		wantCode(t, b.send(), market.CodeTooFewSlots)
		b.rent("probe", "polite")
		b.wantState(market.JobRunning, "")
		cards, _ = r.Cards(t.Context())
		if cards[0].Health != "fence" || cards[0].UtilPercent != nil {
			t.Errorf("card %+v", cards[0])
		}
	})
}

func TestACardThatHangsHoldsUpNobodyAndIsUnknown(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "polite")
		cards, _ := r.Cards(t.Context())
		if err := r.cards.Inject(cards[0].UUID, sim.Fault{Kind: nvml.EventHang, For: 4 * time.Second}); err != nil {
			t.Fatal(err)
		}
		pass(11 * time.Second)
		if list := a.receipts(); len(list) != 1 || list[0].BilledMs != 10_000 {
			t.Errorf("receipts %+v", list)
		}
		a.wantState(market.JobRunning, "")
	})
}
