package p2p

import (
	"context"
	"iter"

	"github.com/libp2p/go-libp2p/core/peer"

	"haggle/market"
)

const (
	maxFound = 1024 // providers of one lookup
	maxAddrs = 16   // addresses kept of what others say about a peer
)

// Find streams the keys that announced themselves in a bucket, each once, as the lookup meets them and without this node's
// own. It waits until the node has joined. It ends with the lookup or with ctx, for which the caller sets a deadline: peers
// that went silent can hold a lookup up for long after the last find.
func (n *Node) Find(ctx context.Context, bucket string) iter.Seq[market.Key] {
	return func(yield func(market.Key) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		name, err := bucketKey(n.cfg.Network, bucket)
		if err != nil || n.Ready(ctx) != nil {
			return // nobody to ask: Ready tells why
		}
		seen := map[market.Key]bool{n.key: true}
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

// remember keeps what others say about a peer's addresses as long as they say it.
func (n *Node) remember(info peer.AddrInfo) {
	n.host.Peerstore().AddAddrs(info.ID, info.Addrs[:min(len(info.Addrs), maxAddrs)], announceValidity)
}
