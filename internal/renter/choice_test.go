package renter_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

func TestOffersArePricedForMyJobAndCounted(t *testing.T) {
	inHouse(t, two(nil), func(t *testing.T, h *house) {
		list, err := h.agent.Offers(t.Context(), view.OfferQuery{
			Sort: "total-", Limit: 1, Facets: "gpu_name, reach", Job: view.JobShape{GPUs: 2, DurationMs: 7_200_000, Image: "train"},
		})
		if err != nil || len(list.Offers) != 1 || list.Matches != 2 || list.About < 2 || list.Known != 2 {
			t.Fatalf("got %+v, %v", list, err)
		}
		if o := list.Offers[0]; o.Rig != "dear" || o.Total.Text != "2.00" || o.StartS == nil || *o.StartS != 0 || o.Why == nil || o.Source != market.SourceOwner {
			t.Errorf("got %+v", o)
		}
		if f := list.Facets; len(f) != 2 || f[0].Values[0].Clause != "gpu_name=RTX_4090" || f[0].Values[0].Offers != 2 {
			t.Errorf("got %+v", f)
		}
		if none := h.offers("num_gpus>=3"); len(none.Offers) != 0 || none.Funnel.Nearest == "" {
			t.Errorf("got %+v", none)
		}
		many, err := h.agent.Offers(t.Context(), view.OfferQuery{Query: "dph<9 OR dph<8", Explain: true, Job: view.JobShape{GPUs: 3}})
		if err != nil || len(many.Offers) != 0 || many.Funnel == nil || many.Funnel.Steps[len(many.Funnel.Steps)-1].Clause != "num_gpus>=3" {
			t.Errorf("the cards that a job needs are no hidden clause: %+v, %v", many, err)
		}
		_, err = h.agent.Offers(t.Context(), view.OfferQuery{Facets: "colour"})
		wantCode(t, err, market.CodeUnknownField)
		_, err = h.agent.Offers(t.Context(), view.OfferQuery{Job: view.JobShape{InMB: -1}})
		wantCode(t, err, market.CodeBadRequest)
		o, err := h.agent.LookAt(t.Context(), "dear", view.JobShape{GPUs: 2, DurationMs: 7_200_000})
		if err != nil || o.Total.Text != "2.00" || len(o.SlotDetail) != 2 || o.AgeS == nil {
			t.Errorf("got %+v, %v", o, err)
		}
	})
}

func TestAPlanSpendsABudgetInThreeWays(t *testing.T) {
	inHouse(t, two(nil), func(t *testing.T, h *house) {
		p, err := h.agent.Plan(t.Context(), view.PlanRequest{Query: "gpu_name=RTX_4090", BudgetMicro: 1_200_000, Image: "train"})
		if err != nil || p.Matching != 2 || p.Fitting != 2 || p.Cheapest == nil || p.Quickest == nil || p.Safest == nil {
			t.Fatalf("got %+v, %v", p, err)
		}
		if c := p.Cheapest; c.Offer.Rig != "cheap" || c.RunMs != 4*3_600_000 || c.Total.Text != "1.20" || c.Offer.Total == nil || c.Why == "" {
			t.Errorf("got %+v", c)
		}
		p, err = h.agent.Plan(t.Context(), view.PlanRequest{BudgetMicro: 1_000_000, DurationMs: 36_000_000})
		if err != nil || p.Cheapest != nil || p.Nearest == nil || p.Nearest.Offer == nil || p.Nearest.Offer.Rig != "cheap" {
			t.Errorf("got %+v, %v", p, err)
		}
		p, err = h.agent.Plan(t.Context(), view.PlanRequest{Query: "gpu_name=H100", BudgetMicro: 1_000_000})
		if err != nil || p.Nearest == nil || p.Nearest.Funnel == nil || p.Nearest.Funnel.Nearest == "" {
			t.Errorf("got %+v, %v", p, err)
		}
		_, err = h.agent.Plan(t.Context(), view.PlanRequest{})
		wantCode(t, err, market.CodeBadRequest)
	})
}

func TestASavedQueryStandsForItsTextWhereverOneIsTaken(t *testing.T) {
	inHouse(t, two(nil), func(t *testing.T, h *house) {
		ctx := t.Context()
		if q, err := h.agent.SaveQuery(ctx, "low", "  dph<0.40 OR dph<0.10 "); err != nil || q.Query != "dph<0.40 OR dph<0.10" {
			t.Fatalf("got %+v, %v", q, err)
		}
		if _, err := h.agent.SaveQuery(ctx, "high", "dph>0.40"); err != nil {
			t.Fatal(err)
		}
		if _, err := h.agent.SaveQuery(ctx, "high", "dph>=0.50"); err != nil {
			t.Fatal(err)
		}
		h.down()
		h.up() // they outlive the agent
		list, err := h.agent.SavedQueries(ctx)
		if err != nil || !slices.Equal(list, []view.SavedQuery{{Name: "high", Query: "dph>=0.50"}, {Name: "low", Query: "dph<0.40 OR dph<0.10"}}) {
			t.Errorf("got %+v, %v", list, err)
		}
		if o := h.offers("@low"); len(o.Offers) != 1 || o.Offers[0].Rig != "cheap" {
			t.Errorf("got %+v", o)
		}
		if o := h.offers("@low @high"); len(o.Offers) != 0 {
			t.Errorf("got %+v", o)
		}
		if l := h.mustBid(func(r *view.BidRequest) { r.Query = "@high" }); l.Rig != "dear" {
			t.Errorf("got %+v", l)
		}
		if err := h.agent.RemoveQuery(ctx, "low"); err != nil {
			t.Error(err)
		}
		wantCode(t, h.agent.RemoveQuery(ctx, "low"), market.CodeSavedUnknown)
		_, err = h.agent.Offers(ctx, view.OfferQuery{Query: "@low"})
		wantCode(t, err, market.CodeSavedUnknown)
		for query, code := range map[string]market.Code{"": market.CodeBadRequest, "colour=red": market.CodeUnknownField} {
			_, err := h.agent.SaveQuery(ctx, "bad", query)
			wantCode(t, err, code)
		}
		_, err = h.agent.SaveQuery(ctx, "BAD", "dph<1")
		wantCode(t, err, market.CodeBadSaved)
		_, err = h.agent.SaveQuery(ctx, "loop", "@high")
		if err == nil {
			t.Error("a saved query names another")
		}
	})
}

