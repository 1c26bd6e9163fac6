package p2p

import (
	"slices"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"haggle/market"
)

// Bounds of what others say about a peer.
const (
	maxAddrs     = 16  // addresses that are kept
	maxAddrBytes = 512 // bytes of one
)

// believable returns those of a peer's addresses, told by somebody else, that are worth a dial: few, short, and on the public network
// none of a private one: elsewhere people know each other. A stranger could make every reader of a record knock at machines of the reader's own LAN. At home, where all
// peers are on that LAN, it tells nobody anything.
func believable(network string, home bool, addrs []multiaddr.Multiaddr) []multiaddr.Multiaddr {
	var out []multiaddr.Multiaddr
	for _, addr := range addrs {
		if len(out) == maxAddrs {
			break
		}
		if len(addr.Bytes()) > maxAddrBytes || network == market.NetworkMain && !home && !callable(addr) {
			continue
		}
		out = append(out, addr)
	}
	return out
}

// callable reports whether an address leads over the internet: to the peer itself, or to its relay.
func callable(addr multiaddr.Multiaddr) bool {
	if ip := ipOf(addr); ip.IsValid() {
		return manet.IsPublicAddr(addr) && !ip.IsUnspecified() && !ip.IsMulticast()
	}
	names := addr.Protocols()
	dns := []int{multiaddr.P_DNS, multiaddr.P_DNS4, multiaddr.P_DNS6, multiaddr.P_DNSADDR}
	return len(names) > 1 && slices.Contains(dns, names[0].Code)
}

// remember keeps what others say about a peer's addresses as long as they say it.
func (n *Node) remember(info peer.AddrInfo) {
	n.host.Peerstore().AddAddrs(info.ID, n.believable(info.Addrs), announceValidity)
}

func (n *Node) believable(addrs []multiaddr.Multiaddr) []multiaddr.Multiaddr {
	return believable(n.cfg.Network, atHome(n.host), addrs)
}

// atHome reports whether every peer that a host is connected with is on this machine or its private networks.
func atHome(h host.Host) bool {
	for _, c := range h.Network().Conns() {
		if ip := ipOf(c.RemoteMultiaddr()); !ip.IsValid() || len(netsOf(ip)) > 0 {
			return false
		}
	}
	return true
}
