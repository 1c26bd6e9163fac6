package index

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"haggle/market"
)

// Bounds of asking strangers for the own offer: as much as a renter's first screen costs, and no more.
const (
	visibleAsks  = 8                  // strangers asked
	visibleFound = 64                 // rigs of one lookup among whom they are chosen
	visiblePage  = 2 * market.MaxCell // offers taken of each
)

// Visible is what strangers showed of this rig's offer, asked as a renter asks.
type Visible struct {
	At      time.Time // zero: nobody was asked yet
	Model   string    // that was asked for; "" for a rig without a model
	Asked   int       // strangers
	Answers int       // of these, who answered
	Keep    int       // of these, whose shelf is to hold the offer
	Seen    int       // of these, whose shelf does

	Price    market.Rate // of a slot-hour
	Currency string
	Rank     int // 1: no offer of the model that the strangers showed is cheaper; 0 is unknown
	Of       int // offers of the model and currency that the strangers showed, this rig's included
}

// shown is what one stranger showed.
type shown struct {
	peer   market.Key
	depth  int // of its own cell in the bucket that was asked for
	offers []market.Offer
}

// Visible asks strangers, whom it looks up as a renter does, for the offers of this rig's model, and says who showed this rig's own and
// where it stands among them by its price. It takes as long as the slowest, a few seconds at most. Without an own offer that is open it
// asks nobody.
func (x *Index) Visible(ctx context.Context) Visible {
	x.own()
	now := x.cfg.Clock()
	mine := x.Of(x.cfg.Self, now)
	if len(mine) == 0 {
		return Visible{}
	}
	own := mine[0].Offer
	bucket, model := market.BucketAny, ""
	for _, b := range market.Buckets(own) {
		if name, ok := strings.CutPrefix(b, "model/"); ok {
			bucket, model = b, name
			break
		}
	}
	strangers := x.strangers(ctx, bucket)
	answers := make(chan *shown, len(strangers))
	var group sync.WaitGroup
	for _, peer := range strangers {
		group.Go(func() { answers <- x.show(ctx, peer, bucket) })
	}
	group.Wait()
	close(answers)
	var all []shown
	for s := range answers {
		if s != nil {
			all = append(all, *s)
		}
	}
	v := visibleTo(own, bucket, model, all, now.UnixMilli())
	v.At, v.Asked = now, len(strangers)
	return v
}

// strangers looks rigs up as a renter does: first those that stand for the whole bucket, then those of the cell in which this rig is.
func (x *Index) strangers(ctx context.Context, bucket string) []market.Key {
	x.shelf.mu.Lock()
	depth := x.shelf.depth[bucket]
	x.shelf.mu.Unlock()
	seen := map[market.Key]bool{x.cfg.Self: true}
	var chosen []market.Key
	for i, c := range []cell{{bucket: bucket}, x.ownCell(bucket, depth)} {
		var found []market.Key
		wait, cancel := context.WithTimeout(ctx, lookupTime)
		for key := range x.cfg.Net.Find(wait, c.String()) {
			if seen[key] {
				continue
			}
			seen[key] = true
			if found = append(found, key); len(found) == visibleFound {
				break
			}
		}
		cancel()
		rand.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
		room := visibleAsks - len(chosen)
		if i == 0 && depth > 0 {
			room = visibleAsks / 2
		}
		chosen = append(chosen, found[:min(len(found), room)]...)
		if depth == 0 {
			break // the two are one
		}
	}
	return chosen
}

// show asks one stranger; nil where it does not answer.
func (x *Index) show(ctx context.Context, peer market.Key, bucket string) *shown {
	ctx, cancel := context.WithTimeout(ctx, visitTime)
	defer cancel()
	raws, end, err := x.cfg.Net.Snapshot(ctx, peer, market.SnapshotRequest{Cells: []string{bucket}, Max: visiblePage})
	if err != nil {
		return nil
	}
	s := &shown{peer: peer, depth: min(int(end.Depth), market.MaxCellDepth)}
	for _, st := range x.open(raws) {
		if st != nil {
			s.offers = append(s.offers, st.Offer)
		}
	}
	return s
}

// visibleTo judges what strangers showed at a time, in Unix milliseconds.
func visibleTo(own market.Offer, bucket, model string, all []shown, now int64) Visible {
	v := Visible{Model: model, Answers: len(all), Price: own.Prices.Slot, Currency: own.Prices.Currency, Of: 1}
	place := market.CellPlace(bucket, own.Rig)
	others := map[market.Key]market.Rate{} // the cheapest of each rig
	for _, s := range all {
		seen := false
		for _, o := range s.offers {
			switch {
			case o.CheckAge(now) != nil || o.State != market.OfferOpen:
			case o.Rig == own.Rig:
				seen = seen || o.ID == own.ID
			case o.Prices.Currency == own.Prices.Currency && sells(o, model):
				if price, known := others[o.Rig]; !known || o.Prices.Slot < price {
					others[o.Rig] = o.Prices.Slot
				}
			}
		}
		keeps := market.CellPrefix(market.CellPlace(bucket, s.peer), s.depth) == market.CellPrefix(place, s.depth)
		if keeps || seen {
			v.Keep++
		}
		if seen {
			v.Seen++
		}
	}
	if len(all) == 0 {
		return v
	}
	v.Rank = 1
	for _, price := range others {
		v.Of++
		if price < own.Prices.Slot {
			v.Rank++
		}
	}
	return v
}

// sells reports whether an offer has a slot of a model; every offer has one of no model.
func sells(o market.Offer, model string) bool {
	if model == "" {
		return true
	}
	for _, slot := range o.Slots {
		if strings.EqualFold(strings.ReplaceAll(slot.Model, " ", "_"), model) {
			return true
		}
	}
	return false
}
