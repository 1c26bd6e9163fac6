package p2p

import (
	"context"
	"slices"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// plausible bounds what a source named: peers with market keys, each once and not this node itself, with addresses that can be
// another machine's. Loopback is another program's only where this node is on loopback itself.
func (n *Node) plausible(source Source, infos []peer.AddrInfo) []peer.AddrInfo {
	loopback := n.onLoopback()
	seen := map[peer.ID]bool{n.host.ID(): true}
	var kept []peer.AddrInfo
	for _, info := range infos[:min(len(infos), maxNamed)] {
		if _, err := keyOf(info.ID); err != nil || seen[info.ID] {
			continue
		}
		seen[info.ID] = true
		addrs := slices.DeleteFunc(slices.Clone(info.Addrs[:min(len(info.Addrs), maxAddrs)]), func(addr multiaddr.Multiaddr) bool {
			return manet.IsIPUnspecified(addr) || manet.IsIPLoopback(addr) && !loopback || len(addr.Bytes()) > maxNamedAddr
		})
		switch source {
		case SourcePublic:
			addrs = onlyPublic(addrs)
		case SourceDNS:
			addrs = n.believable(addrs)
		default: // the peer said it itself
		}
		if len(addrs) > 0 {
			kept = append(kept, peer.AddrInfo{ID: info.ID, Addrs: addrs})
		}
	}
	return kept
}

// note keeps the addresses that a source named, as long as an announcement is valid.
func (n *Node) note(info peer.AddrInfo) {
	n.host.Peerstore().AddAddrs(info.ID, info.Addrs, announceValidity)
}

// onLoopback reports whether this node can be called on loopback alone, and perhaps over a relay.
func (n *Node) onLoopback() bool {
	any := false
	for _, addr := range n.host.Network().ListenAddresses() {
		switch ip := ipOf(addr); {
		case ip.IsValid() && !ip.IsLoopback():
			return false
		case ip.IsValid():
			any = true
		}
	}
	return any
}

// publicAddrs are the addresses at which this node believes it can be called from everywhere, without a relay.
func (n *Node) publicAddrs() []multiaddr.Multiaddr { return onlyPublic(n.host.Addrs()) }

func onlyPublic(addrs []multiaddr.Multiaddr) []multiaddr.Multiaddr {
	var kept []multiaddr.Multiaddr
	for _, addr := range addrs {
		if _, err := addr.ValueForProtocol(multiaddr.P_CIRCUIT); err != nil && manet.IsPublicAddr(addr) {
			kept = append(kept, addr)
		}
	}
	return kept
}

// parseInfos reads multiaddrs that end in /p2p/ID and passes over what is none.
func parseInfos(texts []string) []peer.AddrInfo {
	var addrs []multiaddr.Multiaddr
	for _, text := range texts[:min(len(texts), maxNamed)] {
		if addr, err := multiaddr.NewMultiaddr(text); err == nil && len(text) <= 2*maxNamedAddr {
			addrs = append(addrs, addr)
		}
	}
	return infosOf(addrs)
}

// infosOf groups multiaddrs by peer and passes over those that name none.
func infosOf(addrs []multiaddr.Multiaddr) []peer.AddrInfo {
	var good []multiaddr.Multiaddr
	for _, addr := range addrs {
		if _, id := peer.SplitAddr(addr); id != "" {
			good = append(good, addr)
		}
	}
	infos, err := peer.AddrInfosFromP2pAddrs(good...)
	if err != nil {
		return nil
	}
	return infos
}

// keepRemembered dials the peers of an earlier life, and again while nobody else is known.
func (n *Node) keepRemembered(ctx context.Context) {
	infos := parseInfos(n.cfg.Sources.Remembered)
	pause := minLook
	for ctx.Err() == nil {
		n.meet(ctx, SourceRemembered, infos, maxDialled)
		reason := ""
		if len(n.connectedOf(n.sources.of(SourceRemembered))) == 0 {
			reason = "none of those that were known answers"
		}
		n.sources.told(SourceRemembered, len(infos), reason)
		pause = n.lookAgain(pause)
		n.rest(ctx, jitter(pause))
	}
}
