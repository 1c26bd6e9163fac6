package api_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haggle/internal/view"
	"haggle/market"
)

func TestEveryQuestionAboutOffersArrivesAndComesBack(t *testing.T) {
	f := &fakeAgent{}
	c, _ := serveAgent(t, f)
	job := view.JobShape{GPUs: 2, DurationMs: 7_200_000, DiskMB: 3, InMB: 4, OutMB: 5, Image: "a/b:c", ImageBytes: 6}
	asked := view.OfferQuery{Query: "gpu_name=* dph<0.5", Sort: "dph-,rtt", Explain: true, Facets: "gpu_name,country", Limit: 7, Job: job}
	budget := view.PlanRequest{Query: "@cheap", BudgetMicro: 5_000_000, Currency: "EUR", GPUs: 2, DurationMs: 9, DiskMB: 3, InMB: 4, OutMB: 5, Image: "i", ImageBytes: 6}
	list, _ := new(fakeAgent).Offers(t.Context(), asked)
	plan, _ := new(fakeAgent).Plan(t.Context(), budget)
	run(t, f.seen, []step{
		{fmt.Sprintf("offers %+v", asked), func(ctx context.Context) (any, error) { return of(c.Offers(ctx, asked)) }, list},
		{fmt.Sprintf("offer a rig/ö? %+v", job), func(ctx context.Context) (any, error) { return of(c.LookAt(ctx, "a rig/ö?", job)) }, offer("a rig/ö?")},
		{fmt.Sprintf("offer aa %+v", view.JobShape{}), func(ctx context.Context) (any, error) { return of(c.Offer(ctx, "aa")) }, offer("aa")},
		{fmt.Sprintf("plan %+v", budget), func(ctx context.Context) (any, error) { return of(c.Plan(ctx, budget)) }, plan},
		{"queries", func(ctx context.Context) (any, error) { return of(c.SavedQueries(ctx)) }, []view.SavedQuery{}},
		{"save cheap dph<0.5", func(ctx context.Context) (any, error) { return of(c.SaveQuery(ctx, "cheap", "dph<0.5")) }, view.SavedQuery{Name: "cheap", Query: "dph<0.5"}},
		{"remove query cheap", func(ctx context.Context) (any, error) { return only(c.RemoveQuery(ctx, "cheap")) }, nil},
	})
}

func TestAWatchOfOffersTellsEveryChangeAndEndsWithTheAgent(t *testing.T) {
	f := &fakeAgent{}
	c, _ := serveAgent(t, f)
	changes, err := c.WatchOffers(t.Context(), view.OfferQuery{Query: "dph<1"})
	if err != nil {
		t.Fatal(err)
	}
	var got []view.OfferChange
	for change := range changes {
		got = append(got, change)
	}
	fake, _ := new(fakeAgent).WatchOffers(t.Context(), view.OfferQuery{})
	var want []view.OfferChange
	for change := range fake {
		want = append(want, change)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if calls := f.seen(); !slices.Equal(calls, []string{fmt.Sprintf("watch %+v", view.OfferQuery{Query: "dph<1"})}) {
		t.Errorf("%q", calls)
	}
}

func TestAWatchOfAQueryThatMakesNoSenseIsRefused(t *testing.T) {
	f := &fakeAgent{err: market.NewError(market.CodeUnknownField, "field", "colour", "nearest", "country")}
	c, _ := serveAgent(t, f)
	if _, err := c.WatchOffers(t.Context(), view.OfferQuery{Query: "colour=red"}); market.CodeOf(err) != market.CodeUnknownField {
		t.Errorf("it is told %v", err)
	}
}
