package index_test

import (
	"fmt"
	"testing"
	"time"

	"haggle/internal/index"
	"haggle/market"
)

var all = market.Query{}

// names are the rigs and sources of what an index lists.
func sourcesOf(x *index.Index) map[string]int {
	offers, _ := x.Live(time.Now())
	count := map[string]int{}
	for _, k := range offers {
		count[k.Source.String()]++
	}
	return count
}

// firstScreen is the time until an index lists so many offers.
func firstScreen(t *testing.T, x *index.Index, want int) time.Duration {
	t.Helper()
	begin := time.Now()
	limit := time.After(time.Minute)
	for {
		changed := x.Changed()
		if x.Count(time.Now()) >= want {
			return time.Since(begin)
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("only %d offers after a minute, not %d", x.Count(time.Now()), want)
		}
	}
}

func TestASmallMarketIsReadFromAShelfAtOnceAndThenFromEachOwner(t *testing.T) {
	inTown(t, func(t *testing.T, w *town, start func(*index.Index) func()) {
		var first market.Key
		for i := range 30 {
			r := w.rig(i)
			r.set(func() { r.contacts = append(r.contacts, first) })
			if i == 0 {
				first = r.self
				r.set(func() { r.contacts = nil })
			}
			start(r.keepsShelf(t))
		}
		pass(5 * time.Minute)
		agent := w.visitor(1000)
		agent.set(func() { agent.contacts = []market.Key{first} })
		x := agent.index(t, nil)
		start(x)
		if took := firstScreen(t, x, 30); took > 2*roundTrip {
			t.Errorf("the first screen took %s", took)
		}
		begin := time.Now()
		if !x.Refresh(t.Context(), all) || time.Since(begin) > 1500*time.Millisecond {
			t.Errorf("it took %s until the list was fresh", time.Since(begin))
		}
		pass(time.Second)
		if got := sourcesOf(x); got[market.SourceOwner] != 30 {
			t.Errorf("sources: %v", got)
		}
	})
}

func TestSilentRigsHoldUpNobody(t *testing.T) {
	inTown(t, func(t *testing.T, w *town, start func(*index.Index) func()) {
		var rigs []*member
		var stops []func()
		for i := range 60 {
			r := w.rig(i)
			rigs, stops = append(rigs, r), append(stops, start(r.keepsShelf(t)))
		}
		pass(8 * time.Minute)
		for i, r := range rigs {
			dead := i%3 == 2
			w.set(func() { w.dead[r.self] = dead })
			if dead {
				stops[i]()
			} else {
				r.renew()
			}
		}
		agent := w.visitor(1000)
		agent.set(func() { agent.contacts = []market.Key{rigs[2].self, rigs[0].self} })
		x := agent.index(t, nil)
		start(x)
		if took := firstScreen(t, x, 40); took > 300*time.Millisecond {
			t.Errorf("the first screen took %s", took)
		}
		begin := time.Now()
		x.Refresh(t.Context(), all)
		if took := time.Since(begin); took > 1200*time.Millisecond {
			t.Errorf("who asked waited %s", took)
		}
		if got := sourcesOf(x); got[market.SourceOwner] < 25 {
			t.Errorf("when the list was fresh: %v", got)
		}
		pass(2*time.Minute + time.Second)
		for _, k := range first(x.Live(time.Now())) {
			if w.dead[k.Offer.Rig] {
				t.Errorf("a dead rig is listed after its offer has expired")
			}
		}
	})
}

func first(offers []*index.Known, _ index.Tally) []*index.Known { return offers }

func TestOneSnapshotPeerThatLeavesOffersOutIsSeenThrough(t *testing.T) {
	inTown(t, func(t *testing.T, w *town, start func(*index.Index) func()) {
		liar := w.rig(0).announced()
		liarPage := func(market.SnapshotRequest) ([][]byte, market.SnapshotEnd) {
			return liar.offers(), market.SnapshotEnd{Held: 1}
		}
		liar.set(func() { liar.page = liarPage })
		for i := 1; i < 20; i++ {
			start(w.rig(i).keepsShelf(t))
		}
		pass(5 * time.Minute)
		agent := w.visitor(1000)
		agent.set(func() { agent.contacts = []market.Key{liar.self} })
		x := agent.index(t, nil)
		start(x)
		if took := firstScreen(t, x, 20); took > time.Second {
			t.Errorf("all were known after %s", took)
		}
	})
}

