package market_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"haggle/market"
)

const day = int64(86_400_000)

// standingRow returns an offer at 0.40 USD of which a renter knows something.
func standingRow(name string, price market.Rate, s *market.Standing, change func(*market.Offer)) market.Row {
	o := marketOffer(name, marketSlot(0, "RTX_4090", 24564))
	o.Prices.Slot, o.Net.Reach = price, "direct"
	o.Pays = []market.PayMethod{{Name: "card", Settles: market.SettlesInstantly}}
	if change != nil {
		change(&o)
	}
	return market.Row{Offer: &o, Standing: s, Now: 1000 * day}
}

func rankNames(t *testing.T, by string, rows ...market.Row) string {
	t.Helper()
	var list []market.Ranked
	for _, r := range rows {
		m, ok := (market.Query{}).MatchRow(r)
		if !ok {
			t.Fatalf("%s does not match", r.Offer.Name)
		}
		ranked, ok := market.RankedRow(r, m)
		if !ok {
			t.Fatalf("%s has no price", r.Offer.Name)
		}
		list = append(list, ranked)
	}
	if err := market.Rank(list, by); err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(list))
	for i, r := range list {
		names[i] = r.Offer.Name
	}
	return strings.Join(names, " ")
}

func TestWhatANewcomerNeedsStandsFirst(t *testing.T) {
	job := &market.JobShape{Slots: 1, DurationMs: 3_600_000, InMB: 10_000, KeptMB: 10_000, Image: "train"}
	with := func(r market.Row) market.Row { r.Job = job; return r }
	seen := func(ago int64) *market.Standing { return &market.Standing{FirstSeen: 1000*day - ago} }
	rows := []market.Row{
		standingRow("checked", 900_000, &market.Standing{Checked: true}, nil),
		standingRow("known30", 800_000, seen(31*day), nil),
		standingRow("known7", 700_000, seen(8*day), nil),
		with(standingRow("keeps", 400_000, &market.Standing{FirstSeen: 1000 * day, Keeps: true}, func(o *market.Offer) { o.Prices.In = 40_000 })),
		with(standingRow("image", 400_000, seen(0), nil)),
		with(standingRow("bare", 400_000, seen(0), func(o *market.Offer) { o.Host.Images = nil })),
		with(standingRow("dear", 400_001, seen(0), nil)),
		with(standingRow("traffic", 390_000, seen(0), func(o *market.Offer) { o.Prices.In = 40_000 })),
		standingRow("punched", 100_000, nil, func(o *market.Offer) { o.Net.Reach = "punched" }),
		standingRow("relayed", 100_000, &market.Standing{Reached: "relayed"}, nil),
		standingRow("byhand", 10_000, seen(300*day), func(o *market.Offer) { o.Pays[0].Settles = market.SettlesByHand }),
	}
	want := "checked known30 known7 keeps image bare dear traffic punched relayed byhand"
	slices.Reverse(rows)
	if got := rankNames(t, "", rows...); got != want {
		t.Errorf("in the default order\n got %s\nwant %s", got, want)
	}
	if got := rankNames(t, "best", rows[:3]...); got != "punched relayed byhand" {
		t.Errorf("by best: %s", got)
	}
}

func TestAnOrderHasSeveralKeys(t *testing.T) {
	a := standingRow("a", 500_000, nil, nil)
	b := standingRow("b", 400_000, nil, func(o *market.Offer) { o.Slots = append(o.Slots, marketSlot(1, "RTX_4090", 24564)) })
	c := standingRow("c", 300_000, nil, func(o *market.Offer) { o.Claims = []market.Claim{{Name: "feeds", Int: point(int64(2))}} })
	for by, want := range map[string]string{
		"num_gpus-,dph": "b c a", "num_gpus, dph-": "a c b", "price": "c b a", "dph+": "c b a", "claim.feeds,rig-": "c b a", "best": "c b a", "rig-": "c b a",
	} {
		if got := rankNames(t, by, a, b, c); got != want {
			t.Errorf("by %s: %s, want %s", by, got, want)
		}
	}
	for _, by := range []string{"dph,", "dph,nothing", strings.Repeat("dph,", 8) + "dph", "claim."} {
		if err := market.Rank(nil, by); market.CodeOf(err) != market.CodeUnknownField {
			t.Errorf("by %s: %v", by, err)
		}
	}
}

func TestAnOrderIsTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		by := rapid.SampledFrom([]string{"", "best-", "price", "dph-,num_gpus", "total", "start_time-", "claim.feeds", "geo,seen-", "cuda", "image-"}).Draw(t, "by")
		list := make([]market.Ranked, 3)
		for i := range list {
			r := drawRow(t)
			list[i] = market.Ranked{
				Offer: r.Offer, Standing: r.Standing, Job: r.Job, Now: r.Now, Cost: market.Micro(rapid.Int64Range(1, 3).Draw(t, "cost")),
			}
			list[i].Offer.Prices.Currency = rapid.SampledFrom([]string{"USD", "EUR"}).Draw(t, "currency")
		}
		a, b, c := list[0], list[1], list[2]
		compare := func(x, y market.Ranked) int { return market.CompareRows(t, by, x, y) }
		ab, ba, bc, ac := compare(a, b), compare(b, a), compare(b, c), compare(a, c)
		switch {
		case compare(a, a) != 0:
			t.Fatal("an offer is not equal to itself")
		case ab != -ba:
			t.Fatalf("a to b is %d, b to a %d", ab, ba)
		case ab <= 0 && bc <= 0 && ac > 0, ab >= 0 && bc >= 0 && ac < 0:
			t.Fatalf("a to b %d, b to c %d, and a to c %d", ab, bc, ac)
		case ab == 0 && (a.Offer.Rig != b.Offer.Rig || a.Offer.ID != b.Offer.ID):
			t.Fatal("two rigs' offers are equal")
		}
	})
}