// next returns the next change of a watch, within a minute of virtual time.
func next(t *testing.T, changes <-chan view.OfferChange) view.OfferChange {
	t.Helper()
	select {
	case c, ok := <-changes:
		if !ok {
			t.Fatal("the watch is over")
		}
		return c
	case <-time.After(time.Minute):
		t.Fatal("nothing changed within a minute")
	}
	return view.OfferChange{}
}

func TestAWatchTellsWhatIsNewCheaperTakenAndGone(t *testing.T) {
	inHouse(t, two(nil), func(t *testing.T, h *house) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, err := h.agent.WatchOffers(ctx, view.OfferQuery{Query: "colour=red"})
		wantCode(t, err, market.CodeUnknownField)
		changes, err := h.agent.WatchOffers(ctx, view.OfferQuery{Query: "dph<0.45"})
		if err != nil {
			t.Fatal(err)
		}
		want := func(change, rig, was string) {
			t.Helper()
			c := next(t, changes)
			if c.Change != change || c.Offer.Rig != rig || (c.Was == nil) != (was == "") || c.Was != nil && c.Was.Text != was {
				t.Errorf("%s of %s, was %v; want %s of %s", c.Change, c.Offer.Rig, c.Was, change, rig)
			}
		}
		want(view.OfferHere, "cheap", "")
		price := func(rate market.Rate) func(*market.Offer) {
			return func(o *market.Offer) { o.Prices.Slot = rate }
		}
		h.called("dear").update(price(440_000))
		want(view.OfferNew, "dear", "")
		h.called("dear").update(price(420_000))
		want(view.OfferCheaper, "dear", "0.44")
		h.called("dear").update(func(o *market.Offer) { o.Slots[0].LeasedUntil = time.Now().Add(time.Hour).UnixMilli() })
		want(view.OfferTaken, "dear", "")
		h.called("dear").update(price(430_000))
		want(view.OfferDearer, "dear", "0.42")
		h.called("dear").update(price(900_000))
		want(view.OfferGone, "dear", "")
		cancel()
		if _, ok := <-changes; ok {
			t.Error("it goes on after the end")
		}
	})
}

// called returns the rig with a name.
func (h *house) called(name string) *testRig {
	h.t.Helper()
	for i := range h.net.order {
		if r := h.rig(i); r.offer.Name == name {
			return r
		}
	}
	h.t.Fatalf("there is no rig %s", name)
	return nil
}

func TestABidGoesOnlyWhereItsJobMayRun(t *testing.T) {
	lands := two(nil)
	made := func() []*testRig {
		list := lands()
		for i, country := range []string{"DE", "FR"} {
			list[i].offer.Net.Country = country
			list[i].sign()
		}
		return list
	}
	inHouse(t, made, func(t *testing.T, h *house) {
		at := func(countries string, level market.ResidencyLevel) (view.Lease, error) {
			return h.bid(func(r *view.BidRequest) {
				r.Residency = &view.Residency{Countries: []string{countries}, Level: level}
			})
		}
		home := map[market.Key]string{h.rig(0).self: "DE", h.rig(1).self: "NL"}
		h.down()
		h.net.set(func() { h.net.path = "direct" })
		h.country = func(rig market.Key) string { return home[rig] }
		h.up()
		_, err := at("IT", "")
		wantCode(t, err, market.CodeNoPlace)
		_, err = at("FR", market.ResidencyAddress)
		wantCode(t, err, market.CodeUnproven)
		_, err = at("DE", market.ResidencyRoundTrip)
		wantCode(t, err, market.CodeUnproven)
		_, err = h.bid(func(r *view.BidRequest) {
			r.Query, r.Offer, r.Residency = "", h.rig(0).offer.Name, &view.Residency{Countries: []string{"FR"}}
		})
		wantCode(t, err, market.CodeResidency)
		_, err = at("Germany", "")
		if err == nil {
			t.Error("a country has two letters")
		}
		l, err := at("de", market.ResidencyAddress)
		if err != nil || l.Rig != h.rig(0).offer.Name || l.Place == nil || !slices.Equal(l.Place.Countries, []string{"DE"}) || l.Place.Level != market.ResidencyAddress {
			t.Errorf("got %+v, %v", l.Place, err)
		}
	})
}
