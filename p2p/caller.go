package p2p

import (
	"net/netip"
	"slices"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"haggle/market"
)

// caller is who opens a stream, and with whom it shares what strangers may take.
type caller struct {
	peer  market.Key
	owner market.Key     // the peer itself where nobody says whose program it is
	nets  []netip.Prefix // narrowest first; none for callers on this machine and in private networks
	known bool           // it has an open lease with this program, or its user let it in by name
}

// group is what has a fair share: the widest network of a caller. All callers on this machine and in private networks are one, the
// zero prefix.
func (c caller) group() netip.Prefix {
	if len(c.nets) == 0 {
		return netip.Prefix{}
	}
	return c.nets[len(c.nets)-1]
}

// Widths of networks. A household, a farm or a carrier's translator has one IPv4 address; whoever rents machines gets addresses of
// few /24s. With IPv6 a machine has a /64, a household a /56, a customer a /48 (RFC 6177, RIPE-690).
var (
	widths4 = [...]int{32, 24}
	widths6 = [...]int{64, 56, 48}
)

// netsOf returns the networks that an address counts for. A machine's own and private addresses count for none: whoever has one
// was let in by the owner of that network.
func netsOf(addr netip.Addr) []netip.Prefix {
	addr = addr.Unmap().WithZone("")
	if !addr.IsValid() || addr.IsLoopback() || addr.IsPrivate() || addr.IsLinkLocalUnicast() {
		return nil
	}
	widths := widths6[:]
	if addr.Is4() {
		widths = widths4[:]
	}
	nets := make([]netip.Prefix, 0, len(widths))
	for _, bits := range widths {
		if p, err := addr.Prefix(bits); err == nil {
			nets = append(nets, p)
		}
	}
	return slices.Clip(nets)
}

// ipOf returns the IP address at the far end of a connection, which is the relay's where there is one.
func ipOf(addr multiaddr.Multiaddr) netip.Addr {
	ip, err := manet.ToIP(addr)
	if err != nil {
		return netip.Addr{}
	}
	out, _ := netip.AddrFromSlice(ip)
	return out.Unmap()
}

// callerOf describes who opened a stream.
func (a *access) callerOf(peer market.Key, conn network.Conn) caller {
	return caller{peer: peer, owner: a.ownerOf(peer), nets: netsOf(a.place(peer, conn.RemoteMultiaddr())), known: a.known(peer)}
}
