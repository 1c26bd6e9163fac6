package p2p

import (
	"context"
	"math/rand/v2"
	"time"
)

// Every node that can be called from outside relays, and all of them in one bucket would make it the hottest of the network. Rigs need
// a handful to choose from, so each node decides by lot whether it is found there.
const (
	relaysEnough = 64 // that stand in the bucket; several times what a search for two takes
	lotEvery     = 2 * time.Hour
	lotSoon      = 2 * time.Second // until the node relays and knows somebody
)

// drawn reports whether a node is found in the bucket of relays, where so many others are: surely while they are few, and otherwise so
// seldom that a network of 100 000 has about a thousand there, none of whom can keep the others out by standing there first.
func drawn(others int) bool {
	return others < relaysEnough || rand.Float64() < relaysEnough/float64(others)/8
}

// keepLot draws again now and then, as long as the node relays for strangers.
func (r *reacher) keepLot(ctx context.Context) {
	for ctx.Err() == nil {
		pause := lotSoon
		if r.serving() == RelaySmall && r.node.dht.RoutingTable().Size() > 0 {
			r.draw(drawn(r.countRelays(ctx)))
			pause = jitter(lotEvery)
		}
		wait(ctx, pause, nil)
	}
}

func (r *reacher) draw(lot bool) {
	r.mu.Lock()
	news := r.lot != lot
	r.lot = lot
	r.mu.Unlock()
	if news {
		r.node.retell()
	}
}

// countRelays counts those that are found in the bucket of relays now, without this node.
func (r *reacher) countRelays(ctx context.Context) int {
	ctx, cancel := context.WithTimeout(ctx, relayLookup)
	defer cancel()
	count := 0
	for range r.node.Find(ctx, relayBucket) {
		count++
	}
	return count
}

// also returns the buckets in which the node is found: with that of relays where it serves strangers and was drawn.
func (r *reacher) also(buckets []string) []string {
	r.mu.Lock()
	lot := r.lot
	r.mu.Unlock()
	if !lot || r.serving() != RelaySmall {
		return buckets
	}
	return append(buckets[:len(buckets):len(buckets)], relayBucket)
}
