package p2p

import (
	"slices"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
)

// maxAcquainted is how many peers are kept for the program's next life, each with at most maxKept addresses.
const (
	maxAcquainted = 32
	maxKept       = 2
)

// Acquainted returns the addresses of peers that are worth to be called first in the program's next life, each ending in /p2p/ID:
// those of the routing table that answered a call of ours, then others that did, at most 32 with 2 addresses each.
func (n *Node) Acquainted() []string {
	ids := n.dht.RoutingTable().ListPeers()
	for _, id := range n.host.Network().Peers() {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	var out []string
	peers := 0
	for _, id := range ids {
		if _, err := keyOf(id); err != nil || !n.members.allowsID(id) {
			continue
		}
		addrs := n.answeredAt(id)
		if len(addrs) == 0 {
			continue
		}
		for _, addr := range addrs {
			out = append(out, addr.String()+"/p2p/"+id.String())
		}
		if peers++; peers == maxAcquainted {
			break
		}
	}
	return out
}

// answeredAt returns the addresses at which a peer answered calls of this node, none of them a relay's.
func (n *Node) answeredAt(id peer.ID) []multiaddr.Multiaddr {
	var addrs []multiaddr.Multiaddr
	for _, c := range n.host.Network().ConnsToPeer(id) {
		stat := c.Stat()
		if stat.Direction == network.DirOutbound && !stat.Limited && len(addrs) < maxKept {
			addrs = append(addrs, c.RemoteMultiaddr())
		}
	}
	return addrs
}
