// Package assemble holds what the assemblies of both programs share: the network as their users see it.
package assemble

import (
	"haggle/internal/view"
	"haggle/p2p"
)

// Network returns where a node stands.
func Network(n *p2p.Node) view.Network {
	h := n.Health()
	return view.Network{
		Reach: ReachOf(n), Sources: sourcesOf(n),
		Name: n.Network(), Key: n.ID().String(), Addrs: n.Addrs(), Ready: h.Ready, Reason: h.Reason, Peers: h.Peers, Table: h.TableSize,
	}
}

// Peers returns the programs that a node is connected with.
func Peers(n *p2p.Node) []view.Peer {
	peers := []view.Peer{}
	for _, p := range n.Peers() {
		v := view.Peer{Key: p.Key.String(), Agent: p.Agent, Addrs: p.Addrs, LatencyMs: float64(p.Latency.Microseconds()) / 1000, Direction: "out"}
		if p.Inbound {
			v.Direction = "in"
		}
		peers = append(peers, v)
	}
	return peers
}
