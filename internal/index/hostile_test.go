package index_test

import (
	"fmt"
	"testing"
	"time"

	"haggle/internal/index"
	"haggle/market"
	"haggle/market/markettest"
)

// statement seals an offer of a rig that answers nobody.
func statement(t *testing.T, n int, change func(*market.Offer)) []byte {
	t.Helper()
	key := keyOf(n)
	o := markettest.Offer()
	o.Rig, o.Owner, o.Simulated = market.KeyOf(key), market.KeyOf(key), true
	for i := range o.Slots {
		o.Slots[i].Vendor = market.VendorSimulated
	}
	now := time.Now()
	o.Seq, o.Issued, o.Expires = now.UnixMilli(), now.UnixMilli(), now.Add(market.MaxOfferLife).UnixMilli()
	if change != nil {
		change(&o)
	}
	return market.SealOffer(testNetwork, key, o).Encode()
}

// crowd is what a peer shows that makes up rigs.
func crowd(t *testing.T, first, n int) func(market.SnapshotRequest) ([][]byte, market.SnapshotEnd) {
	t.Helper()
	var raws [][]byte
	for i := range n {
		raws = append(raws, statement(t, first+i, nil))
	}
	return func(market.SnapshotRequest) ([][]byte, market.SnapshotEnd) {
		return raws, market.SnapshotEnd{Held: uint32(n)}
	}
}

func TestAStatementFromTheFutureTakesNoPlaceForEver(t *testing.T) {
	inTown(t, func(t *testing.T, w *town, start func(*index.Index) func()) {
		year := 365 * 24 * time.Hour.Milliseconds()
		r := w.rig(0, func(o *market.Offer) { o.Seq, o.Issued, o.Expires = o.Seq+year, o.Issued+year, o.Expires+year }).announced()
		x := w.visitor(1000).index(t, func(c *index.Config) { c.MaxRigs, c.MaxOffers = 1, 1 })
		start(x)
		pass(time.Minute)
		w.mu.Lock()
		w.dead[r.self] = true
		w.mu.Unlock()
		pass(2 * time.Hour) // its lookup result may name it; it answers nobody
		other := w.rig(1).announced()
		if !x.Look(t.Context(), other.self) || len(x.Of(other.self, time.Now())) != 1 {
			t.Error("a rig that is gone still takes the only place")
		}
	})
}

func TestOnePeerDoesNotFillTheIndexWithRigsThatNobodyElseKnows(t *testing.T) {
	inTown(t, func(t *testing.T, w *town, start func(*index.Index) func()) {
		liar := w.visitor(0)
		liar.set(func() { liar.page = crowd(t, 2000, 400) })
		agent := w.visitor(1000)
		agent.set(func() { agent.contacts = []market.Key{liar.self} })
		x := agent.index(t, func(c *index.Config) { c.MaxRigs, c.MaxOffers, c.MaxHearsay = 200, 250, 25 })
		start(x)
		x.Refresh(t.Context(), all)
		if n := x.Count(time.Now()); n != 25 {
			t.Errorf("%d offers rest on the word of one peer, want 25", n)
		}
		known := 0
		for i := 1; i <= 50; i++ {
			x.Look(t.Context(), w.rig(i).self)
		}
		for i := 1; i <= 50; i++ {
			known += len(x.Of(market.KeyOf(keyOf(i)), time.Now()))
		}
		if known != 50 {
			t.Errorf("%d of 50 rigs that answer are known", known)
		}
	})
}

func TestARigThatAnswersTakesThePlaceOfOneThatIsOnlyTalkedAbout(t *testing.T) {
	inTown(t, func(t *testing.T, w *town, start func(*index.Index) func()) {
		liar := w.visitor(0)
		liar.set(func() { liar.page = crowd(t, 2000, 40) })
		agent := w.visitor(1000)
		agent.set(func() { agent.contacts = []market.Key{liar.self} })
		x := agent.index(t, func(c *index.Config) { c.MaxRigs, c.MaxOffers = 20, 20 })
		start(x)
		x.Refresh(t.Context(), all)
		r := w.rig(1)
		if !x.Look(t.Context(), r.self) || len(x.Of(r.self, time.Now())) != 1 {
			t.Error("a rig that answers finds no place")
		}
		if n := x.Count(time.Now()); n > 20 {
			t.Errorf("%d offers are held", n)
		}
	})
}

