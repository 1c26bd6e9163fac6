package api_test

import (
	"context"

	"haggle/internal/view"
	"haggle/market"
)

func (f *fakeAgent) Offers(_ context.Context, q view.OfferQuery) (view.OfferList, error) {
	return view.OfferList{
		Offers: []view.Offer{offer("aa"), offer("bb")}, Known: 2, Matches: 2, About: 5000, Reading: true,
		Funnel: &view.Funnel{Known: 2, Steps: []view.FunnelStep{{Clause: "dph<1", Left: 2}}},
		Facets: []view.Facet{{Field: "gpu_name", Values: []market.FacetValue{{Clause: "gpu_name=H100", Value: "H100", Offers: 1, Slots: 2}}}},
	}, f.note("offers %+v", q)
}

func (f *fakeAgent) LookAt(_ context.Context, id string, job view.JobShape) (view.Offer, error) {
	return offer(id), f.note("offer %s %+v", id, job)
}

func (f *fakeAgent) Plan(_ context.Context, r view.PlanRequest) (view.Plan, error) {
	start := int64(7)
	return view.Plan{
		Budget: view.MoneyOf(5_000_000, "USD"), Matching: 2, Fitting: 1,
		Cheapest: &view.Choice{Offer: offer("aa"), Total: view.MoneyOf(1, "USD"), StartMs: &start, Why: "it is"},
	}, f.note("plan %+v", r)
}

func (f *fakeAgent) WatchOffers(_ context.Context, q view.OfferQuery) (<-chan view.OfferChange, error) {
	changes := make(chan view.OfferChange, 2)
	changes <- view.OfferChange{Change: view.OfferHere, AtMs: 1, Offer: offer("aa")}
	was := view.MoneyOf(9, "USD")
	changes <- view.OfferChange{Change: view.OfferCheaper, AtMs: 2, Offer: offer("aa"), Was: &was}
	close(changes)
	return changes, f.note("watch %+v", q)
}

func (f *fakeAgent) SavedQueries(context.Context) ([]view.SavedQuery, error) {
	return nil, f.note("queries")
}

func (f *fakeAgent) SaveQuery(_ context.Context, name, query string) (view.SavedQuery, error) {
	return view.SavedQuery{Name: name, Query: query}, f.note("save %s %s", name, query)
}

func (f *fakeAgent) RemoveQuery(_ context.Context, name string) error {
	return f.note("remove query %s", name)
}
