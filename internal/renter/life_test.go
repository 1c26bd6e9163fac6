package renter_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

func ended(l view.Lease) bool   { return l.State == string(market.JobEnded) }
func settled(l view.Lease) bool { return ended(l) && l.Debt == string(market.DebtFinal) }

func TestALeaseLivesFromBidToFinalReceipt(t *testing.T) {
	inHouse(t, oneRig(func(r *testRig) { r.run, r.code = 200*time.Second, 7 }), func(t *testing.T, h *house) {
		l := h.mustBid(nil)
		if l.State == "granted" || l.ID == "" || !l.Connected || l.Debt != "open" {
			t.Fatalf("after the bid: %+v", l)
		}
		if got := h.agent.OpenLeases(); got != 1 {
			t.Errorf("open leases: %d, want 1", got)
		}
		l = h.until(l.ID, "settled", settled)
		if l.Exit == nil || *l.Exit != 7 || l.Reason != "completed" || l.BilledMs != 200_000 {
			t.Errorf("at the end: %+v", l)
		}
		// 200 s of 0.40 an hour, rounded down to millionths.
		if want := market.Micro(22_222); market.Micro(l.Signed.Micro) != want {
			t.Errorf("signed %s, want %s", l.Signed.Text, want)
		}
		receipts, err := h.agent.Receipts(t.Context(), l.ID[:8])
		if err != nil || len(receipts) != 5 { // at 10, 70, 130 and 190 s, and the final one
			t.Fatalf("receipts: %d, %v; want 5", len(receipts), err)
		}
		file, err := h.agent.Evidence(t.Context(), l.ID)
		if err != nil {
			t.Fatal(err)
		}
		if j := market.Judge(file); j.Verdict != market.VerdictAgreed || j.Receipts != 5 {
			t.Errorf("verdict %s of %d receipts: %+v", j.Verdict, j.Receipts, j.Checks)
		}
		pass(time.Second)
		if got := h.agent.OpenLeases(); got != 0 {
			t.Errorf("open leases after the end: %d", got)
		}
		rig := h.rigLease(0)
		if rig.state.Debt != market.DebtFinal || len(rig.env) != 1 {
			t.Errorf("on the rig: debt %s, environment %v", rig.state.Debt, rig.env)
		}
		for _, r := range h.store.records {
			if len(r.Env) != 0 || !r.State.Acked {
				t.Errorf("the store keeps environment %v, acked %v", r.Env, r.State.Acked)
			}
		}
	})
}

func TestACallerThatGoesAwayDoesNotEndItsBid(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		// The work may be taken or not: both are right, and nothing hangs.
		if _, err := h.agent.Bid(ctx, view.BidRequest{Image: "train"}); !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v", err)
		}
		pass(30 * time.Second)
	})
}

func TestAgentRestartGoesOnWhereItWas(t *testing.T) {
	inHouse(t, oneRig(func(r *testRig) { r.run = 10 * time.Minute }), func(t *testing.T, h *house) {
		l := h.mustBid(nil)
		pass(3 * time.Minute)
		before := h.lease(l.ID)
		h.down()
		pass(2 * time.Minute) // the job goes on
		h.up()
		pass(time.Second)
		after := h.lease(l.ID)
		if after.Receipts < before.Receipts || after.State != "running" || !after.Connected {
			t.Errorf("before %+v\nafter %+v", before, after)
		}
		l = h.until(l.ID, "settled", settled)
		if l.BilledMs != 600_000 {
			t.Errorf("billed %d ms, want 600000", l.BilledMs)
		}
		file, err := h.agent.Evidence(t.Context(), l.ID)
		if err != nil {
			t.Fatal(err)
		}
		if j := market.Judge(file); j.Verdict != market.VerdictAgreed {
			t.Errorf("verdict %s: %+v", j.Verdict, j.Checks)
		}
	})
}

func TestABrokenConnectionIsMadeAgainAndNothingIsSignedTwice(t *testing.T) {
	inHouse(t, oneRig(func(r *testRig) { r.run = 5 * time.Minute }), func(t *testing.T, h *house) {
		l := h.mustBid(nil)
		for range 20 {
			pass(11 * time.Second)
			h.rig(0).cut()
		}
		l = h.until(l.ID, "settled", settled)
		pass(time.Second)
		if l.BilledMs != 300_000 || h.rigLease(0).state.Debt != market.DebtFinal {
			t.Errorf("at the end: %+v", l)
		}
	})
}