func TestAPeerThatServesWhatNobodySignedIsNotAskedAgainForAWhile(t *testing.T) {
	inTown(t, func(t *testing.T, w *town, start func(*index.Index) func()) {
		liar := w.visitor(0)
		other := w.rig(1)
		liarPage := func(market.SnapshotRequest) ([][]byte, market.SnapshotEnd) {
			fake := market.SealOffer("lab-elsewhere", other.key, other.offer).Encode()
			return [][]byte{fake, fake[:20], {1, 2, 3}}, market.SnapshotEnd{Held: 3}
		}
		liar.set(func() { liar.page = liarPage })
		agent := w.visitor(1000)
		agent.set(func() { agent.contacts = []market.Key{liar.self} })
		x := agent.index(t, nil)
		start(x)
		x.Refresh(t.Context(), all)
		pass(10 * time.Minute)
		if n, asked := x.Count(time.Now()), w.counted("snapshot "+liar.self.Short()); n != 0 || asked != 1 {
			t.Errorf("%d offers, and the liar was asked %d times", n, asked)
		}
		if agent.blamed[liar.self] != 1 {
			t.Errorf("blamed %d times", agent.blamed[liar.self])
		}
		pass(25 * time.Minute)
		if asked := w.counted("snapshot " + liar.self.Short()); asked != 2 {
			t.Errorf("half an hour later it was asked %d times in all", asked)
		}
	})
}

func TestAWithdrawnOfferIsPassedOnUntilTheOldOneHasExpired(t *testing.T) {
	inTown(t, func(t *testing.T, w *town, start func(*index.Index) func()) {
		a, b := w.rig(0), w.rig(1)
		start(a.keepsShelf(t))
		start(b.keepsShelf(t))
		pass(2 * time.Minute)
		old := a.offers()[0]
		pass(time.Second)
		a.renew(func(o *market.Offer) { o.State = market.OfferWithdrawn })
		pass(2 * time.Minute)
		w.set(func() { w.dead[a.self] = true })
		page, _ := b.shelf.Page(market.SnapshotRequest{Cells: []string{market.BucketAny}})
		withdrawn := false
		for _, raw := range page {
			o, _, err := market.OpenOffer(testNetwork, raw)
			withdrawn = withdrawn || err == nil && o.Rig == a.self && o.State == market.OfferWithdrawn
		}
		if !withdrawn || len(page) != 2 {
			t.Errorf("b serves %d offers, the withdrawal among them: %v", len(page), withdrawn)
		}
		// Somebody who has the old offer still learns that it is gone; one who tells the old one does not bring it back.
		stale := w.visitor(2)
		stalePage := func(market.SnapshotRequest) ([][]byte, market.SnapshotEnd) {
			return [][]byte{old}, market.SnapshotEnd{Held: 1}
		}
		stale.set(func() { stale.page = stalePage })
		agent := w.visitor(1000)
		agent.set(func() { agent.contacts = []market.Key{stale.self, b.self} })
		x := agent.index(t, nil)
		start(x)
		x.Refresh(t.Context(), all)
		pass(5 * time.Second)
		if offers, _ := x.Live(time.Now()); len(offers) != 1 || offers[0].Offer.Rig != b.self {
			t.Errorf("%d offers are listed", len(offers))
		}
	})
}

func TestAContradictionIsProvedToWhoeverAsks(t *testing.T) {
	inTown(t, func(t *testing.T, w *town, start func(*index.Index) func()) {
		cheat, witness := w.rig(0), w.rig(1)
		start(witness.keepsShelf(t))
		cheat.announced()
		pass(time.Second)
		twin := cheat.offer
		twin.Prices.Slot++
		other := market.SealOffer(testNetwork, cheat.key, twin).Encode()
		cheatPage := func(market.SnapshotRequest) ([][]byte, market.SnapshotEnd) {
			return append(cheat.offers(), other), market.SnapshotEnd{Held: 2}
		}
		cheat.set(func() { cheat.page = cheatPage })
		pass(2 * time.Minute)
		page, _ := witness.shelf.Page(market.SnapshotRequest{Cells: []string{market.BucketAny}})
		if len(page) != 3 {
			t.Fatalf("the witness serves %d offers, not its own and both that contradict each other", len(page))
		}
		w.set(func() { w.dead[cheat.self] = true })
		agent := w.visitor(1000)
		agent.set(func() { agent.contacts = []market.Key{witness.self} })
		x := agent.index(t, nil)
		start(x)
		x.Refresh(t.Context(), all)
		pass(time.Second)
		if offers, _ := x.Live(time.Now()); len(offers) != 1 || offers[0].Offer.Rig != witness.self {
			t.Errorf("%d offers are listed", len(offers))
		}
		pass(market.MaxOfferLife)
		if page, _ := witness.shelf.Page(market.SnapshotRequest{Cells: []string{market.BucketAny}}); len(page) > 1 {
			t.Errorf("after both have expired the witness serves %d", len(page))
		}
	})
}

