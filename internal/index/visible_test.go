package index_test

import (
	"testing"
	"time"

	"haggle/internal/index"
	"haggle/market"
)

func TestARigIsToldWhoShowsItAndWhereItsPriceStands(t *testing.T) {
	inTown(t, func(t *testing.T, w *town, start func(*index.Index) func()) {
		price := func(p market.Rate) func(*market.Offer) {
			return func(o *market.Offer) { o.Prices.Slot = p }
		}
		var mine *index.Index
		for i, p := range []market.Rate{300_000, 200_000, 400_000, 100_000} {
			m := w.rig(i+1, price(p))
			x := m.keepsShelf(t)
			start(x)
			if i == 0 {
				mine = x
			}
		}
		pass(5 * time.Minute)
		v := mine.Visible(t.Context())
		if v.Model == "" || v.Asked != 3 || v.Answers != 3 || v.Keep != 3 || v.Seen != 3 || v.Rank != 3 || v.Of != 4 || v.Price != 300_000 {
			t.Errorf("got %+v, want to be seen by 3 of 3, 3rd cheapest of 4", v)
		}
	})
}

func TestAStrangerThatLeavesARigOutIsCounted(t *testing.T) {
	inTown(t, func(t *testing.T, w *town, start func(*index.Index) func()) {
		mine := w.rig(1).keepsShelf(t)
		start(mine)
		start(w.rig(2).keepsShelf(t))
		liar := w.rig(3)
		liar.set(func() {
			liar.page = func(market.SnapshotRequest) ([][]byte, market.SnapshotEnd) { return nil, market.SnapshotEnd{} }
		})
		start(liar.keepsShelf(t))
		pass(5 * time.Minute)
		if v := mine.Visible(t.Context()); v.Asked != 2 || v.Keep != 2 || v.Seen != 1 {
			t.Errorf("got %+v, want to be seen by 1 of 2", v)
		}
	})
}

func TestARigWithoutAnOfferAsksNobody(t *testing.T) {
	inTown(t, func(t *testing.T, w *town, start func(*index.Index) func()) {
		m := w.rig(1)
		m.sealed = nil
		x := m.keepsShelf(t)
		start(x)
		if v := x.Visible(t.Context()); v != (index.Visible{}) {
			t.Errorf("got %+v", v)
		}
	})
}