func TestARigThatIsDownForMinutesComesBack(t *testing.T) {
	inHouse(t, oneRig(func(r *testRig) { r.run = 10 * time.Minute }), func(t *testing.T, h *house) {
		l := h.mustBid(nil)
		pass(time.Minute)
		h.rig(0).setDown(true)
		pass(3 * time.Minute)
		if got := h.lease(l.ID); got.Connected {
			t.Errorf("connected to a rig that is down")
		}
		h.rig(0).setDown(false)
		l = h.until(l.ID, "settled", settled)
		if l.BilledMs != 600_000 {
			t.Errorf("billed %d", l.BilledMs)
		}
	})
}

func TestARigThatLostOurSignatureGetsItAgain(t *testing.T) {
	inHouse(t, oneRig(func(r *testRig) { r.run = 10 * time.Minute }), func(t *testing.T, h *house) {
		l := h.mustBid(nil)
		pass(75 * time.Second)
		rig := h.rig(0)
		rig.mu.Lock()
		kept := h.rigLease2()
		kept.state.Head, kept.receipts = market.Head{}, nil // restored from a backup
		kept.state.Draft = nil
		rig.mu.Unlock()
		rig.cut()
		pass(time.Second)
		rig.mu.Lock()
		defer rig.mu.Unlock()
		if len(rig.echoes) != 2 || rig.echoes[0] != 1 || rig.echoes[1] != 2 {
			t.Errorf("the rig got receipts %v back, want 1 and 2", rig.echoes)
		}
		if got := h.lease(l.ID); got.Receipts != 2 || got.Debt != "open" {
			t.Errorf("the agent's lease: %+v", got)
		}
	})
}

func TestStop(t *testing.T) {
	t.Run("a stopped job is settled", func(t *testing.T) {
		inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
			l := h.mustBid(nil)
			pass(100 * time.Second)
			got, err := h.agent.Stop(t.Context(), l.ID[:6], false)
			if err != nil || got.Reason != "renter" {
				t.Fatalf("stop: %+v, %v", got, err)
			}
			h.until(l.ID, "settled", settled)
			_, err = h.agent.Stop(t.Context(), l.ID, false)
			wantCode(t, err, market.CodeLeaseEnded)
		})
	})
	t.Run("an order to a rig that is away is kept", func(t *testing.T) {
		inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
			l := h.mustBid(nil)
			h.rig(0).setDown(true)
			pass(30 * time.Second)
			_, err := h.agent.Stop(t.Context(), l.ID, false)
			wantCode(t, err, market.CodeUnreachable)
			h.rig(0).setDown(false)
			l = h.until(l.ID, "settled", settled)
			if l.Reason != "renter" {
				t.Errorf("reason %q", l.Reason)
			}
		})
	})
	t.Run("a lease that nobody knows", func(t *testing.T) {
		inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
			_, err := h.agent.Stop(t.Context(), "abcdef", false)
			wantCode(t, err, market.CodeLeaseUnknown)
			_, err = h.agent.Stop(t.Context(), "no", false)
			wantCode(t, err, market.CodeLeaseUnknown)
		})
	})
}

func TestARigThatVanishedIsShownAsLostAndItsWordWins(t *testing.T) {
	inHouse(t, oneRig(func(r *testRig) { r.run = 30 * time.Minute }), func(t *testing.T, h *house) {
		l := h.mustBid(nil)
		pass(time.Minute)
		h.rig(0).setDown(true)
		pass(3 * time.Hour)
		if got := h.lease(l.ID); got.State != "ended" || got.Reason != "lost" || h.agent.OpenLeases() != 0 {
			t.Errorf("after hours without a word: %+v", got)
		}
		h.rig(0).setDown(false)
		l = h.until(l.ID, "settled", settled)
		if l.Reason == "lost" {
			t.Errorf("the rig's word did not win: %+v", l)
		}
	})
}

func TestAWatcherThatIsSlowSeesTheLastState(t *testing.T) {
	inHouse(t, oneRig(func(r *testRig) { r.run = 3 * time.Minute }), func(t *testing.T, h *house) {
		ctx, cancel := context.WithCancel(t.Context())
		changes := h.agent.Watch(ctx)
		l := h.mustBid(nil)
		h.until(l.ID, "settled", settled)
		pass(10 * time.Second)
		var last view.Lease
		for steps := 0; !settled(last) || !ended(last); steps++ {
			last = <-changes
			if steps > 3 {
				t.Fatalf("a slow watcher got more than the latest states: %+v", last)
			}
		}
		cancel()
		for range changes {
		}
	})
}

