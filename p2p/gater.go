package p2p

import (
	"net/netip"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"haggle/market"
)

// roster says who belongs to a network that is not open to everybody.
type roster interface {
	allows(peer market.Key) bool
}

// gater turns away whoever may not call: before the handshake by address, after it by key. Peers whose keys are no market keys have
// no place here, and in a lab no address that is not loopback.
type gater struct {
	loopback bool
	access   *access
	members  roster // nil: everybody
	reach    *reacher
}

func newGater(cfg Config) gater {
	return gater{loopback: market.IsLab(cfg.Network), access: cfg.access, members: cfg.members, reach: cfg.reacher}
}

// metadata are the addresses at which clouds tell their machines secrets: no peer is there, whoever says so.
var metadata = [...]netip.Addr{
	netip.AddrFrom4([4]byte{169, 254, 169, 254}), netip.AddrFrom4([4]byte{100, 100, 100, 200}), // most, and Alibaba Cloud
	netip.AddrFrom16([16]byte{0xfd, 0x00, 0x0e, 0xc2, 14: 0x02, 15: 0x54}), // Amazon
}

func (g gater) allows(addr multiaddr.Multiaddr) bool {
	return (!g.loopback || manet.IsIPLoopback(addr)) && g.access.admitsFrom(addr)
}

// InterceptPeerDial implements libp2p's connmgr.ConnectionGater.
func (g gater) InterceptPeerDial(id peer.ID) bool {
	key, err := keyOf(id)
	return err == nil && g.access.admits(key, time.Now()) && (g.members == nil || g.members.allows(key))
}

// InterceptAddrDial implements libp2p's connmgr.ConnectionGater.
func (g gater) InterceptAddrDial(id peer.ID, addr multiaddr.Multiaddr) bool {
	return g.allows(addr) && (g.reach == nil || !g.reach.avoids(id, addr)) && !slices.Contains(metadata[:], ipOf(addr))
}

// InterceptAccept implements libp2p's connmgr.ConnectionGater.
func (g gater) InterceptAccept(addrs network.ConnMultiaddrs) bool {
	return g.allows(addrs.RemoteMultiaddr())
}

// InterceptSecured implements libp2p's connmgr.ConnectionGater.
func (g gater) InterceptSecured(_ network.Direction, id peer.ID, _ network.ConnMultiaddrs) bool {
	return g.InterceptPeerDial(id)
}

// InterceptUpgraded implements libp2p's connmgr.ConnectionGater.
func (g gater) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) { return true, 0 }
