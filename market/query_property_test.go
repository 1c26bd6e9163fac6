package market_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"haggle/market"
)

// drawClause draws a clause that is well formed, over few values so that it often holds.
func drawClause(t *rapid.T) string {
	pick := func(words ...string) string { return rapid.SampledFrom(words).Draw(t, "word") }
	order := func() string { return pick("<", "<=", "=", "==", "!=", ">", ">=") }
	return pick(
		"gpu_name"+pick("=", "!=")+pick("RTX_4090", "'rtx 3060'", "RTX_*", "H100"),
		"gpu "+pick("in", "notin")+" [RTX_4090, h100]",
		"vram "+order()+" "+pick("6", "8", "12GB", "24", "48", "80GiB"),
		"vram in ["+pick("8,12", "24,80", "2,24")+"]",
		"gpu_power"+order()+pick("450W", "0.3kW"),
		"cc"+order()+pick("8.9", "9"),
		"dph"+order()+pick("0.4", "0.39", "1"),
		"geo"+pick("=", "!=")+pick("DE", "us", "D?"),
		"geo "+pick("in", "notin")+" [DE,US]",
		"max_duration"+order()+pick("1d", "30m", "3600s"),
		"cuda"+order()+pick("12", "12.4", "13.0"),
		"ecc"+pick("=", "!=")+pick("true", "false"),
		"image"+pick("=", "!=")+pick("train", "x"),
	)
}

func drawQuery(t *rapid.T, depth int) string {
	var b strings.Builder
	for i := range rapid.IntRange(1, 3).Draw(t, "clauses") {
		if i > 0 {
			b.WriteString(rapid.SampledFrom([]string{" ", "  ", " OR ", "|"}).Draw(t, "joint"))
		}
		if depth > 0 && rapid.Bool().Draw(t, "group") {
			b.WriteString("(" + drawQuery(t, depth-1) + ")")
		} else {
			b.WriteString(drawClause(t))
		}
	}
	return b.String()
}

func drawOffer(t *rapid.T) market.Offer {
	var slots []market.Slot
	for i := range rapid.IntRange(1, 4).Draw(t, "slots") {
		card := rapid.SampledFrom([]struct {
			model string
			mib   int64
		}{{"RTX_4090", 24564}, {"RTX_3060", 12288}, {"H100", 81559}, {"GTX_1060", 6144}, {"L40S", 46068}}).Draw(t, "card")
		s := marketSlot(uint8(i), card.model, card.mib)
		if rapid.Bool().Draw(t, "silent") {
			s.ECC, s.Compute = nil, nil
		}
		if rapid.Bool().Draw(t, "leased") {
			s.LeasedUntil = 1
		}
		slots = append(slots, s)
	}
	o := marketOffer("attic", slots...)
	o.Net.Country = rapid.SampledFrom([]string{"DE", "US", ""}).Draw(t, "country")
	o.Prices.Slot = rapid.SampledFrom([]market.Rate{390_000, 400_000, 1_000_000}).Draw(t, "price")
	return o
}

func TestCanonicalTextMeansTheSameQuery(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawQuery(t, 3)
		q, err := market.ParseQuery(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		again, err := market.ParseQuery(q.String())
		if err != nil || !reflect.DeepEqual(q, again) || again.String() != q.String() {
			t.Fatalf("%q is %q, which is %q: %v", text, q, again, err)
		}
	})
}

func TestTheLastStepOfAFunnelIsWhatMatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawQuery(t, 2)
		if rapid.Bool().Draw(t, "counted") {
			text = "(" + text + ") num_gpus" + rapid.SampledFrom([]string{">=2", "=1", "!=1"}).Draw(t, "count")
		}
		q, err := market.ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		offers := rapid.SliceOfN(rapid.Custom(drawOffer), 0, 6).Draw(t, "offers")
		matches := 0
		for _, o := range offers {
			if _, ok := q.Match(o); ok {
				matches++
			}
		}
		f := q.Explain(offers)
		if f.Matches != matches || (f.Nearest == nil) != (matches == len(offers)) {
			t.Fatalf("%q: %d match, the funnel says %+v", text, matches, f)
		}
		left := len(offers)
		for _, s := range f.Steps {
			if s.Left > left {
				t.Fatalf("%q: a step adds offers: %+v", text, f)
			}
			left = s.Left
		}
		if f.Nearest != nil {
			if _, ok := q.Match(offers[f.Nearest.Offer]); ok || len(f.Nearest.Missed) == 0 {
				t.Fatalf("%q: the nearest miss is none: %+v", text, f)
			}
		}
	})
}

func TestTheBucketsOfAQueryHoldAllThatMatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawQuery(t, 2)
		q, err := market.ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		o := drawOffer(t)
		if _, ok := q.Match(o); !ok {
			return
		}
		announced := market.Buckets(o)
		if !slices.ContainsFunc(q.Buckets(), func(b string) bool { return slices.Contains(announced, b) }) {
			t.Fatalf("%q asks %v, the offer is in %v", text, q.Buckets(), announced)
		}
	})
}