func TestNeverSignsWhatIsNotStored(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		l := h.mustBid(nil)
		h.store.mu.Lock()
		h.store.broken = errors.New("disk full")
		h.store.mu.Unlock()
		pass(time.Minute)
		if rig := h.rigLease(0); len(rig.receipts) != 0 || rig.state.Head.Seq != 0 {
			t.Error("a signature left the agent that its store does not hold")
		}
		h.store.mu.Lock()
		h.store.broken = nil
		h.store.mu.Unlock()
		pass(time.Minute)
		if got := h.lease(l.ID); got.Receipts == 0 {
			t.Errorf("nothing was signed after the disk came back: %+v", got)
		}
	})
}

// rigLease2 is rigLease for a caller that holds the rig's lock.
func (h *house) rigLease2() *rigLease {
	for _, l := range h.rig(0).leases {
		return l
	}
	return nil
}

func TestTheRigsWordOnWhatTheJobLeftBehindIsKeptAndAskedForWhenItIsDue(t *testing.T) {
	inHouse(t, oneRig(func(r *testRig) { r.run = 20 * time.Second }), func(t *testing.T, h *house) {
		l := h.until(h.mustBid(nil).ID, "settled", settled)
		pass(time.Second)
		o, err := h.agent.Outcome(t.Context(), l.ID)
		if err != nil || o == nil || o.DiskAt != 0 || len(o.Cards) != 1 || o.Cards[0].Bytes != 1<<30 {
			t.Fatalf("outcome %+v, %v", o, err)
		}
		if l := h.lease(l.ID); l.Outcome == nil || l.Outcome.DiskAt != 0 {
			t.Errorf("the lease shows %+v", l.Outcome)
		}
		pass(25 * time.Hour)
		file, err := h.agent.Evidence(t.Context(), l.ID)
		if err != nil {
			t.Fatal(err)
		}
		if j := market.Judge(file); j.Verdict != market.VerdictAgreed || j.Outcome == nil || j.Outcome.DiskAt == 0 {
			t.Errorf("verdict %s, outcome %+v", j.Verdict, j.Outcome)
		}
		h.rig(0).setDown(true) // nobody has to be asked again
		if l := h.lease(l.ID); l.Outcome == nil || l.Outcome.DiskAt == 0 {
			t.Errorf("the lease shows %+v", l.Outcome)
		}
	})
}

func TestARigThatDoesNotAnswerForALeaseThatIsOverHoldsUpNoEvidence(t *testing.T) {
	inHouse(t, oneRig(func(r *testRig) { r.run = 20 * time.Second }), func(t *testing.T, h *house) {
		l := h.until(h.mustBid(nil).ID, "settled", settled)
		pass(25 * time.Hour)
		h.rig(0).setDown(true)
		began := time.Now()
		file, err := h.agent.Evidence(t.Context(), l.ID)
		if err != nil || time.Since(began) > 6*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if j := market.Judge(file); j.Verdict != market.VerdictAgreed || j.Outcome == nil || j.Outcome.DiskAt != 0 {
			t.Errorf("verdict %s, outcome %+v", j.Verdict, j.Outcome)
		}
	})
}

func TestADiskIsAskedForAndPaidForAsItIsNamed(t *testing.T) {
	inHouse(t, oneRig(func(r *testRig) {
		r.offer.Prices.Disk = 1000
		r.sign()
	}), func(t *testing.T, h *house) {
		l := h.mustBid(func(r *view.BidRequest) { r.DiskMB, r.DurationMs = 50_000, 3_600_000 })
		// 0.40 for the card and 50 GB at 0.001
		if l.DiskMB != 50_000 || l.Budget.Text != "0.45" {
			t.Errorf("%d MB for at most %s", l.DiskMB, l.Budget.Text)
		}
		if l := h.mustBid(nil); l.DiskMB != market.DefaultDiskMB || l.Budget.Text != "0.41" {
			t.Errorf("%d MB for at most %s", l.DiskMB, l.Budget.Text)
		}
		if _, err := h.bid(func(r *view.BidRequest) { r.DiskMB = -1 }); market.CodeOf(err) != market.CodeBadRequest {
			t.Errorf("a negative disk: %v", err)
		}
	})
}
