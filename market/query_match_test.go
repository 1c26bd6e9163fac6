package market_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"haggle/market"
)

func TestAsksEachSlotOfAnOffer(t *testing.T) {
	leased := marketSlot(3, "RTX_4090", 24564)
	leased.LeasedUntil = 1
	screen := marketSlot(2, "RTX_4090", 24564)
	screen.Display = point(true)
	o := marketOffer("attic", marketSlot(0, "RTX_3060", 12288), marketSlot(1, "RTX_4090", 24564), screen, leased)
	for _, c := range []struct {
		query string
		want  []uint8 // nil where the offer does not match
	}{
		{"", []uint8{0, 1, 2}},
		{"gpu_name=RTX_4090", []uint8{1, 2}},
		{`gpu_name="rtx 4090"`, []uint8{1, 2}},
		{"gpu_name=RTX_40*", []uint8{1, 2}},
		{"gpu_name=*_??60", []uint8{0}},
		{"gpu_name=RTX", nil},
		{"gpu_name!=*4090", []uint8{0}},
		{"gpu_name in [A100,rtx_3*]", []uint8{0}},
		{"gpu_name notin [A100,rtx_3*]", []uint8{1, 2}},
		{"gpu_name=RTX_4090 display=false", []uint8{1}},
		{"gpu_name=RTX_3060 OR display=true", []uint8{0, 2}},
		{"gpu_name=RTX_3060 gpu_ram>=24", nil},
		{"gpu_ram>=24", []uint8{1, 2}},
		{"gpu_ram=24GiB", []uint8{1, 2}},
		{"gpu_ram>24", nil},
		{"num_gpus=3", []uint8{0, 1, 2}},
		{"num_gpus>3", nil},
		{"num_gpus>=2 gpu_name=RTX_4090", []uint8{1, 2}},
		{"num_gpus>=3 gpu_name=RTX_4090", nil},
		{"num_gpus in [1,3] gpu_name=RTX_4090", nil},
		{"num_gpus=0", nil},
		{"compute_cap>=8.9 pcie_gen>=4 gpu_power<=450W ecc=false gpu_vendor=nvidia", []uint8{0, 1, 2}},
		{"compute_cap>8.9", nil},
		{"dph<0.4", nil},
		{"dph<=0.4 currency=usd disk_price=0.0001", []uint8{0, 1, 2}},
		{"currency=EUR", nil},
		{"cpu_threads>=8 cpu_ram=32 disk_free>=500GB", []uint8{0, 1, 2}},
		{"disk_free>=500GiB", nil},
		{"driver>=550 driver<551 driver=550.54 driver!=550.53", []uint8{0, 1, 2}},
		{"driver>550", nil},
		{"driver>=550.54.15.1", nil},
		{"cuda<=12", []uint8{0, 1, 2}},
		{"cuda in [11,13]", nil},
		{"geolocation in [FR,DE]", []uint8{0, 1, 2}},
		{"geolocation notin [FR,DE]", nil},
		{"reach=direct isolation!=none egress=true simulated=false", []uint8{0, 1, 2}},
		{"simulated=true", nil},
		{"image=bench", []uint8{0, 1, 2}},
		{"image=ben", nil},
		{"image!=bench", nil},
		{"image notin [a*,c]", []uint8{0, 1, 2}},
		{"max_duration>=1d min_duration<=1m", []uint8{0, 1, 2}},
		{"max_duration>1d", nil},
		{"rig=ATTIC", []uint8{0, 1, 2}},
		{"rig_key=" + marketKey(1).String(), []uint8{0, 1, 2}},
		{"rig_key=" + marketKey(2).String(), nil},
	} {
		m, ok := mustParse(t, c.query).Match(o)
		if ok != (c.want != nil) || cmp.Diff(c.want, m.Slots) != "" {
			t.Errorf("%q: slots %v, %t, want %v", c.query, m.Slots, ok, c.want)
		}
	}
}

func TestWhatAnOfferDoesNotSayNeverMatches(t *testing.T) {
	s := marketSlot(0, "RTX_4090", 0)
	s.Compute, s.PCIeGen, s.PowerLimit, s.ECC, s.Display = nil, nil, nil, nil, nil
	o := marketOffer("attic", s)
	o.Net.Country, o.Host.Driver, o.Host.CUDA = "", "", "n/a"
	for _, clause := range []string{
		"gpu_ram<8", "gpu_ram!=8", "compute_cap=0", "compute_cap!=8", "pcie_gen<4", "pcie_gen notin [4]", "gpu_power<500", "gpu_power!=0",
		"ecc=false", "ecc!=true", "display=false", "display!=true", "geolocation!=US", "geolocation=*", "geolocation notin [US]",
		"driver<999", "driver!=1", "cuda<999", "cuda!=1",
	} {
		if _, ok := mustParse(t, clause).Match(o); ok {
			t.Errorf("%q matches an offer that does not say", clause)
		}
	}
	o.Host.Images = nil
	if _, ok := mustParse(t, "image!=train").Match(o); !ok {
		t.Error("an offer that lists no image is known not to have one")
	}
}

