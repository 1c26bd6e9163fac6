package p2p

import (
	"context"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
)

// An address at a relay does not tell how much the relay carries: that shows when somebody is called through it. So a peer that was
// called through a small relay first is called through its others where a tunnel is wanted.
const (
	smallLife    = time.Hour        // how long a small relay is taken to stay one
	deafLife     = 10 * time.Minute // how long one is left alone through which nobody was reached
	maxSmall     = 1024             // relays remembered
	maxOtherways = 8                // relays of one peer
)

// detour is a call of one peer through other relays than small ones.
type detour struct{ done chan struct{} }

// sized notes how much the relay of a connection carries.
func (r *reacher) sized(c network.Conn) {
	relay, ok := relayOf(c.RemoteMultiaddr())
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !isLimited(c) {
		delete(r.small, relay)
		return
	}
	r.noteSmall(relay, smallLife)
}

// noteSmall has a relay left alone by tunnels. r.mu is held.
func (r *reacher) noteSmall(relay peer.ID, life time.Duration) {
	for old := range r.small {
		if len(r.small) < maxSmall {
			break
		}
		delete(r.small, old)
	}
	r.small[relay] = time.Now().Add(life)
}

// otherRelays are those of a peer that may carry tunnels.
func (r *reacher) otherRelays(id peer.ID) []peer.ID {
	var out []peer.ID
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, addr := range r.host.Peerstore().Addrs(id) {
		relay, ok := relayOf(addr)
		if ok && relay != r.host.ID() && !now.Before(r.small[relay]) && !slices.Contains(out, relay) && len(out) < maxOtherways {
			out = append(out, relay)
		}
	}
	return out
}

// avoids reports whether an address of a peer is not called now.
func (r *reacher) avoids(id peer.ID, addr multiaddr.Multiaddr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.detours[id] == nil {
		return false
	}
	relay, ok := relayOf(addr)
	return ok && time.Now().Before(r.small[relay])
}

// callOtherwise calls a peer that is connected through small relays anew through its other ones, if it has any, and reports whether it
// is connected without limits then.
func (n *Node) callOtherwise(ctx context.Context, id peer.ID) bool {
	r := n.reach
	r.mu.Lock()
	running := r.detours[id]
	r.mu.Unlock()
	if running != nil {
		select {
		case <-running.done:
		case <-ctx.Done():
		}
		return n.host.Network().Connectedness(id) == network.Connected
	}
	others := r.otherRelays(id)
	if len(others) == 0 || !n.quiet(ctx, id) {
		return false
	}
	mine := &detour{make(chan struct{})}
	r.mu.Lock()
	if r.detours[id] == nil {
		r.detours[id] = mine
	}
	first := r.detours[id] == mine
	r.mu.Unlock()
	if !first {
		return n.callOtherwise(ctx, id)
	}
	ctx = network.WithAllowLimitedConn(ctx, "through another relay")
	_ = n.host.Network().ClosePeer(id) // leases are opened again by themselves
	err := n.connect(ctx, id)
	r.mu.Lock()
	delete(r.detours, id)
	if n.host.Network().Connectedness(id) != network.Connected {
		for _, relay := range others {
			if time.Now().After(r.small[relay]) {
				r.noteSmall(relay, deafLife)
			}
		}
	}
	r.mu.Unlock()
	close(mine.done)
	if err != nil {
		err = n.connect(ctx, id) // as before
	}
	n.log.Debug("a peer is called through another relay", "peer", peerText(id), "err", err)
	return n.host.Network().Connectedness(id) == network.Connected
}

// quiet waits until no bid can be under way with a peer any more, and reports false where that may take longer than a bid does.
func (n *Node) quiet(ctx context.Context, id peer.ID) bool {
	for end := time.Now().Add(punchBegin); n.bidding(id); {
		if time.Now().After(end) || ctx.Err() != nil {
			return false
		}
		wait(ctx, punchLook, nil)
	}
	return true
}

// bidding reports whether a bid may be under way with a peer.
func (n *Node) bidding(id peer.ID) bool {
	bids := func(s network.Stream) bool { return time.Since(s.Stat().Opened) < punchBegin }
	return slices.ContainsFunc(n.host.Network().ConnsToPeer(id), func(c network.Conn) bool { return slices.ContainsFunc(c.GetStreams(), bids) })
}

// relayOf returns the relay of an address that is at one.
func relayOf(addr multiaddr.Multiaddr) (peer.ID, bool) {
	if !circuit(addr) {
		return "", false
	}
	text, err := addr.ValueForProtocol(multiaddr.P_P2P)
	if err != nil {
		return "", false
	}
	id, err := peer.Decode(text)
	return id, err == nil
}
