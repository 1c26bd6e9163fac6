package index

import (
	"haggle/market"
)

// maxPageBytes bounds the sealed offers of one page.
const maxPageBytes = 2 << 20

// Serve is Page for a known asker. A rig that keeps a shelf of the same cells, and of which nothing is known here, is asked for its
// own offers: so a newcomer is known to those whom it visits.
func (x *Index) Serve(asker market.Key, r market.SnapshotRequest) ([][]byte, market.SnapshotEnd) {
	if r.Mate && !x.hasOffers(asker) && x.cfg.Net.Admits(asker) {
		select {
		case x.shelf.callers <- asker:
		default: // enough wait already
		}
	}
	return x.Page(r)
}

// Page answers a question for a snapshot, from what this shelf holds and this rig's own offers: the offers of some cells that came
// after a cursor, withdrawn ones included, without those that the asker has. The request keeps its bounds: p2p.SnapshotHandler has
// checked them.
func (x *Index) Page(r market.SnapshotRequest) ([][]byte, market.SnapshotEnd) {
	x.own()
	cells, has := parseCells(r.Cells), haves(r.Have)
	most := int(r.Max)
	if most == 0 || most > market.MaxSnapshotPage {
		most = market.MaxSnapshotPage
	}
	now := x.cfg.Clock().UnixMilli()
	depth := x.shelf.depths()
	x.mu.Lock()
	defer x.mu.Unlock()
	end := market.SnapshotEnd{Next: market.Cursor{Instance: x.arrivals.instance, Seq: x.arrivals.last}}
	end.Held = x.held(cells, now)
	if len(cells) > 0 {
		end.Depth = uint8(min(depth[cells[0].bucket], market.MaxCellDepth))
	}
	var page [][]byte
	size := 0
	for _, a := range x.arrivals.since(r.Since) {
		e := a.entry
		if e.seq != a.seq || now >= e.until || e.gone || has[[market.SnapshotNameSize]byte(e.Hash[:])] || !e.in(cells) {
			continue
		}
		if len(page) == most || size+len(e.Raw) > maxPageBytes {
			end.Next.Seq, end.More = a.seq-1, true
			break
		}
		page = append(page, e.Raw)
		size += len(e.Raw)
	}
	return page, end
}

// held counts the open offers of some cells. The index is locked.
func (x *Index) held(cells []cell, now int64) (n uint32) {
	for _, r := range x.rigs {
		for _, e := range r.offers {
			if !e.gone && e.Offer.State != market.OfferWithdrawn && now < e.Offer.Expires && e.in(cells) {
				n++
			}
		}
	}
	return n
}

// haves reads the beginnings of hashes that an asker put together.
func haves(data []byte) map[[market.SnapshotNameSize]byte]bool {
	has := make(map[[market.SnapshotNameSize]byte]bool, len(data)/market.SnapshotNameSize)
	for len(data) >= market.SnapshotNameSize {
		has[[market.SnapshotNameSize]byte(data[:market.SnapshotNameSize])] = true
		data = data[market.SnapshotNameSize:]
	}
	return has
}

// own takes this rig's own offers as they stand.
func (x *Index) own() {
	if x.serves() {
		x.answered(x.cfg.Self, x.cfg.Offers(), x.cfg.Clock())
	}
}

// have puts together the beginnings of the hashes of what is held of some cells, to be left out of a snapshot.
func (x *Index) have(cells []cell, now int64) []byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	var data []byte
	for _, r := range x.rigs {
		for _, e := range r.offers {
			if now >= e.until || e.source == FromMemory || !e.in(cells) {
				continue // of what is only remembered others are to confirm that it stands
			}
			if data = append(data, e.Hash[:market.SnapshotNameSize]...); len(data) == market.SnapshotNameSize*market.MaxSnapshotHave {
				return data
			}
		}
	}
	return data
}
