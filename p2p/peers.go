package p2p

import (
	"cmp"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"haggle/market"
)

// Health is how well the node is joined at a moment.
type Health struct {
	Ready        bool      // there is somebody to ask: see Node.Ready
	Reason       string    // why not, when not Ready
	Peers        int       // connected
	TableSize    int       // peers in the routing table
	Buckets      int       // in which this node wants to be found
	LastAnnounce time.Time // when the network last took all of them; zero: never yet
}

// Health returns the node's health now.
func (n *Node) Health() Health {
	h := Health{TableSize: n.dht.RoutingTable().Size(), Peers: len(n.host.Network().Peers())}
	h.Ready = n.anybody()
	if !h.Ready {
		h.Reason = n.whyNotReady()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	h.Buckets, h.LastAnnounce = len(n.wanted), n.announced
	return h
}

// Peer is a connected peer.
type Peer struct {
	Key     market.Key
	Addrs   []string      // the far ends of its connections
	Agent   string        // what it says it is, without control characters
	Latency time.Duration // round trip as measured by the DHT; zero: not measured
	Inbound bool          // it called us
	Since   time.Time     // its oldest connection
	Relayed bool          // every connection goes through a relay
}

// Peers returns the connected peers, ordered by key.
func (n *Node) Peers() []Peer {
	var out []Peer
	for _, id := range n.host.Network().Peers() {
		if p, ok := n.peer(id); ok {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b Peer) int { return cmp.Compare(string(a.Key[:]), string(b.Key[:])) })
	return out
}

// peer describes a peer; false if it is not connected any more.
func (n *Node) peer(id peer.ID) (Peer, bool) {
	key, err := keyOf(id)
	conns := n.host.Network().ConnsToPeer(id)
	if err != nil || len(conns) == 0 {
		return Peer{}, false
	}
	p := Peer{Key: key, Latency: n.host.Peerstore().LatencyEWMA(id), Relayed: true}
	if agent, err := n.host.Peerstore().Get(id, "AgentVersion"); err == nil {
		text, _ := agent.(string)
		p.Agent = printable(text)
	}
	for _, c := range conns {
		stat := c.Stat()
		p.Addrs = append(p.Addrs, c.RemoteMultiaddr().String())
		p.Relayed = p.Relayed && stat.Limited
		if p.Since.IsZero() || stat.Opened.Before(p.Since) {
			p.Since, p.Inbound = stat.Opened, stat.Direction == network.DirInbound
		}
	}
	return p, true
}
