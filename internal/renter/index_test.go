package renter_test

import (
	"testing"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

func (h *house) offers(query string) view.OfferList {
	h.t.Helper()
	list, err := h.agent.Offers(h.t.Context(), view.OfferQuery{Query: query, Explain: true})
	if err != nil {
		h.t.Fatal(err)
	}
	return list
}

func TestOffersAnswersFromWhatTheRigsSay(t *testing.T) {
	inHouse(t, two(nil), func(t *testing.T, h *house) {
		list := h.offers("dph<0.40")
		if list.Known != 2 || list.Rigs != 2 || len(list.Offers) != 1 || list.Offers[0].Rig != "cheap" || !list.Offers[0].Simulated {
			t.Errorf("list: %+v", list)
		}
		f := list.Funnel
		if f == nil || f.Known != 2 || len(f.Steps) < 2 || f.Steps[0].Left != 1 || f.Nearest == "" {
			t.Errorf("funnel: %+v", f)
		}
		detail, err := h.agent.Offer(t.Context(), list.Offers[0].ID)
		if err != nil || len(detail.SlotDetail) != 2 {
			t.Errorf("offer: %+v, %v", detail, err)
		}
		if byName, err := h.agent.Offer(t.Context(), "cheap"); err != nil || byName.Hash != detail.Hash {
			t.Errorf("offer by name: %+v, %v", byName, err)
		}
		_, err = h.agent.Offer(t.Context(), "nobody")
		wantCode(t, err, market.CodeOfferUnknown)
	})
}

func TestAQueryThatMakesNoSenseAsksNobody(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		pass(time.Second)
		var before, after int
		h.net.set(func() { before = h.net.fetches[h.rig(0).self] })
		pass(3 * time.Second)
		_, err := h.agent.Offers(t.Context(), view.OfferQuery{Query: "colour=red"})
		wantCode(t, err, market.CodeUnknownField)
		_, err = h.agent.Offers(t.Context(), view.OfferQuery{Sort: "colour"})
		wantCode(t, err, market.CodeUnknownField)
		if h.net.set(func() { after = h.net.fetches[h.rig(0).self] }); after != before {
			t.Errorf("%d questions for nothing", after-before)
		}
	})
}

func TestNobodyToAskIsSaidByName(t *testing.T) {
	inHouse(t, rigs(), func(t *testing.T, h *house) {
		list := h.offers("")
		if len(list.Offers) != 0 || list.Offers == nil {
			t.Errorf("offers of an empty market: %+v", list)
		}
		_, err := h.bid(nil)
		wantCode(t, err, market.CodeNoOffers)
		h.net.set(func() {
			h.net.unready = market.NewError(market.CodeNoPeers, "network", testNetwork, "reason", "no bootstrap is configured")
		})
		pass(10 * time.Second)
		_, err = h.agent.Offers(t.Context(), view.OfferQuery{})
		wantCode(t, err, market.CodeNoPeers)
	})
}

func TestANewPriceIsSeenAndAWithdrawnOfferIsGone(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		if list := h.offers(""); list.Offers[0].Price.Micro != 400_000 {
			t.Fatalf("list: %+v", list)
		}
		pass(3 * time.Second)
		h.rig(0).update(func(o *market.Offer) { o.Prices.Slot = 350_000 })
		if list := h.offers(""); len(list.Offers) != 1 || list.Offers[0].Price.Micro != 350_000 {
			t.Errorf("list: %+v", list)
		}
		pass(3 * time.Second)
		h.rig(0).update(func(o *market.Offer) { o.State = market.OfferWithdrawn })
		if list := h.offers(""); len(list.Offers) != 0 {
			t.Errorf("list: %+v", list)
		}
	})
}

func TestAnOfferIsFoundByTheIdThatItHadBeforeItWasRenewed(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		seen := h.offers("").Offers[0]
		reprice := func(price market.Rate) {
			pass(3 * time.Second)
			h.rig(0).update(func(o *market.Offer) { o.Prices.Slot = price })
			h.offers("")
		}
		reprice(market.Rate(seen.Price.Micro) - 1)
		cheaper, err := h.agent.Offer(t.Context(), seen.ID)
		if err != nil || cheaper.ID == seen.ID || cheaper.Price.Micro >= seen.Price.Micro {
			t.Errorf("the renewed offer: %+v, %v", cheaper, err)
		}
		// Nobody gets an offer for more than what the list said beside its id.
		reprice(market.Rate(seen.Price.Micro) + 1)
		_, err = h.agent.Offer(t.Context(), seen.ID)
		wantCode(t, err, market.CodeOfferUnknown)
	})
}

func TestAnOlderStatementDoesNotReplaceANewerOne(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		old := h.rig(0).current()
		pass(3 * time.Second)
		h.rig(0).update(func(o *market.Offer) { o.Prices.Slot = 450_000 })
		h.offers("")
		h.net.set(func() { h.net.fetch = func(market.Key) ([][]byte, error) { return old, nil } })
		pass(3 * time.Second)
		if list := h.offers(""); len(list.Offers) != 1 || list.Offers[0].Price.Micro != 450_000 {
			t.Errorf("list: %+v", list)
		}
	})
}

func TestARigThatContradictsItselfIsLeftOutForAWhile(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		h.offers("")
		r := h.rig(0)
		r.mu.Lock()
		r.offer.Prices.Slot++ // the same number, other bytes
		r.sign()
		r.mu.Unlock()
		pass(3 * time.Second)
		if list := h.offers(""); len(list.Offers) != 0 {
			t.Errorf("after the contradiction: %+v", list)
		}
		pass(5 * time.Minute)
		if list := h.offers(""); len(list.Offers) != 0 {
			t.Errorf("five minutes after: %+v", list)
		}
		pass(6 * time.Minute)
		if list := h.offers(""); len(list.Offers) != 1 {
			t.Errorf("after both statements expired: %+v", list)
		}
	})
}

func TestAnOfferOfAnotherRigIsNotBelieved(t *testing.T) {
	inHouse(t, two(nil), func(t *testing.T, h *house) {
		foreign := h.rig(0).current()
		h.down()
		h.net.set(func() { h.net.fetch = func(market.Key) ([][]byte, error) { return foreign, nil } })
		h.up() // an agent that has asked nobody before
		if list := h.offers(""); len(list.Offers) != 1 {
			t.Errorf("list: %+v", list)
		}
	})
}

func TestARigThatFallsSilentIsNoLongerListed(t *testing.T) {
	inHouse(t, two(nil), func(t *testing.T, h *house) {
		h.offers("")
		h.rig(0).setDown(true)
		pass(45 * time.Second)
		list := h.offers("")
		if len(list.Offers) != 1 || list.Rigs != 1 || list.Reason == "" {
			t.Errorf("list: %+v", list)
		}
		h.rig(0).setDown(false)
		pass(6 * time.Minute)
		if list := h.offers(""); len(list.Offers) != 2 || list.Reason != "" {
			t.Errorf("after it came back: %+v", list)
		}
	})
}

func TestKnownRigsAreAskedWithoutLookingThemUpAgain(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		pass(10 * time.Minute)
		h.net.mu.Lock()
		defer h.net.mu.Unlock()
		finds, fetches := h.net.finds["any"], h.net.fetches[h.rig(0).self]
		if finds > 25 || fetches < 55 {
			t.Errorf("in 10 minutes: %d lookups, %d questions", finds, fetches)
		}
	})
}
