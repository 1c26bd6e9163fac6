package renter_test

import (
	"testing"
	"testing/synctest"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

func two(change func(cheap, dear *testRig)) func() []*testRig {
	return func() []*testRig {
		cheap, dear := newRig(1, "cheap", 300_000), newRig(2, "dear", 500_000)
		if change != nil {
			change(cheap, dear)
		}
		return []*testRig{dear, cheap}
	}
}

func TestTheCheapestRigIsAskedFirst(t *testing.T) {
	inHouse(t, two(nil), func(t *testing.T, h *house) {
		if l := h.mustBid(nil); l.Rig != "cheap" {
			t.Errorf("the lease is with %s", l.Rig)
		}
	})
}

func TestARefusalIsFollowedByTheNextBest(t *testing.T) {
	for name, spoil := range map[string]func(cheap *testRig){
		"slot taken":   func(r *testRig) { r.cheat.refuse = market.NewError(market.CodeSlotTaken, "free", "0", "wanted", "1") },
		"paused":       func(r *testRig) { r.cheat.refuse = market.NewError(market.CodePaused) },
		"broken":       func(r *testRig) { r.cheat.refuse = market.NewError(market.CodeInternal) },
		"silent":       func(r *testRig) { r.cheat.mute = true },
		"a false echo": func(r *testRig) { r.cheat.grant = func(t *market.Terms) { t.DurationMs-- } },
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, two(func(cheap, _ *testRig) { spoil(cheap) }), func(t *testing.T, h *house) {
				if l := h.mustBid(nil); l.Rig != "dear" {
					t.Errorf("the lease is with %s", l.Rig)
				}
				all, err := h.agent.Leases(t.Context(), true)
				if err != nil || len(all) != 2 || all[1].State != "refused" || all[1].Error == nil || all[1].Debt != "final" {
					t.Errorf("leases: %+v, %v", all, err)
				}
				open, err := h.agent.Leases(t.Context(), false)
				if err != nil || len(open) != 1 {
					t.Errorf("open leases: %+v, %v", open, err)
				}
			})
		})
	}
}

func TestARigThatIsBusyIsAskedAgainAndNotLeft(t *testing.T) {
	inHouse(t, two(func(cheap, _ *testRig) { cheap.cheat.busy = 3 }), func(t *testing.T, h *house) {
		if l := h.mustBid(nil); l.Rig != "cheap" {
			t.Errorf("the lease is with %s", l.Rig)
		}
	})
	inHouse(t, two(func(cheap, _ *testRig) { cheap.cheat.busy = 1000 }), func(t *testing.T, h *house) {
		if l := h.mustBid(nil); l.Rig != "dear" {
			t.Errorf("the lease is with %s, though the cheap rig stays busy", l.Rig)
		}
	})
}

func TestAtMostThreeRigsAreTried(t *testing.T) {
	full := func() []*testRig {
		var list []*testRig
		for i := range byte(5) {
			r := newRig(i+1, "rig", 400_000)
			r.cheat.refuse = market.NewError(market.CodePaused)
			list = append(list, r)
		}
		return list
	}
	inHouse(t, full, func(t *testing.T, h *house) {
		_, err := h.bid(nil)
		wantCode(t, err, market.CodePaused)
		bids := 0
		for i := range 5 {
			bids += h.rig(i).bids
		}
		if bids != 3 {
			t.Errorf("%d bids, want 3", bids)
		}
	})
}

func TestABidThatNobodyCouldTakeIsNotSent(t *testing.T) {
	cases := []struct {
		name   string
		change func(*view.BidRequest)
		code   market.Code
	}{
		{"a budget below the first minute", func(r *view.BidRequest) { r.BudgetMicro = 10 }, market.CodeBudgetTooSmall},
		{"a time below the rig's", func(r *view.BidRequest) { r.DurationMs = 1000 }, market.CodeBadDuration},
		{"a time above the rig's", func(r *view.BidRequest) { r.DurationMs = 100 * 86_400_000 }, market.CodeBadDuration},
		{"an unattended time above the rig's", func(r *view.BidRequest) { r.UnattendedMs = market.Unlimited }, market.CodeBadLimits},
		{"an image that nobody has", func(r *view.BidRequest) { r.Image = "other" }, market.CodeImageUnknown},
		{"another currency", func(r *view.BidRequest) { r.Currency = "EUR" }, market.CodePriceTooLow},
		{"more slots than any rig has", func(r *view.BidRequest) { r.GPUs = 3 }, market.CodeNoMatch},
		{"more slots than the offer has", func(r *view.BidRequest) { r.Query, r.Offer, r.GPUs = "", "attic", 3 }, market.CodeTooFewSlots},
		{"a model that nobody has", func(r *view.BidRequest) { r.Query = "gpu_name=H100" }, market.CodeNoMatch},
		{"a field that does not exist", func(r *view.BidRequest) { r.Query = "gpu_nam=H100" }, market.CodeUnknownField},
		{"an offer that does not exist", func(r *view.BidRequest) { r.Query, r.Offer = "", "ffffff" }, market.CodeOfferUnknown},
		{"a query and an offer", func(r *view.BidRequest) { r.Offer = "attic" }, market.CodeBadRequest},
		{"no image", func(r *view.BidRequest) { r.Image = "" }, market.CodeBadRequest},
		{"a negative number of slots", func(r *view.BidRequest) { r.GPUs = -1 }, market.CodeBadRequest},
		{"a negative budget", func(r *view.BidRequest) { r.BudgetMicro = -1 }, market.CodeBadRequest},
		{"an environment that is none", func(r *view.BidRequest) { r.Env = []string{"no"} }, market.CodeBadRecord},
	}
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		for _, c := range cases {
			_, err := h.bid(c.change)
			if market.CodeOf(err) != c.code {
				t.Errorf("%s: error is %v (%s), want %s", c.name, err, market.CodeOf(err), c.code)
			}
		}
		if len(h.store.records) != 0 || h.rig(0).bids != 0 {
			t.Errorf("%d records, %d bids sent", len(h.store.records), h.rig(0).bids)
		}
	})
}

