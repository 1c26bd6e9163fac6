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
		"dph="+pick("0.39", "0.2")+".."+pick("0.4", "2"),
		"vram="+pick("6", "8", "20")+".."+pick("24", "48GB", "80GB"),
		"cuda=12.."+pick("12.4", "13"),
		"claim.feeds"+order()+pick("1", "2"),
		"claim.feeds="+pick("1..2", "red", "r*"),
		"nvlink"+pick("=", "!=")+"true",
		"seen"+order()+pick("1h", "7d"),
		"rtt"+order()+pick("10", "40ms"),
		"source"+pick("=", "!=")+pick("owner", "snap*"),
		"residency_proof"+order()+pick("claimed", "address", "round-trip"),
		"total"+order()+pick("0.4", "1.2"),
		"start_time"+order()+pick("0s", "10s"),
		"dph_per_tflop<"+pick("0.005", "0.02"),
		"within_km"+order()+pick("800", "5000"),
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
	o.Name = rapid.SampledFrom([]string{"attic", "barn"}).Draw(t, "name")
	o.Rig[0] = rapid.Byte().Draw(t, "rig")
	o.Net.Reach = rapid.SampledFrom([]string{"direct", "punched", "relayed", ""}).Draw(t, "reach")
	if rapid.Bool().Draw(t, "claims") {
		o.Claims = []market.Claim{{Name: "feeds", Int: point(rapid.Int64Range(1, 3).Draw(t, "feeds"))}, {Name: "nvlink", Bool: point(true)}}
	} else if rapid.Bool().Draw(t, "words") {
		o.Claims = []market.Claim{{Name: "feeds", Text: point("red")}}
	}
	if rapid.Bool().Draw(t, "pays") {
		o.Pays = []market.PayMethod{{Name: "hand", Settles: rapid.SampledFrom([]market.Settling{"hand", "instant"}).Draw(t, "settles")}}
	}
	return o
}

// drawRow draws an offer as a renter sees it; some renters know nothing.
func drawRow(t *rapid.T) market.Row {
	o := drawOffer(t)
	r := market.Row{Offer: &o}
	if rapid.Bool().Draw(t, "timed") {
		r.Now = 100 * 86_400_000
	}
	if rapid.Bool().Draw(t, "standing") {
		r.Standing = &market.Standing{
			Checked: rapid.Bool().Draw(t, "checked"), Leases: rapid.Int64Range(0, 2).Draw(t, "leases"),
			FirstSeen: rapid.SampledFrom([]int64{0, 1, 90 * 86_400_000, 100*86_400_000 - 1000}).Draw(t, "seen"),
			Heard:     rapid.SampledFrom([]int64{0, 100*86_400_000 - 5000}).Draw(t, "heard"),
			Source:    rapid.SampledFrom([]string{"", "owner", "snapshot"}).Draw(t, "source"), Keeps: rapid.Bool().Draw(t, "keeps"),
			Reached: rapid.SampledFrom([]string{"", "direct", "relayed"}).Draw(t, "reached"), AddressCountry: rapid.SampledFrom([]string{"", "DE", "US"}).Draw(t, "at"),
		}
		if rapid.Bool().Draw(t, "timed trip") {
			r.Standing.RTT = point(rapid.SampledFrom([]int64{900, 9000, 41_000}).Draw(t, "rtt"))
		}
	}
	if rapid.Bool().Draw(t, "job") {
		r.Job = &market.JobShape{
			Slots: rapid.IntRange(1, 2).Draw(t, "wanted"), DurationMs: 3_600_000, InMB: 100, KeptMB: 50,
			Image: rapid.SampledFrom([]string{"", "train", "mine"}).Draw(t, "wanted image"),
		}
	}
	return r
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
		offers := rapid.SliceOfN(rapid.Custom(drawRow), 0, 6).Draw(t, "offers")
		matches := 0
		for _, r := range offers {
			if _, ok := q.MatchRow(r); ok {
				matches++
			}
		}
		f := q.ExplainRows(offers)
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
			if _, ok := q.MatchRow(offers[f.Nearest.Offer]); ok || len(f.Nearest.Missed) == 0 {
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
