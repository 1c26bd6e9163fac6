package p2p

import (
	"net/netip"

	"haggle/market"
)

// AddressOf returns the IP address at which a connected peer itself is reached; the zero address where it is not connected, or through a
// relay only.
func (n *Node) AddressOf(key market.Key) netip.Addr {
	id, err := peerID(key)
	if err != nil {
		return netip.Addr{}
	}
	for _, c := range n.host.Network().ConnsToPeer(id) {
		if isRelayed(c) {
			continue
		}
		if ip := ipOf(c.RemoteMultiaddr()); ip.IsValid() {
			return ip
		}
	}
	return netip.Addr{}
}
