package market_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haggle/market"
)

// funnelText writes a funnel as a person would read it.
func funnelText(f market.Funnel) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d offers\n", f.Offers)
	for _, s := range f.Steps {
		fmt.Fprintf(&b, "%d left by %s\n", s.Left, s.Clause)
	}
	if f.Nearest != nil {
		fmt.Fprintf(&b, "nearest: offer %d slot %d\n", f.Nearest.Offer, f.Nearest.Slot)
		for _, m := range f.Nearest.Missed {
			fmt.Fprintf(&b, "  %s: %s %s\n", m.Clause, m.Field, m.Value)
		}
	}
	return b.String()
}

func TestTellsWhatEachClauseLeft(t *testing.T) {
	leased := marketSlot(0, "RTX_4090", 24564)
	leased.LeasedUntil = 1
	dear := marketOffer("dear", marketSlot(0, "RTX_4090", 24564), marketSlot(1, "RTX_4090", 24564))
	dear.Prices.Slot = 650_000
	silent := marketOffer("silent", marketSlot(0, "RTX_4090", 24564))
	silent.Net.Country = ""
	gone := marketOffer("gone", marketSlot(0, "RTX_4090", 24564))
	gone.State = market.OfferWithdrawn
	offers := []market.Offer{
		marketOffer("small", marketSlot(0, "RTX_3060", 12288)),
		marketOffer("mixed", marketSlot(0, "RTX_3060", 12288), marketSlot(1, "RTX_4090", 24564)),
		dear,
		silent,
		marketOffer("busy", leased, marketSlot(1, "RTX_3060", 12288)),
		gone,
	}
	for _, c := range []struct{ query, want string }{
		{"", `6 offers
5 left by free now
nearest: offer 5 slot 0
  free now:  withdrawn
`},
		{"gpu=RTX_4090 rig=busy", `6 offers
5 left by gpu_name=RTX_4090
1 left by rig=busy
0 left by free now
nearest: offer 4 slot 0
  free now:  leased
`},
		{"gpu=RTX_4090 dph<0.60 num_gpus>=2 geo in [DE,NL]", `6 offers
5 left by gpu_name=RTX_4090
4 left by dph<0.60
3 left by geolocation in [DE,NL]
1 left by free now
0 left by num_gpus>=2
nearest: offer 2 slot 0
  dph<0.60: dph 0.65
`},
		{"gpu=RTX_4090 dph<0.60 geo=DE", `6 offers
5 left by gpu_name=RTX_4090
4 left by dph<0.60
3 left by geolocation=DE
1 left by free now
nearest: offer 2 slot 0
  dph<0.60: dph 0.65
`},
		{"num_gpus>=3", `6 offers
5 left by free now
0 left by num_gpus>=3
nearest: offer 1 slot 0
  num_gpus>=3: num_gpus 2
`},
		{"geo=US rig=silent", `6 offers
0 left by geolocation=US
0 left by rig=silent
0 left by free now
nearest: offer 3 slot 0
  geolocation=US: geolocation unknown
`},
		{"gpu_ram>=30 rig=small|rig=mixed gpu_ram>=26", `6 offers
0 left by gpu_ram>=30GB rig=small OR rig=mixed gpu_ram>=26GB
0 left by free now
nearest: offer 1 slot 1
  gpu_ram>=30GB rig=small OR rig=mixed gpu_ram>=26GB: gpu_ram 24GB
`},
		{"gpu_ram>=80 (dph<0.30 OR image=x)", `6 offers
0 left by gpu_ram>=80GB
0 left by dph<0.30 OR image=x
0 left by free now
nearest: offer 1 slot 1
  gpu_ram>=80GB: gpu_ram 24GB
  dph<0.30 OR image=x: dph 0.40
`},
		{"rig=gone", `6 offers
1 left by rig=gone
0 left by free now
nearest: offer 5 slot 0
  free now:  withdrawn
`},
		{"image=x cuda=13 max_duration>2d simulated=true rig=silent", `6 offers
0 left by image=x
0 left by cuda=13
0 left by max_duration>2d
0 left by simulated=true
0 left by rig=silent
0 left by free now
nearest: offer 3 slot 0
  image=x: image train,bench
  cuda=13: cuda 12.4
  max_duration>2d: max_duration 1d
  simulated=true: simulated false
`},
	} {
		if diff := cmp.Diff(c.want, funnelText(mustParse(t, c.query).Explain(offers))); diff != "" {
			t.Errorf("%q: %s", c.query, diff)
		}
	}
}

func TestExplainsAnEmptyMarketAndAFullMatch(t *testing.T) {
	q := mustParse(t, "dph<1")
	if f := q.Explain(nil); f.Matches != 0 || f.Nearest != nil || len(f.Steps) != 2 {
		t.Errorf("of no offers: %+v", f)
	}
	f := q.Explain([]market.Offer{marketOffer("attic", marketSlot(0, "RTX_4090", 24564))})
	data, err := json.Marshal(f)
	if want := `{"offers":1,"steps":[{"clause":"dph\u003c1.00","left":1},{"clause":"free now","left":1}],"matches":1}`; err != nil || string(data) != want {
		t.Errorf("%s, %v, want %s", data, err, want)
	}
}

func TestAForeignNameCannotWriteIntoATerminal(t *testing.T) {
	o := marketOffer("attic", marketSlot(0, "RTX_4090", 24564))
	o.Net.Country = "\x1b[2JDE"
	f := mustParse(t, "geo=DE").Explain([]market.Offer{o})
	if got := f.Nearest.Missed[0].Value; got != "[2JDE" {
		t.Errorf("value %q", got)
	}
}
