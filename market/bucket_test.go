package market_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"haggle/market"
)

func TestAnnouncesAnOfferInItsBuckets(t *testing.T) {
	o := marketOffer("attic", marketSlot(0, "RTX_4090", 24564), marketSlot(1, "RTX_4090", 24564), marketSlot(2, "H100_sxm", 81559),
		marketSlot(3, "GTX_1060", 6144))
	o.Net.Country = "de"
	want := []string{"any", "memory/24", "memory/80", "model/GTX_1060", "model/H100_SXM", "model/RTX_4090", "region/DE"}
	if diff := cmp.Diff(want, market.Buckets(o)); diff != "" {
		t.Error(diff)
	}
	o.Net.Country = "moon"
	o.Slots = o.Slots[3:]
	if diff := cmp.Diff([]string{"any", "model/GTX_1060"}, market.Buckets(o)); diff != "" {
		t.Error(diff)
	}
}

func TestAsksTheMostSelectiveBuckets(t *testing.T) {
	for _, c := range []struct {
		query string
		want  []string
	}{
		{"", []string{"any"}},
		{"dph<1", []string{"any"}},
		{`geo=DE vram>=24 gpu="rtx 4090"`, []string{"model/RTX_4090"}},
		{"gpu in [RTX_4090,rtx_4090,H100]", []string{"model/H100", "model/RTX_4090"}},
		{"gpu=RTX_40*", []string{"any"}},
		{"gpu!=RTX_4090", []string{"any"}},
		{"gpu notin [RTX_4090]", []string{"any"}},
		{"gpu in [RTX_4090,H*]", []string{"any"}},
		{"vram>=24 geo=de", []string{"region/DE"}},
		{"vram>=24", []string{"memory/24", "memory/48", "memory/80"}},
		{"vram>=20", []string{"memory/16", "memory/24", "memory/48", "memory/80"}},
		{"vram>=80", []string{"memory/80"}},
		{"vram=12 geo!=DE", []string{"memory/12"}},
		{"vram in [16,17,100]", []string{"memory/16", "memory/80"}},
		{"vram>=6", []string{"any"}},
		{"vram<24", []string{"any"}},
		{"gpu=A100 OR vram>=80", []string{"memory/80", "model/A100"}},
		{"gpu=A100 OR dph<1", []string{"any"}},
		{"(gpu=A100 dph<1 OR gpu=H100) geo=DE", []string{"model/A100", "model/H100"}},
		{"gpu in [A,B,C,D,E,F,G,H,I]", []string{"any"}},
		{"geo=moon", []string{"any"}},
		{"geo=D?", []string{"any"}},
		{"gpu=é", []string{"any"}},
	} {
		if diff := cmp.Diff(c.want, mustParse(t, c.query).Buckets()); diff != "" {
			t.Errorf("%q: %s", c.query, diff)
		}
	}
}
