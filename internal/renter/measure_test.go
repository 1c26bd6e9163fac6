package renter_test

import (
	"strings"
	"testing"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

func TestAFifthOfAPercentTooMuchIsRefused(t *testing.T) {
	const from = 280 // after 4 hours and 40 minutes
	terms := market.Terms{Slots: make([]market.GrantedSlot, 1), Resources: market.Resources{DiskMB: market.DefaultDiskMB}, Prices: market.Prices{Currency: "USD", Slot: 400_000}}
	cheat := cheat{receipt: func(r *market.Receipt) {
		if r.Seq >= from {
			r.BilledMs += r.BilledMs / 500
			rebill(r, terms)
		}
	}}
	inHouse(t, oneRig(func(r *testRig) { r.cheat = cheat }), func(t *testing.T, h *house) {
		l := h.mustBid(func(r *view.BidRequest) { r.DurationMs = 6 * 3_600_000 })
		l = h.until(l.ID, "disputed", func(l view.Lease) bool { return l.Debt == "disputed" })
		if l.Receipts != from-1 {
			t.Errorf("%d receipts are signed", l.Receipts)
		}
		pass(time.Second) // it is stored before it is sent
		if rig := h.rigLease(0); len(rig.rejects) == 0 || rig.rejects[0].Code != market.CodeReceiptTime {
			t.Errorf("the rig got %+v", rig.rejects)
		}
	})
}

// probing runs a test with an agent that asks jobs whether they run.
func probing(t *testing.T, change func(*testRig), test func(t *testing.T, h *house)) {
	t.Helper()
	inHouse(t, oneRig(change), func(t *testing.T, h *house) {
		h.down()
		h.probe = 15 * time.Second
		h.up()
		test(t, h)
	})
}

func TestAJobThatDoesNotAnswerIsNotPaidFor(t *testing.T) {
	probing(t, nil, func(t *testing.T, h *house) {
		l := h.mustBid(nil)
		pass(5 * time.Minute)
		if got := h.lease(l.ID); got.Debt != "open" || got.Receipts < 4 {
			t.Fatalf("while it answers: %s with %d receipts", got.Debt, got.Receipts)
		}
		h.rig(0).set(func() { h.rig(0).frozen = true }) // and the rig goes on billing
		l = h.until(l.ID, "disputed", func(l view.Lease) bool { return l.Debt == "disputed" })
		if l.Signed.Micro > 400_000*7/60 {
			t.Errorf("%s were signed for 5 minutes and a little", l.Signed.Text)
		}
	})
}

func TestAJobThatAnswersAgainIsBelieved(t *testing.T) {
	probing(t, func(r *testRig) { r.run = 20 * time.Minute }, func(t *testing.T, h *house) {
		l := h.mustBid(nil)
		pass(3*time.Minute + 7*time.Second)
		h.rig(0).set(func() { h.rig(0).frozen = true }) // for less than two probes
		pass(12 * time.Second)
		h.rig(0).set(func() { h.rig(0).frozen = false })
		l = h.until(l.ID, "settled", settled)
		if l.BilledMs != 20*60_000 {
			t.Errorf("billed %d ms", l.BilledMs)
		}
	})
}

func TestAJobWithoutADoorIsNotAsked(t *testing.T) {
	probing(t, func(r *testRig) {
		r.run = 20 * time.Minute
		r.shut = market.NewError(market.CodeNoDoor, "state", "running")
	}, func(t *testing.T, h *house) {
		l := h.until(h.mustBid(nil).ID, "settled", settled)
		if l.BilledMs != 20*60_000 || h.rig(0).doors > 6 {
			t.Errorf("billed %d ms, %d doors were tried", l.BilledMs, h.rig(0).doors)
		}
	})
}

func TestWhatThisSideSawIsShown(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		l := h.mustBid(func(r *view.BidRequest) { r.StopIdle = &market.IdleStop{Permille: 50, ForMs: 600_000} })
		pass(5 * time.Minute)
		l = h.lease(l.ID)
		if !strings.HasPrefix(l.Seen, "at most 5m") || l.Risk == nil || l.Risk.Unsigned.NowMs == 0 || l.Risk.Unsigned.MostMs != 180_000 || !l.Risk.Credit.Unlimited {
			t.Errorf("seen %q, risk %+v", l.Seen, l.Risk)
		}
		if l.Idle == nil || l.Idle.Permille != 50 || l.Pay != nil {
			t.Errorf("idle %+v, pay %+v", l.Idle, l.Pay)
		}
		h.down()
		pass(4 * time.Minute)
		h.up()
		pass(time.Second)
		if l = h.lease(l.ID); !strings.Contains(l.Seen, "not watched") {
			t.Errorf("seen %q", l.Seen)
		}
	})
}

func TestAGuaranteeGoesWithTheBid(t *testing.T) {
	inHouse(t, oneRig(func(r *testRig) {
		r.update(func(o *market.Offer) { o.Rules.Credit = 0 })
	}), func(t *testing.T, h *house) {
		friend := h.second()
		defer friend.down()
		ask := view.GuaranteeRequest{Rig: keyText(1), Renter: keyText(200), AmountMicro: 300_000, Currency: "USD", Until: time.Now().Add(time.Hour).UnixMilli()}
		sealed, err := friend.agent.Guarantee(t.Context(), ask)
		if err != nil {
			t.Fatal(err)
		}
		_, err = h.bid(nil)
		wantCode(t, err, market.CodePayAhead)
		l := h.mustBid(func(r *view.BidRequest) { r.Guarantee = sealed })
		terms := h.rigLease(0).state.Terms
		if terms.Limits.Credit != 300_000 || terms.Guarantee.IsZero() {
			t.Errorf("terms %+v", terms)
		}
		file, err := h.agent.Evidence(t.Context(), l.ID)
		if err != nil {
			t.Fatal(err)
		}
		if e, err := market.DecodeEvidence(file); err != nil || len(e.Papers) != 1 || e.Papers[0].Kind != market.KindGuarantee {
			t.Errorf("papers %+v, %v", e.Papers, err)
		}
		ask.Renter = keyText(99)
		other, err := friend.agent.Guarantee(t.Context(), ask)
		if err != nil {
			t.Fatal(err)
		}
		_, err = h.bid(func(r *view.BidRequest) { r.Guarantee = other })
		wantCode(t, err, market.CodeGuarantee)
		_, err = friend.agent.Guarantee(t.Context(), view.GuaranteeRequest{Rig: keyText(1), Renter: keyText(200), Currency: "USD"})
		wantCode(t, err, market.CodeBadRecord)
	})
}
