package market_test

import (
	"strings"
	"testing"

	"haggle/market"
)

func TestSortsOffersByAnyField(t *testing.T) {
	offer := func(name string, cost market.Micro, slots ...market.Slot) market.Ranked {
		o := marketOffer(name, slots...)
		r := market.Ranked{Offer: &o, Cost: cost}
		for _, s := range slots {
			r.Match.Slots = append(r.Match.Slots, s.Index)
		}
		return r
	}
	a := offer("a", 200, marketSlot(0, "RTX_4090", 24564))
	b := offer("b", 100, marketSlot(0, "RTX_3060", 12288), marketSlot(1, "H100", 81559))
	c := offer("c", 200, marketSlot(0, "L40S", 46068))
	d := offer("d", 50, marketSlot(0, "rtx_4070", 12288))
	e := offer("e", 200, marketSlot(0, "RTX_4090", 24564), marketSlot(5, "H100", 81559))
	e.Match.Slots = []uint8{0}
	c.Offer.Net.Country, c.Offer.Host.CUDA = "", "12.10"
	a.Offer.Net.Country = "AT"
	d.Offer.Prices.Currency, d.Offer.Prices.Slot = "ZZZ", 1
	b.Offer.Prices.Slot = 900_000
	c.Offer.Host.Images = nil
	for _, test := range []struct{ by, want string }{
		{"", "b c a e d"},
		{"price", "b c a e d"},
		{"price-", "c a e b d"},
		{"dph", "c a e b d"},
		{"dph-", "b c a e d"},
		{"gpu_ram", "b d a e c"},
		{"vram-", "b c a e d"},
		{"gpu_name", "b c d a e"},
		{"num_gpus-", "b c a e d"},
		{"geolocation", "a b e d c"},
		{"geo-", "b e d a c"},
		{"cuda-", "c b a e d"},
		{"rig-", "e d c b a"},
		{"image", "c b a e d"},
		{"rig_key", "b c a e d"},
	} {
		list := []market.Ranked{e, d, c, b, a}
		if err := market.SortOffers(list, test.by); err != nil {
			t.Errorf("%q: %v", test.by, err)
		}
		var names []string
		for _, r := range list {
			names = append(names, r.Offer.Name)
		}
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("by %q: %s, want %s", test.by, got, test.want)
		}
	}
}

func TestRefusesToSortByAnUnknownField(t *testing.T) {
	for by, nearest := range map[string]string{"prise": "price", "dphh-": "dph", "-": ""} {
		err := market.SortOffers(nil, by)
		if market.CodeOf(err) != market.CodeUnknownField || nearest != "" && market.Public(err).Arg("nearest") != nearest {
			t.Errorf("by %q: %v, nearest %q", by, err, market.Public(err).Arg("nearest"))
		}
	}
}
