package index_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"haggle/internal/index"
	"haggle/market"
)

func TestAPageHasWhatCameAfterTheCursorAndNotWhatTheAskerHas(t *testing.T) {
	inTown(t, func(t *testing.T, w *town, start func(*index.Index) func()) {
		var rigs []*member
		for i := range 8 {
			r := w.rig(i)
			rigs = append(rigs, r)
			start(r.keepsShelf(t))
		}
		pass(5 * time.Minute)
		x := rigs[0].shelf
		ask := market.SnapshotRequest{Cells: []string{market.BucketAny}, Max: 3}
		var got [][]byte
		for range 5 {
			page, end := x.Page(ask)
			got = append(got, page...)
			if end.Held != 8 || len(page) > 3 {
				t.Fatalf("a page of %d, the shelf holds %d", len(page), end.Held)
			}
			ask.Since = end.Next
			if !end.More {
				break
			}
		}
		if names := hashesOf(t, got); len(names) != 8 || len(got) != 8 {
			t.Errorf("%d offers came, %d different ones", len(got), len(names))
		}
		if page, _ := x.Page(ask); len(page) != 0 {
			t.Errorf("%d offers came after the end", len(page))
		}
		pass(time.Second)
		rigs[0].renew()
		if page, _ := x.Page(ask); len(page) != 1 {
			t.Errorf("after one changed %d came", len(page))
		}
		var have []byte
		for _, h := range hashesOf(t, got)[1:] {
			have = append(have, h[:market.SnapshotNameSize]...)
		}
		fresh := market.SnapshotRequest{Cells: []string{market.BucketAny}, Have: have, Since: market.Cursor{Instance: market.Nonce{1}, Seq: 99}}
		if page, end := x.Page(fresh); len(page) != 2 || end.Held != 8 {
			t.Errorf("to who has all but one, and not the change, come %d of %d", len(page), end.Held)
		}
		if page, _ := x.Page(market.SnapshotRequest{Cells: []string{"model/OTHER", "any#1/0", "", "any#2/9"}}); len(page) != 0 {
			t.Errorf("of other cells come %d", len(page))
		}
	})
}

func hashesOf(t *testing.T, raws [][]byte) []market.Hash {
	t.Helper()
	set := map[market.Hash]bool{}
	for _, raw := range raws {
		_, s, err := market.OpenOffer(testNetwork, raw)
		if err != nil {
			t.Fatal(err)
		}
		set[s.Hash()] = true
	}
	return slices.SortedFunc(maps.Keys(set), func(a, b market.Hash) int { return slices.Compare(a[:], b[:]) })
}

func TestANewcomerIsKnownToTheOthersWithinTwoVisits(t *testing.T) {
	inTown(t, func(t *testing.T, w *town, start func(*index.Index) func()) {
		var rigs []*member
		for i := range 24 {
			r := w.rig(i)
			rigs = append(rigs, r)
			start(r.keepsShelf(t))
		}
		pass(5 * time.Minute)
		for _, r := range rigs {
			r.renew()
		}
		start(w.rig(100).keepsShelf(t))
		pass(5 * time.Minute)
		held := 0
		for _, r := range rigs {
			_, end := r.shelf.Page(market.SnapshotRequest{Cells: []string{market.BucketAny}})
			held += int(end.Held)
		}
		if held < 24*25*8/10 {
			t.Errorf("%d shelves hold %d offers of 25 each", len(rigs), held)
		}
	})
}

// TestAFullBucketIsDividedAndReadToItsEnd has more rigs than a cell takes. It runs for hours of virtual time.
func TestAFullBucketIsDividedAndReadToItsEnd(t *testing.T) {
	inTown(t, func(t *testing.T, w *town, start func(*index.Index) func()) {
		const many = 70
		var rigs []*member
		for i := range many {
			r := w.rig(i)
			rigs = append(rigs, r)
			start(r.keepsShelf(t))
		}
		for range 2 {
			pass(8 * time.Minute)
			for _, r := range rigs {
				r.renew()
				r.shelf.Offered()
			}
		}
		pass(6 * time.Minute)
		deep := map[string]int{}
		for name, keys := range w.found {
			if bucket, depth, _, ok := market.ParseCell(name); ok && bucket == market.BucketAny {
				deep[market.Cell("", depth, 0)] += len(keys)
			}
		}
		if top := len(w.found[market.BucketAny]); top > market.MaxCell+market.MaxCell/2 {
			t.Errorf("%d rigs of %d are found in the bucket itself; by depth: %v", top, many, deep)
		}
		agent := w.visitor(100_000)
		agent.set(func() { agent.contacts = []market.Key{rigs[7].self} })
		x := agent.index(t, nil)
		start(x)
		if took := firstScreen(t, x, 20); took > 2*roundTrip {
			t.Errorf("the first screen took %s", took)
		}
		x.Refresh(t.Context(), all)
		if p := x.Progress(all); p.About < many*3/4 || p.About > many*market.MinCell {
			t.Errorf("progress at first: %+v", p)
		}
		for range 20 {
			pass(2 * time.Second)
			x.Refresh(t.Context(), all)
		}
		if p := x.Progress(all); p.Read < many*99/100 || p.Reading {
			t.Errorf("after a minute: %+v; by depth: %v", p, deep)
		}
	})
}

func FuzzPage(f *testing.F) {
	w := newTown()
	r := w.rig(1)
	x, err := index.New(index.Config{Network: testNetwork, Self: r.self, Net: r, Offers: r.offers, Buckets: r.buckets, Workers: 1})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("any", "any#2/1", []byte("12345678"), uint64(1), uint16(3))
	f.Add("any#4/f", "any#22/0", []byte{}, ^uint64(0), uint16(0))
	f.Fuzz(func(t *testing.T, a, b string, have []byte, seq uint64, most uint16) {
		page, end := x.Page(market.SnapshotRequest{Cells: []string{a, b}, Have: have, Since: market.Cursor{Seq: seq}, Max: most})
		if len(page) > 1 || end.Held > 1 || end.More {
			t.Errorf("%d offers, %+v", len(page), end)
		}
	})
}
