package p2p

import (
	"context"
	"iter"

	"github.com/libp2p/go-libp2p/core/protocol"

	"haggle/market"
)

// maxFound is how many providers one lookup gives.
const maxFound = 1024

// Find streams keys, each once and without this node's own: those of connected bootstrap peers that give offers, whom nobody
// has to look up, then those that announced themselves in a bucket, as the lookup meets them. It waits until there is somebody
// to ask. It ends with the lookup or with ctx, for which the caller sets a deadline: peers that went silent can hold a lookup up
// for long after the last find.
func (n *Node) Find(ctx context.Context, bucket string) iter.Seq[market.Key] {
	return func(yield func(market.Key) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		name, err := bucketKey(n.cfg.Network, bucket)
		if err != nil || n.Ready(ctx) != nil {
			return // nobody to ask: Ready tells why
		}
		seen := map[market.Key]bool{n.key: true}
		for _, key := range n.acquaintances() {
			seen[key] = true
			if !yield(key) {
				return
			}
		}
		if n.dht.RoutingTable().Size() == 0 {
			return
		}
		for info := range n.dht.FindProvidersAsync(ctx, name, maxFound) {
			key, err := keyOf(info.ID)
			if err != nil {
				continue
			}
			n.remember(info)
			if seen[key] {
				continue
			}
			seen[key] = true
			if !yield(key) {
				return
			}
		}
	}
}

// acquaintances are the connected ones of those whom this node knows by itself, and who give offers. Two people who know each other need no network: a rig that
// nobody can reach from outside serves no DHT, so nothing could be looked up there.
func (n *Node) acquaintances() []market.Key {
	var keys []market.Key
	for _, id := range n.introduced() {
		key, err := keyOf(id)
		if err != nil || len(n.host.Network().ConnsToPeer(id)) == 0 {
			continue
		}
		if speaks, err := n.host.Peerstore().SupportsProtocols(id, protocol.ID(OffersProtocol)); err == nil && len(speaks) > 0 {
			keys = append(keys, key)
		}
	}
	return keys
}

// anybody reports whether there is somebody to ask for offers.
func (n *Node) anybody() bool { return n.dht.RoutingTable().Size() > 0 || len(n.acquaintances()) > 0 }