func TestABidForOneOfferGoesThereAlone(t *testing.T) {
	inHouse(t, two(func(_, dear *testRig) { dear.cheat.refuse = market.NewError(market.CodePaused) }), func(t *testing.T, h *house) {
		list, err := h.agent.Offers(t.Context(), view.OfferQuery{Query: "rig=dear"})
		if err != nil || len(list.Offers) != 1 {
			t.Fatalf("offers: %+v, %v", list, err)
		}
		_, err = h.bid(func(r *view.BidRequest) { r.Query, r.Offer = "", list.Offers[0].ID })
		wantCode(t, err, market.CodePaused)
		if h.rig(1).bids != 0 {
			t.Error("the other rig was asked")
		}
	})
}

func TestAnOfferThatWasRenewedIsFetchedAgain(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		pass(10500 * time.Millisecond) // the index has just been refreshed
		h.rig(0).update(func(o *market.Offer) { o.Prices.Slot = 410_000 })
		l := h.mustBid(nil)
		if l.Price.Micro != 410_000 || h.rig(0).bids != 2 {
			t.Errorf("price %s after %d bids", l.Price.Text, h.rig(0).bids)
		}
	})
}

func TestABidOfTheLastLifeIsSentAgainOrGivenUp(t *testing.T) {
	// interrupted leaves a bid that was stored and sent, and never answered.
	interrupted := func(t *testing.T, h *house) {
		t.Helper()
		h.rig(0).set(func() { h.rig(0).cheat.mute = true })
		go func() { _, _ = h.bid(nil) }()
		pass(5 * time.Second)
		h.down()
		h.rig(0).cut()
		h.rig(0).set(func() { h.rig(0).cheat.mute = false })
		for _, r := range h.store.records {
			if r.State.Refused != nil || r.State.Job != "" {
				t.Fatalf("the bid is not open: %+v", r.State)
			}
		}
	}
	t.Run("in time", func(t *testing.T) {
		inHouse(t, oneRig(func(r *testRig) { r.run = time.Minute }), func(t *testing.T, h *house) {
			interrupted(t, h)
			h.up()
			pass(2 * time.Minute)
			all, err := h.agent.Leases(t.Context(), true)
			if err != nil || len(all) != 1 || !settled(all[0]) {
				t.Errorf("leases: %+v, %v", all, err)
			}
		})
	})
	t.Run("too late", func(t *testing.T) {
		inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
			interrupted(t, h)
			pass(time.Minute)
			h.up()
			pass(time.Second)
			all, err := h.agent.Leases(t.Context(), true)
			if err != nil || len(all) != 1 || all[0].Error == nil || all[0].Error.Code != string(market.CodeHoldExpired) {
				t.Errorf("leases: %+v, %v", all, err)
			}
			if h.rig(0).bids != 0 {
				t.Error("a bid was sent after its time")
			}
		})
	})
}

func TestASignatureThatWasLostIsSentAgain(t *testing.T) {
	inHouse(t, oneRig(func(r *testRig) { r.run = time.Minute }), func(t *testing.T, h *house) {
		h.rig(0).set(func() { h.rig(0).dropAccept = true })
		l := h.mustBid(nil)
		l = h.until(l.ID, "settled", settled)
		if l.BilledMs != 60_000 {
			t.Errorf("%+v", l)
		}
	})
}

func TestAHoldThatRanOutIsNoLease(t *testing.T) {
	inHouse(t, two(func(cheap, _ *testRig) { cheap.expire = true }), func(t *testing.T, h *house) {
		if l := h.mustBid(nil); l.Rig != "dear" {
			t.Errorf("the lease is with %s", l.Rig)
		}
		all, err := h.agent.Leases(t.Context(), true)
		if err != nil || len(all) != 2 || !ended(all[1]) || all[1].Debt != "final" || all[1].Error == nil {
			t.Errorf("leases: %+v, %v", all, err)
		}
		synctest.Wait() // the first rig's connection is wound up beside the second bid
		if h.agent.OpenLeases() != 1 {
			t.Errorf("open leases: %d", h.agent.OpenLeases())
		}
	})
}