func TestOneOwnerDoesNotTakeTheWholeIndex(t *testing.T) {
	inTown(t, func(t *testing.T, w *town, start func(*index.Index) func()) {
		r := w.rig(0)
		var raws [][]byte
		for n := range 32 {
			o := r.offer
			o.ID = fmt.Sprintf("o%d", n)
			raws = append(raws, market.SealOffer(testNetwork, r.key, o).Encode())
		}
		r.set(func() { r.fetch = func() ([][]byte, error) { return raws, nil } })
		x := w.visitor(1000).index(t, func(c *index.Config) { c.MaxOfOwner = 10 })
		start(x)
		x.Look(t.Context(), r.self)
		if n := x.Count(time.Now()); n != 10 {
			t.Errorf("one owner has %d offers in the index, want 10", n)
		}
		pass(market.MaxOfferLife + time.Minute)
		r.renew()
		r.set(func() { r.fetch = nil })
		pass(10 * time.Second)
		x.Look(t.Context(), r.self)
		if n := x.Count(time.Now()); n != 1 {
			t.Errorf("when its offers had expired %d found a place, want 1", n)
		}
	})
}

func TestAnIndexIsBoundedInBytes(t *testing.T) {
	inTown(t, func(t *testing.T, w *town, start func(*index.Index) func()) {
		one := len(statement(t, 5000, nil))
		liar := w.visitor(0)
		liar.set(func() { liar.page = crowd(t, 2000, 100) })
		agent := w.visitor(1000)
		agent.set(func() { agent.contacts = []market.Key{liar.self} })
		x := agent.index(t, func(c *index.Config) { c.MaxBytes = 10*one + one/2 })
		start(x)
		x.Refresh(t.Context(), all)
		pass(time.Minute)
		if n := x.Count(time.Now()); n < 9 || n > 11 {
			t.Errorf("%d offers of %d bytes are held, want 10", n, one)
		}
	})
}

func TestAShelfAlwaysHasRoomForItsOwnOffer(t *testing.T) {
	inTown(t, func(t *testing.T, w *town, start func(*index.Index) func()) {
		liar := w.rig(0)
		r := w.rig(1)
		own := r.index(t, func(c *index.Config) {
			c.Offers, c.Buckets, c.MaxRigs, c.MaxOffers, c.MaxHearsay = r.lateOffers(time.Now().Add(10*time.Minute)), r.buckets, 8, 8, 8
		})
		r.set(func() { r.shelf = own })
		liar.set(func() { liar.page = crowd(t, 2000, 100) })
		liar.announced()
		start(own)
		pass(10*time.Minute + 30*time.Second)
		r.renew()
		page, _ := own.Page(market.SnapshotRequest{Cells: []string{market.BucketAny}, Max: 512})
		for _, raw := range page {
			if string(raw) == string(r.offers()[0]) {
				return
			}
		}
		t.Errorf("a shelf that was filled by others does not serve its own offer (%d others)", len(page))
	})
}

// lateOffers are a member's offers from some time on.
func (m *member) lateOffers(from time.Time) func() [][]byte {
	return func() [][]byte {
		if time.Now().Before(from) {
			return nil
		}
		return m.offers()
	}
}

func TestAPeerThatSaysItsShelfIsOfAPartHidesNobody(t *testing.T) {
	inTown(t, func(t *testing.T, w *town, start func(*index.Index) func()) {
		for i := range 2 {
			honest := i == 0
			liar := w.rig(i).announced()
			liarPage := func(market.SnapshotRequest) ([][]byte, market.SnapshotEnd) {
				end := market.SnapshotEnd{Held: 1, Depth: market.CellStep}
				if honest {
					end.Depth = 0
				}
				return liar.offers(), end
			}
			liar.set(func() { liar.page = liarPage })
		}
		for i := 2; i < 110; i++ {
			w.rig(i).announced()
		}
		agent := w.visitor(1000)
		agent.set(func() { agent.contacts = []market.Key{market.KeyOf(keyOf(0)), market.KeyOf(keyOf(1))} })
		x := agent.index(t, nil)
		start(x)
		for range 4 {
			x.Refresh(t.Context(), all)
			pass(5 * time.Second)
		}
		if n := x.Count(time.Now()); n != 110 {
			t.Errorf("%d of 110 offers are known", n)
		}
	})
}

func TestCallersThatKeepSilentHoldUpNoNewcomer(t *testing.T) {
	inTown(t, func(t *testing.T, w *town, start func(*index.Index) func()) {
		r := w.rig(0)
		shelf := r.keepsShelf(t)
		start(shelf)
		pass(time.Second)
		ask := market.SnapshotRequest{Cells: []string{market.BucketAny}, Mate: true, Max: 1}
		for i := range 40 {
			silent := w.rig(100 + i)
			w.mu.Lock()
			w.slow[silent.self] = time.Hour
			w.mu.Unlock()
			shelf.Serve(silent.self, ask)
		}
		newcomer := w.rig(1)
		shelf.Serve(newcomer.self, ask)
		pass(30 * time.Second)
		if len(shelf.Of(newcomer.self, time.Now())) != 1 {
			t.Error("a newcomer is not known half a minute after it called")
		}
	})
}
