package renter_test

import (
	"path/filepath"
	"testing"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

func paused(l view.Lease) bool { return l.State == string(market.JobPaused) }

// priced gives a rig's disk a price.
func priced(r *testRig) {
	r.update(func(o *market.Offer) { o.Prices.Disk = 1000 })
}

func TestAKeptDiskIsPaidAndTheJobStartsAgain(t *testing.T) {
	inHouse(t, oneRig(priced), func(t *testing.T, h *house) {
		home := t.TempDir()
		l := h.mustBid(func(r *view.BidRequest) {
			r.DurationMs = (4 * time.Hour).Milliseconds()
			collecting("out", home)(r)
		})
		h.until(l.ID, "running", running)
		write(t, h.rigLease(0).work, map[string]string{"out/a": "1"})
		pass(10 * time.Minute)
		l, err := h.agent.Keep(t.Context(), l.ID)
		if err != nil || l.State != "stopping" {
			t.Fatalf("kept: %+v, %v", l, err)
		}
		l = h.until(l.ID, "paused", paused)
		pass(time.Hour)
		wantFile(t, filepath.Join(home, "a"), "1")
		l = h.lease(l.ID)
		if l.KeptMs < 3_500_000 || l.Debt != "open" || h.agent.OpenLeases() != 1 {
			t.Errorf("after an hour: %+v", l)
		}
		h.down() // an agent that was away goes on with the pause
		h.up()
		pass(time.Second)
		l, err = h.agent.Resume(t.Context(), l.ID)
		if err != nil || l.Attempt != 1 {
			t.Fatalf("again: %+v, %v", l, err)
		}
		h.until(l.ID, "running", running)
		write(t, h.rigLease(0).work, map[string]string{"out/a": "22"})
		pass(20 * time.Minute)
		if _, err := h.agent.Stop(t.Context(), l.ID, false); err != nil {
			t.Fatal(err)
		}
		l = h.until(l.ID, "settled", settled)
		h.until(l.ID, "collected", collected)
		wantFile(t, filepath.Join(home, "a"), "22")
		if l.BilledMs < 29*60_000 || l.BilledMs > 31*60_000 {
			t.Errorf("billed %d ms", l.BilledMs)
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

func TestARefusedStartLeavesTheLeasePaused(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		l := h.mustBid(nil)
		h.until(l.ID, "running", running)
		_, err := h.agent.Resume(t.Context(), l.ID)
		wantCode(t, err, market.CodeNotPaused)
		_, err = h.agent.Remove(t.Context(), l.ID)
		wantCode(t, err, market.CodeNotPaused)
		if _, err := h.agent.Keep(t.Context(), l.ID); err != nil {
			t.Fatal(err)
		}
		h.until(l.ID, "paused", paused)
		h.rig(0).set(func() { h.rig(0).decline = market.NewError(market.CodeSlotTaken, "free", "0", "wanted", "1") })
		for range 2 {
			_, err = h.agent.Resume(t.Context(), l.ID)
			wantCode(t, err, market.CodeSlotTaken)
		}
		pass(time.Minute)
		h.rig(0).set(func() { h.rig(0).decline = nil })
		pass(time.Minute)
		if l := h.lease(l.ID); !paused(l) {
			t.Fatalf("a refused order was carried out later: %+v", l)
		}
		l, err = h.agent.Remove(t.Context(), l.ID)
		if err != nil || !ended(l) || l.Reason != "renter" {
			t.Errorf("removed: %+v, %v", l, err)
		}
		h.until(l.ID, "settled", settled)
	})
}

func TestAnOrderToStopGivesAKeptDiskUp(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		l := h.mustBid(nil)
		h.until(l.ID, "running", running)
		if _, err := h.agent.Keep(t.Context(), l.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := h.agent.Stop(t.Context(), l.ID, true); err != nil {
			t.Fatal(err)
		}
		if l = h.until(l.ID, "settled", settled); l.Reason != "renter" {
			t.Errorf("at the end: %+v", l)
		}
	})
}

func TestARigCannotBillADiskThatNobodyWantedKept(t *testing.T) {
	inHouse(t, oneRig(func(r *testRig) {
		priced(r)
		r.cheat.receipt = func(rec *market.Receipt) {
			rec.KeptMs = 5000
			for _, l := range r.leases {
				rec.Usage = l.state.Terms.UsedBy(rec.BilledMs, rec.KeptMs, 0, 0)
				rec.Bill, _ = l.state.Terms.Prices.Bill(rec.Usage)
			}
		}
	}), func(t *testing.T, h *house) {
		l := h.mustBid(func(r *view.BidRequest) { r.BudgetMicro = 9_000_000 })
		l = h.until(l.ID, "disputed", func(l view.Lease) bool { return l.Debt == "disputed" })
		if l.Receipts != 0 {
			t.Errorf("signed %d receipts", l.Receipts)
		}
	})
}

func TestAnExtensionIsSignedByBothAndCounts(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		l := h.mustBid(func(r *view.BidRequest) { r.DurationMs = (10 * time.Minute).Milliseconds() })
		h.until(l.ID, "running", running)
		budget := l.Budget.Micro
		l, err := h.agent.Extend(t.Context(), l.ID, view.ExtendRequest{DurationMs: (20 * time.Minute).Milliseconds()})
		if err != nil || l.Duration != (30*time.Minute).Milliseconds() || l.Budget.Micro < 3*budget-3 {
			t.Fatalf("extended: %+v, %v", l, err)
		}
		h.rig(0).set(func() { h.rig(0).decline = market.NewError(market.CodePriceRose, "now", "1", "lease", "0.4") })
		_, err = h.agent.Extend(t.Context(), l.ID, view.ExtendRequest{BudgetMicro: 5})
		wantCode(t, err, market.CodePriceRose)
		h.rig(0).set(func() { h.rig(0).decline = nil })
		_, err = h.agent.Extend(t.Context(), l.ID, view.ExtendRequest{})
		wantCode(t, err, market.CodeBadRequest)
		if l, err = h.agent.Extend(t.Context(), l.ID, view.ExtendRequest{BudgetMicro: 5}); err != nil {
			t.Fatal(err)
		}
		h.down()
		h.up()
		if l = h.until(l.ID, "settled", settled); l.BilledMs != (30 * time.Minute).Milliseconds() {
			t.Errorf("billed %d ms: %s", l.BilledMs, l.Reason)
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

func TestAnExtensionThatTheRigDidNotHearIsAskedAgain(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		l := h.mustBid(nil)
		h.until(l.ID, "running", running)
		h.rig(0).setDown(true)
		pass(time.Second)
		_, err := h.agent.Extend(t.Context(), l.ID, view.ExtendRequest{DurationMs: 60_000})
		wantCode(t, err, market.CodeUnreachable)
		_, err = h.agent.Extend(t.Context(), l.ID, view.ExtendRequest{DurationMs: 120_000})
		wantCode(t, err, market.CodeBadRequest) // one question at a time
		h.down()
		h.up()
		h.rig(0).setDown(false)
		h.until(l.ID, "extended", func(l view.Lease) bool { return l.Duration == (61 * time.Minute).Milliseconds() })
	})
}

func TestANameFindsItsLease(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		first := h.mustBid(func(r *view.BidRequest) { r.Name, r.Labels = "trial", []string{"a"} })
		_, err := h.bid(func(r *view.BidRequest) { r.Name = "trial" })
		wantCode(t, err, market.CodeNameTaken)
		second := h.mustBid(nil)
		_, err = h.agent.Rename(t.Context(), second.ID, view.NameRequest{Name: "trial"})
		wantCode(t, err, market.CodeNameTaken)
		if l := h.lease("trial"); l.ID != first.ID || l.Labels[0] != "a" {
			t.Errorf("trial is %+v", l)
		}
		if l := h.lease("lease-" + second.ID[:4]); l.ID != second.ID {
			t.Errorf("the default name finds %+v", l)
		}
		if _, err := h.agent.Stop(t.Context(), "trial", true); err != nil {
			t.Fatal(err)
		}
		h.until("trial", "settled", settled)
		pass(time.Second)
		if l := h.lease("trial"); l.ID != first.ID {
			t.Errorf("a lease that is over keeps its name: %+v", l)
		}
		l, err := h.agent.Rename(t.Context(), second.ID[:8], view.NameRequest{Name: "trial", Labels: []string{"b"}})
		if err != nil || l.Name != "trial" || h.lease("trial").ID != second.ID {
			t.Errorf("renamed: %+v, %v", l, err)
		}
		h.down()
		h.up()
		if l := h.lease("trial"); l.ID != second.ID || l.Labels[0] != "b" {
			t.Errorf("after a restart: %+v", l)
		}
	})
}
