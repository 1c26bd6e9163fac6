package p2p_test

import (
	"crypto/ed25519"
	"fmt"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/marcopolo/simnet"

	"haggle/internal/index"
	"haggle/internal/netsim"
	"haggle/market"
	"haggle/p2p/p2ptest"
)

// sight is what a renter saw of the market, and how long after it started. 0 is never.
type sight struct {
	Screen    time.Duration // until a screen of live offers was there
	All       time.Duration // until all of them were
	Confirmed time.Duration // until somebody had told of all of them in this life of the renter
	Bytes     int           // that the renter sent and received until its screen was full
	Dead      int           // offers of vanished rigs among those listed at the end
}

// rows is what a terminal of 24 lines shows of offers.
const rows = 20

// look waits until a renter that started at a time has seen all live offers, for as long as a person would.
func (f *fair) look(s *stall, dead map[market.Key]bool, start time.Time, before int) sight {
	want := len(f.rigs) - len(dead)
	f.runs.Go(func() { s.index.Refresh(f.t.Context(), market.Query{}) })
	var out sight
	for deadline := time.After(10 * time.Second); ; {
		changed := s.index.Changed()
		out.see(s.index, dead, start, want)
		if out.Bytes == 0 && out.Screen > 0 {
			out.Bytes = f.bytes(s.ip) - before
		}
		if out.Confirmed > 0 {
			return out
		}
		select {
		case <-changed:
		case <-deadline:
			return out
		}
	}
}

// see notes what an index lists now.
func (s *sight) see(x *index.Index, dead map[market.Key]bool, start time.Time, want int) {
	offers, _ := x.Live(time.Now())
	live, confirmed := 0, 0
	s.Dead = 0
	for _, o := range offers {
		if dead[o.Offer.Rig] {
			s.Dead++
			continue
		}
		live++
		if o.Source != index.FromMemory {
			confirmed++
		}
	}
	took := max(time.Since(start), 1) // 0 is never
	note := func(at *time.Duration, done bool) {
		if done && *at == 0 {
			*at = took
		}
	}
	note(&s.Screen, live >= min(rows, want))
	note(&s.All, live >= want)
	note(&s.Confirmed, confirmed >= want)
}

// fairSizes are the markets of this run: the scenario's small one, and its large ones where HAGGLE_FAIR says so, as `make netsim` does.
func fairSizes(t *testing.T) []int {
	t.Helper()
	sc, err := netsim.DefaultScenario()
	if err != nil {
		t.Fatal(err)
	}
	sizes := []int{sc.Virtual.Small}
	if os.Getenv("HAGGLE_FAIR") == "large" {
		sizes = append(sizes, sc.Virtual.Large...)
	}
	return sizes
}

func TestARenterSeesTheMarketAtOnce(t *testing.T) {
	for _, n := range fairSizes(t) {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { seeMarket(t, n) })
		})
	}
}

// calibrate compares lookups of real nodes with those of the model.
func (f *fair) calibrate(idle int) {
	const lookups = 5
	w := netsim.NewWorld(f.sc.Still(), len(f.rigs), 1, 0)
	modelled, messages, weight := w.Lookups(100)
	var took time.Duration
	bytes := 0
	for i := range lookups {
		s := f.rigs[(i*7+3)%len(f.rigs)]
		before, start := f.bytes(s.ip), time.Now()
		for range s.node.Find(f.t.Context(), fmt.Sprintf("nothing %d", i)) {
		}
		took += time.Since(start) / lookups
		bytes += (f.bytes(s.ip) - before - idle*int(time.Since(start).Seconds())) / lookups
	}
	f.t.Logf("%3d rigs, a lookup: %d ms and %.1f kB; the model says %.0f ms, %.1f messages and %.1f kB", len(f.rigs), took.Milliseconds(),
		float64(bytes)/1000, modelled, messages, weight/1000)
	if ratio := float64(took.Milliseconds()) / modelled; ratio < 0.5 || ratio > 2 {
		f.t.Errorf("a lookup takes %v among %d rigs, and %.0f ms in the model", took, len(f.rigs), modelled)
	}
}

// manyRigs is from how many on a market is only compared with the model and seen once.
const manyRigs = 100

// seeMarket lets renters come to a market: a new one, the same again, and both after rigs have vanished.
func seeMarket(t *testing.T, rigs int) {
	f := newFair(t, rigs)
	settle := 4 * time.Minute
	if rigs >= manyRigs {
		settle = time.Minute
	}
	<-time.After(settle)
	some := f.rigs[rigs/2].ip
	idle := f.bytes(some)
	<-time.After(settle)
	idle = (f.bytes(some) - idle) / int(settle.Seconds())
	t.Logf("%3d rigs, idle traffic of one: %d B/s", rigs, idle)
	f.calibrate(idle)

	store, key := &memory{rigs: map[market.Key]index.Remembered{}}, p2ptest.Key(t)
	visit := func(name string, key ed25519.PrivateKey, store index.Store, dead map[market.Key]bool) *stall {
		ip := simnet.IntToPublicIPv4(f.visits).String()
		start, before := time.Now(), f.bytes(ip)
		s := f.join(f.visits, key, false, store)
		saw := f.look(s, dead, start, before)
		t.Logf("%3d rigs, %-16s screen %4d ms with %3d kB, all %4d ms, confirmed %4d ms, %d dead", rigs, name,
			saw.Screen.Milliseconds(), saw.Bytes/1000, saw.All.Milliseconds(), saw.Confirmed.Milliseconds(), saw.Dead)
		screen := 300 * time.Millisecond
		if store != nil && len(store.(*memory).rigs) > 0 { //nolint:forcetypeassert // there is no other store here
			screen = 150 * time.Millisecond
		}
		judge(t, name+": a screen of offers", saw.Screen, screen)
		if rigs < manyRigs { // a larger market is read to its end in the background
			judge(t, name+": all offers, confirmed", saw.Confirmed, time.Second)
		}
		<-time.After(time.Minute)
		return s
	}
	visit("cold", key, store, nil).stop()
	if rigs >= manyRigs {
		f.close()
		return // the rest would take an hour
	}
	<-time.After(10 * time.Second)
	visit("warm", key, store, nil).stop()
	dead := f.digHoles(f.sc.Virtual.BlackHoled)
	<-time.After(10 * time.Second)
	warm := visit("warm, some gone", key, store, dead)
	f.visits++
	cold := visit("cold, some gone", p2ptest.Key(t), nil, dead)
	<-time.After(market.MaxOfferLife)
	for name, s := range map[string]*stall{"warm": warm, "cold": cold} {
		var late sight
		late.see(s.index, dead, time.Now(), rigs)
		if late.Dead != 0 {
			t.Errorf("%s: %d offers of vanished rigs are shown after their expiry", name, late.Dead)
		}
	}
	f.close(warm, cold)
}

func judge(t *testing.T, what string, took, aim time.Duration) {
	t.Helper()
	if took == 0 || took > aim {
		t.Errorf("%s: %v, aim %v (0 is never)", what, took, aim)
	}
}