func TestAMatchNeedsAFreeSlotOfAnOpenOffer(t *testing.T) {
	o := marketOffer("attic", marketSlot(0, "RTX_4090", 24564))
	o.State = market.OfferWithdrawn
	if _, ok := (market.Query{}).Match(o); ok {
		t.Error("a withdrawn offer matches")
	}
	o.State = market.OfferOpen
	o.Slots[0].LeasedUntil = 1
	if _, ok := (market.Query{}).Match(o); ok {
		t.Error("an offer without a free slot matches")
	}
	if _, ok := (market.Query{}).Match(market.Offer{}); ok {
		t.Error("an offer without slots matches")
	}
}

func TestCardsAreCountedAsTheyAreSold(t *testing.T) {
	for _, c := range []struct {
		mib   int64
		query string
	}{
		{24564, "gpu_ram=24"},
		{12288, "gpu_ram=12"},
		{11264, "gpu_ram=11"},
		{16376, "gpu_ram=16"},
		{81559, "gpu_ram=80"},
		{46068, "gpu_ram=45"},
		{4864, "gpu_ram=5"},
		{512, "gpu_ram=512MB"},
	} {
		if _, ok := mustParse(t, c.query).Match(marketOffer("attic", marketSlot(0, "X", c.mib))); !ok {
			t.Errorf("a card of %d MiB does not match %s", c.mib, c.query)
		}
	}
}

func TestAMatchAllocatesOnlyItsSlots(t *testing.T) {
	q := mustParse(t, "gpu_name=RTX_40* (geolocation=US OR reach=direct image!=x) driver>=550 dph<0.6 num_gpus>=1")
	o := marketOffer("attic", marketSlot(0, "RTX_4090", 24564))
	if n := testing.AllocsPerRun(100, func() { q.Match(o) }); n > 1 {
		t.Errorf("a match allocates %v times", n)
	}
	o.Prices.Slot = 900_000
	if n := testing.AllocsPerRun(100, func() { q.Match(o) }); n > 0 {
		t.Errorf("a miss allocates %v times", n)
	}
}

func TestAMatchOfARowAllocatesOnlyItsSlots(t *testing.T) {
	r := fullRow()
	r.Job = &market.JobShape{Slots: 1, DurationMs: 3_600_000, Image: "train"}
	q := mustParse(t, "seen<7d total<=5 nvlink=true claim.paint=red start_time<=1m residency_proof>=address dph_per_tflop<1 image_digest=sha256:*")
	if _, ok := q.MatchRow(r); !ok {
		t.Fatal("the row does not match")
	}
	if n := testing.AllocsPerRun(100, func() { q.MatchRow(r) }); n > 1 {
		t.Errorf("a match allocates %v times", n)
	}
	r.Offer.Slots[0].LeasedUntil = 1
	if n := testing.AllocsPerRun(100, func() { q.MatchRow(r) }); n > 0 {
		t.Errorf("a miss allocates %v times", n)
	}
}

func BenchmarkMatchRow(b *testing.B) {
	q := mustParse(b, "gpu_name=RTX_40* seen<7d total<=5 rtt<=40 dph=0.2..0.6")
	r := fullRow()
	r.Job = &market.JobShape{Slots: 1, DurationMs: 3_600_000}
	b.ReportAllocs()
	for b.Loop() {
		q.MatchRow(r)
	}
}

func BenchmarkMatch(b *testing.B) {
	q := mustParse(b, "gpu_name=RTX_40* num_gpus>=2 gpu_ram>=24 dph<0.6 geolocation in [DE,NL]")
	models := []string{"RTX_4090", "RTX_3060", "H100"}
	offers := make([]market.Offer, 100_000)
	for i := range offers {
		m := models[i%len(models)]
		offers[i] = marketOffer("attic", marketSlot(0, m, 24564), marketSlot(1, m, 24564), marketSlot(2, m, 24564), marketSlot(3, m, 24564))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		q.Match(offers[i%len(offers)])
	}
}
