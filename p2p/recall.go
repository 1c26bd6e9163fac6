package p2p

import (
	"math/rand/v2"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/multiformats/go-multiaddr"

	"haggle/market"
)

// maxContacts bounds the peers that Contacts returns.
const maxContacts = 8

// Contacts returns peers that can be asked for a snapshot at once, before anything is looked up: those by which the node joins,
// connected or not, and those of the others that it is connected with which say that they serve one. The first are in no order.
func (n *Node) Contacts() []market.Key {
	var keys []market.Key
	seen := map[market.Key]bool{n.key: true}
	add := func(key market.Key, err error) {
		if err == nil && !seen[key] && len(keys) < maxContacts {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	for _, i := range rand.Perm(len(n.bootstrap)) {
		info := n.bootstrap[i]
		n.host.Peerstore().AddAddrs(info.ID, info.Addrs, peerstore.TempAddrTTL) // nobody may have dialled it yet
		add(keyOf(info.ID))
	}
	for _, id := range n.introduced() {
		add(keyOf(id))
	}
	for _, id := range n.host.Network().Peers() {
		if speaks, err := n.host.Peerstore().SupportsProtocols(id, protocol.ID(SnapshotProtocol)); err == nil && len(speaks) > 0 {
			add(keyOf(id))
		}
	}
	return keys
}

// Remember takes addresses of a peer that an earlier life of the program kept: it is dialled at them before anything is looked up. What
// is no address, or none that may be believed, is passed over.
func (n *Node) Remember(key market.Key, addrs []string) {
	id, err := peerID(key)
	if err != nil || key == n.key {
		return
	}
	var list []multiaddr.Multiaddr
	for _, text := range addrs[:min(len(addrs), maxAddrs)] {
		if addr, err := multiaddr.NewMultiaddr(text); err == nil && len(addr.Bytes()) <= maxAddrBytes {
			list = append(list, addr)
		}
	}
	n.host.Peerstore().AddAddrs(id, list, announceValidity)
}

// AddrsOf returns what a program keeps of a peer's addresses for its next life: those of its connections that this node dialled, then
// those that the peer is believed to have. On the public network private addresses are only among
// them where they were used.
func (n *Node) AddrsOf(key market.Key) []string {
	id, err := peerID(key)
	if err != nil {
		return nil
	}
	var out []string
	seen := map[string]bool{}
	add := func(addr multiaddr.Multiaddr) {
		if text := addr.String(); !seen[text] && len(out) < maxAddrs && len(addr.Bytes()) <= maxAddrBytes {
			seen[text] = true
			out = append(out, text)
		}
	}
	for _, c := range n.host.Network().ConnsToPeer(id) {
		if c.Stat().Direction == network.DirOutbound {
			add(c.RemoteMultiaddr())
		}
	}
	for _, addr := range n.host.Peerstore().Addrs(id) {
		if n.cfg.Network != market.NetworkMain || callable(addr) { // elsewhere people know each other: see believable
			add(addr)
		}
	}
	return out
}

// PathTo returns how a connected peer is reached, and the shortest round trip to it that was measured lately: "" and 0 where
// they are not known.
func (n *Node) PathTo(key market.Key) (path string, rtt time.Duration) {
	id, err := peerID(key)
	if err != nil {
		return "", 0
	}
	for _, c := range n.host.Network().ConnsToPeer(id) {
		if p := n.pathOf(c); path == "" || path == ReachRelayed {
			path = p
		}
	}
	return path, n.trips.shortest(id, time.Now())
}