func TestAnAgentThatComesBackShowsWhatItRemembersAndAsksItsRigsFirst(t *testing.T) {
	inTown(t, func(t *testing.T, w *town, start func(*index.Index) func()) {
		var rigs []*member
		for i := range 20 {
			rigs = append(rigs, w.rig(i).announced())
		}
		agent, kept := w.visitor(1000), &memory{}
		x := agent.index(t, func(c *index.Config) { c.Store = kept })
		stop := start(x)
		firstScreen(t, x, 20)
		seen := x.FirstSeen(rigs[3].self)
		pass(10 * time.Second)
		stop()
		pass(2 * time.Minute)
		w.found = map[string][]market.Key{} // nobody is found any more
		w.set(func() { w.dead[rigs[0].self] = true })
		x = agent.index(t, func(c *index.Config) { c.Store = kept })
		start(x)
		if took := firstScreen(t, x, 20); took > 0 {
			t.Errorf("what is remembered was there after %s", took)
		}
		offers, _ := x.Live(time.Now())
		if k := offers[0]; k.Source != index.FromMemory || time.Since(k.Heard) < 2*time.Minute || !k.Answered.IsZero() {
			t.Errorf("an offer is known from %s, heard %s ago", k.Source, time.Since(k.Heard))
		}
		pass(150 * time.Millisecond)
		if got := sourcesOf(x); got[market.SourceOwner] != 19 || got[market.SourceRemembered] != 1 {
			t.Errorf("sources: %v", got)
		}
		if got := x.FirstSeen(rigs[3].self); !got.Truncate(time.Millisecond).Equal(seen.Truncate(time.Millisecond)) {
			t.Errorf("first seen %s, not %s", got, seen)
		}
		for _, r := range rigs[1:] {
			r.renew()
		}
		pass(market.MaxOfferLife - time.Minute)
		if offers, _ := x.Live(time.Now()); len(offers) != 19 {
			t.Errorf("after the old offer has expired %d are listed", len(offers))
		}
	})
}

func TestWhoLooksAtARowHasItsOwnersWord(t *testing.T) {
	inTown(t, func(t *testing.T, w *town, start func(*index.Index) func()) {
		r := w.rig(0)
		start(r.keepsShelf(t))
		agent := w.visitor(1000)
		agent.set(func() { agent.contacts = []market.Key{r.self} })
		x := agent.index(t, func(c *index.Config) { c.Refresh = time.Hour })
		start(x)
		firstScreen(t, x, 1)
		pass(time.Minute)
		r.renew(func(o *market.Offer) { o.Prices.Slot = 77 })
		if !x.Look(t.Context(), r.self) {
			t.Fatal("the rig did not answer")
		}
		k := x.Of(r.self, time.Now())
		if len(k) != 1 || k[0].Offer.Prices.Slot != 77 || k[0].Source != index.FromOwner {
			t.Errorf("offers: %v", k)
		}
		before := w.counted("fetch " + r.self.Short())
		x.Look(t.Context(), r.self)
		if w.counted("fetch "+r.self.Short()) != before {
			t.Error("it was asked again at once")
		}
		w.mu.Lock()
		w.dead[r.self] = true
		w.mu.Unlock()
		pass(10 * time.Second)
		if x.Look(t.Context(), r.self) {
			t.Error("a dead rig answered")
		}
	})
}

func TestBlockedOwnersAreNotListed(t *testing.T) {
	inTown(t, func(t *testing.T, w *town, start func(*index.Index) func()) {
		a, b := w.rig(0).announced(), w.rig(1).announced()
		agent := w.visitor(1000)
		x := agent.index(t, nil)
		start(x)
		firstScreen(t, x, 2)
		w.mu.Lock()
		agent.blocked[a.self] = true
		w.mu.Unlock()
		if offers, _ := x.Live(time.Now()); len(offers) != 1 || offers[0].Offer.Rig != b.self {
			t.Errorf("%d offers are listed", len(offers))
		}
	})
}

func TestAFloodOfOffersIsBounded(t *testing.T) {
	inTown(t, func(t *testing.T, w *town, start func(*index.Index) func()) {
		for i := range 40 {
			r := w.rig(i).announced()
			var raws [][]byte
			for n := range 40 {
				o := r.offer
				o.ID = fmt.Sprintf("o%d", n)
				raws = append(raws, market.SealOffer(testNetwork, r.key, o).Encode())
			}
			r.set(func() { r.fetch = func() ([][]byte, error) { return raws, nil } })
		}
		x := w.visitor(1000).index(t, func(c *index.Config) { c.MaxRigs, c.MaxOffers = 30, 900 })
		start(x)
		pass(10 * time.Second)
		if n := x.Count(time.Now()); n != 900 {
			t.Errorf("the index holds %d offers, want 900", n)
		}
	})
}
