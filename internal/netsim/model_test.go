package netsim_test

import (
	"math"
	"strings"
	"testing"

	"haggle/internal/netsim"
	"haggle/market"
	"haggle/market/markettest"
)

func scenario(t *testing.T) *netsim.Scenario {
	t.Helper()
	sc, err := netsim.DefaultScenario()
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

func measure(t *testing.T, sc *netsim.Scenario, rigs int) *netsim.Measurement {
	t.Helper()
	m, err := netsim.Measure(t.Context(), sc, rigs)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	m.Print(&table)
	t.Log(table.String())
	return m
}

// The aims are those of the market's design: see aims.go. Two seeds are enough to see one broken; `make netsim` takes five.
func TestAMarketOfAHundredThousandRigsKeepsItsAims(t *testing.T) {
	sc := scenario(t)
	sc.Seeds = sc.Seeds[:2]
	var all []*netsim.Measurement
	for _, n := range sc.Sizes {
		all = append(all, measure(t, sc, n))
	}
	if err := netsim.Judge(all); err != nil {
		t.Error(err)
	}
}

// Without cells a few nodes carry a bucket that everybody announces himself in: this is why there are cells.
func TestWithoutCellsAFewNodesCarryTheMarket(t *testing.T) {
	sc := scenario(t)
	with := netsim.NewWorld(sc, 10_000, 1, 0).Balance()
	sc.Protocol.Divided = false
	without := netsim.NewWorld(sc, 10_000, 1, 0).Balance()
	t.Logf("busiest node to median: %.1f with cells, %.1f without (%s)", with.Ratio, without.Ratio, without.Hottest)
	if without.Ratio < 5*with.Ratio || without.Ratio < 10 {
		t.Errorf("the busiest node does %.1f times what the median does without cells, %.1f with them", without.Ratio, with.Ratio)
	}
}

// The library's defaults are made for a network of files that are announced once a day.
func TestTheLibrarysDefaultsCostSeveralTimesTheAim(t *testing.T) {
	sc := scenario(t)
	sc.Seeds, sc.DHT.K, sc.DHT.Alpha, sc.DHT.RefreshMin, sc.DHT.Conns = sc.Seeds[:1], 20, 10, 10, 160
	sc.Protocol.AnnounceMin, sc.Protocol.LookupEvery = 10, 1
	if got := measure(t, sc, 10_000).Get(netsim.IdleMean); got < 8000 {
		t.Errorf("%.0f B/s with k 20, refreshes and announcements every 10 minutes", got)
	}
}

// Without dead nodes a lookup takes a logarithmic number of steps.
func TestLookupsGrowWithTheLogarithmOfTheNetwork(t *testing.T) {
	sc := scenario(t).Still()
	last := 0.0
	for _, n := range []int{100, 1_000, 10_000, 100_000} {
		ms, messages, _ := netsim.NewWorld(sc, n, 1, 0).Lookups(200)
		t.Logf("%6d rigs: %4.0f ms, %.1f messages", n, ms, messages)
		if last > 0 && ms > last+2*sc.Virtual.RTT {
			t.Errorf("%d rigs: a lookup takes %.0f ms, and %.0f with a tenth of them", n, ms, last)
		}
		last = ms
	}
}

func TestTheSizeOfAnOfferIsThatOfARealOne(t *testing.T) {
	sc := scenario(t)
	bare := len(market.SealOffer(markettest.Network, markettest.Rig(), markettest.Offer()).Encode())
	if size := sc.Bytes.Offer; size < bare || size > 2*bare {
		t.Errorf("the scenario's offer has %d bytes, and one without evidence and claims %d", size, bare)
	}
}

func TestAScenarioThatMakesNoSenseIsRefused(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"sizes": [1], "colour": "red"}`, "colour"},
		{`{`, "EOF"},
		{`{}`, "regions"},
		{`{"seeds": [1], "supply": {"models": 1}, "regions": [{"name": "A", "share": 0.5, "countries": 1}], "rtt_ms": [[1]]}`, "together"},
		{`{"seeds": [1], "supply": {"models": 1}, "regions": [{"name": "A", "share": 1, "countries": 0}], "rtt_ms": [[1]]}`, "countries"},
	} {
		if _, err := netsim.ReadScenario(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error about %s", c.text, err, c.want)
		}
	}
}

func TestAFigureThatWasNotMeasuredIsNotZero(t *testing.T) {
	if got := new(netsim.Measurement).Get("nothing"); !math.IsNaN(got) {
		t.Errorf("it is %v", got)
	}
	if err := netsim.Judge([]*netsim.Measurement{{Rigs: 1000}}); err == nil {
		t.Error("a measurement without figures reaches every aim")
	}
}
