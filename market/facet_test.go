package market_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"haggle/market"
)

func facetText(f market.Facet) string {
	var b strings.Builder
	for _, v := range f.Values {
		fmt.Fprintf(&b, "%s %d/%d; ", v.Clause, v.Offers, v.Slots)
	}
	fmt.Fprintf(&b, "more %d unknown %d", f.More, f.Unknown)
	return b.String()
}

func TestFacetsCountWhatTheRestOfTheQueryLeaves(t *testing.T) {
	row := func(name, country string, price market.Rate, slots ...market.Slot) market.Row {
		o := marketOffer(name, slots...)
		o.Net.Country, o.Prices.Slot = country, price
		return market.Row{Offer: &o}
	}
	rows := []market.Row{
		row("a", "DE", 150_000, marketSlot(0, "RTX_3090", 24576), marketSlot(1, "RTX_4090", 24564)),
		row("b", "DE", 390_000, marketSlot(0, "RTX_4090", 24564), marketSlot(1, "RTX_4090", 24564)),
		row("c", "NL", 400_000, marketSlot(0, "RTX_4090", 24564)),
		row("d", "", 30_000_000, marketSlot(0, "H100", 81559)),
		row("e", "US", 20_000, marketSlot(0, "RTX_3060", 12288)),
	}
	rows[4].Offer.Host.Images = nil
	facets, err := mustParse(t, "gpu_name=RTX_4090 geolocation=DE vram>=8").Facets(rows, []string{"model", "country", "dph", "image", "max_duration", "claim.x"}, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		"gpu_name=RTX_4090 2/3; gpu_name=RTX_3090 1/1; more 0 unknown 0",
		"geolocation=DE 2/3; geolocation=NL 1/1; more 0 unknown 0",
		"dph>=0.10 dph<0.20 1/1; dph>=0.20 dph<0.40 1/2; more 0 unknown 0",
		"image=bench 2/3; image=train 2/3; more 0 unknown 0",
		"max_duration>=1d max_duration<7d 2/3; more 0 unknown 0",
		"more 0 unknown 2",
	} {
		if got := facetText(facets[i]); got != want {
			t.Errorf("%s: %s, want %s", facets[i].Field, got, want)
		}
	}
	all, err := (market.Query{}).Facets(rows, []string{"dph", "geo", "gpu"}, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		"dph<0.05 1/1; dph>=0.10 dph<0.20 1/2; more 3 unknown 0",
		"geolocation=DE 2/4; geolocation=NL 1/1; more 1 unknown 1",
		"gpu_name=RTX_4090 3/4; gpu_name=H100 1/1; more 2 unknown 0",
	} {
		if got := facetText(all[i]); got != want {
			t.Errorf("%s: %s, want %s", all[i].Field, got, want)
		}
	}
	if _, err := (market.Query{}).Facets(rows, []string{"nothing"}, 2); market.CodeOf(err) != market.CodeUnknownField {
		t.Errorf("an unknown field: %v", err)
	}
	if _, err := (market.Query{}).Facets(rows, []string{"num_gpus"}, 2); market.CodeOf(err) != market.CodeUnknownField {
		t.Errorf("num_gpus: %v", err)
	}
}

func TestTheClauseOfAFacetFindsWhatItCounts(t *testing.T) {
	names := []string{}
	for _, f := range market.Fields() {
		if f.Name != "num_gpus" {
			names = append(names, f.Name)
		}
	}
	names = append(names, "claim.feeds")
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.Custom(drawRow), 1, 6).Draw(t, "rows")
		rows[0].Offer.Name = rapid.SampledFrom([]string{`it's "x"`, "a,b", "x y"}).Draw(t, "hostile")
		field := rapid.SampledFrom(names).Draw(t, "field")
		facets, err := (market.Query{}).Facets(rows, []string{field}, 64)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range facets[0].Values {
			q, err := market.ParseQuery(v.Clause)
			if err != nil {
				t.Fatalf("%s: %v", v.Clause, err)
			}
			offers, slots := 0, 0
			for _, r := range rows {
				if m, ok := q.MatchRow(r); ok {
					offers, slots = offers+1, slots+len(m.Slots)
				}
			}
			if offers < v.Offers || slots < v.Slots || v.Offers == 0 {
				t.Fatalf("%s is said to find %d offers and %d slots, and finds %d and %d", v.Clause, v.Offers, v.Slots, offers, slots)
			}
		}
	})
}
