package index_test

import (
	"sync/atomic"
	"testing"
	"time"

	"haggle/internal/index"
	"haggle/market"
)

// lateAddresses is a network on which nobody's address is known at first.
type lateAddresses struct {
	*member
	known *atomic.Bool
}

func (l lateAddresses) AddrsOf(rig market.Key) []string {
	if !l.known.Load() {
		return nil
	}
	return l.member.AddrsOf(rig)
}

func TestAnAddressThatIsLearntAfterTheOfferIsRememberedAsWell(t *testing.T) {
	inTown(t, func(t *testing.T, w *town, start func(*index.Index) func()) {
		for i := range 3 {
			w.rig(i).announced()
		}
		agent, kept, known := w.visitor(1000), &memory{}, &atomic.Bool{}
		x := agent.index(t, func(c *index.Config) {
			c.Store, c.Net, c.Refresh = kept, lateAddresses{agent, known}, time.Hour // nobody speaks again
		})
		start(x)
		firstScreen(t, x, 3)
		pass(20 * time.Second)
		without := func() (n int) {
			kept.mu.Lock()
			defer kept.mu.Unlock()
			for _, m := range kept.rigs {
				if len(m.Addrs) == 0 {
					n++
				}
			}
			return n
		}
		if n := without(); n != 3 {
			t.Fatalf("%d rigs stand without an address, want 3", n)
		}
		known.Store(true)
		pass(6 * time.Second)
		if n := without(); n != 0 {
			t.Errorf("%d rigs still stand without an address", n)
		}
	})
}

func TestWhoKeepsACopyIsToldOfEachRigOnce(t *testing.T) {
	inTown(t, func(t *testing.T, w *town, start func(*index.Index) func()) {
		for i := range 3 {
			w.rig(i).announced()
		}
		x := w.visitor(1000).index(t, func(c *index.Config) { c.Refresh = time.Hour })
		start(x)
		firstScreen(t, x, 3)
		pass(5 * time.Second)
		if rigs, every := x.Touched(); len(rigs) != 3 || every {
			t.Errorf("touched: %d rigs, %t", len(rigs), every)
		}
		if rigs, _ := x.Touched(); len(rigs) != 0 {
			t.Errorf("touched again: %d rigs", len(rigs))
		}
		offers, tally := x.Live(time.Now())
		if got := x.Tally(time.Now()); got != tally || len(x.Held(offers[0].Offer.Rig)) != 1 {
			t.Errorf("tally %+v, want %+v", got, tally)
		}
	})
}
