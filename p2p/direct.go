package p2p

import (
	"context"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"

	"haggle/market"
)

const (
	relayedDial = 6 * time.Second // the relay is called first, then the peer, and both shake hands twice
	punchBegin  = 5 * time.Second // for the peer to learn where this node is and to begin: it waits for what others see of it
)

// patience is how long a dial of a peer may take: one that has addresses at relays takes more round trips.
func (n *Node) patience(addrs []multiaddr.Multiaddr) time.Duration {
	if slices.ContainsFunc(addrs, circuit) {
		return max(n.cfg.DialTimeout, relayedDial)
	}
	return n.cfg.DialTimeout
}

// awaitDirect makes sure that a peer is not connected through small relays only, where a protocol must not use these: it waits for a hole,
// and calls the peer through its other relays where there is none.
func (n *Node) awaitDirect(ctx context.Context, id peer.ID, key market.Key, limit Limit) error {
	if limit.Relayed || n.host.Network().Connectedness(id) != network.Limited {
		return nil
	}
	known := n.reach.punches.vain(id) && n.callOtherwise(ctx, id)
	if !known && !n.awaitHole(ctx, id) && !n.callOtherwise(ctx, id) {
		return relayOnly(key)
	}
	if n.host.Network().Connectedness(id) == network.Connected || n.callOtherwise(ctx, id) {
		return nil
	}
	// The connection that was waited on is gone: the relay let go, or somebody else's tunnel had the peer called anew.
	if n.connect(network.WithAllowLimitedConn(ctx, "as before"), id) != nil {
		return unreachable(key)
	}
	if n.host.Network().Connectedness(id) != network.Connected {
		return relayOnly(key)
	}
	return nil
}

// awaitHole waits until a peer that is connected through a small relay is connected otherwise, and reports false where that is not to be
// expected any more. The peer behind the router punches the hole, at once after it was called; so there is nothing to wait for once its
// tries have failed, or where it has not begun.
func (n *Node) awaitHole(ctx context.Context, id peer.ID) bool {
	opened := n.limitedSince(id)
	ctx, cancel := context.WithDeadline(ctx, opened.Add(punchPatience))
	defer cancel()
	begun := time.NewTimer(time.Until(opened.Add(punchBegin)))
	defer begun.Stop()
	check := time.NewTicker(punchLook)
	defer check.Stop()
	again := false
	for n.host.Network().Connectedness(id) == network.Limited {
		state, changed := n.reach.punches.state(id)
		if state == punchOver {
			return false
		}
		late := begun.C
		if state == punchRuns {
			late = nil
		}
		select {
		case <-changed:
		case <-check.C: // a connection may come otherwise than by a hole
		case <-late:
			if again || !n.redialRelayed(ctx, id) {
				return false
			}
			again = true
			begun.Reset(punchBegin)
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// redialRelayed calls a peer anew through a relay, so that it tries to punch a hole again: it tries once after it was called, and in
// vain where this node had only just begun and did not know yet how others see it. It reports false where a bid may be under way.
func (n *Node) redialRelayed(ctx context.Context, id peer.ID) bool {
	if n.bidding(id) {
		return false
	}
	_ = n.host.Network().ClosePeer(id) // leases are opened again by themselves
	n.log.Debug("a peer is called again, so that it punches a hole", "peer", peerText(id))
	return n.connect(network.WithAllowLimitedConn(ctx, "punch again"), id) == nil
}

// punchLook is how often a wait for a direct connection looks for one that nobody punched.
const punchLook = 100 * time.Millisecond

func relayOnly(key market.Key) error {
	return market.NewError(market.CodeRelayOnly, "peer", key.String())
}

// limitedSince returns when the first connection through a small relay to a peer was opened.
func (n *Node) limitedSince(id peer.ID) time.Time {
	since := time.Now()
	for _, c := range n.host.Network().ConnsToPeer(id) {
		if at := c.Stat().Opened; isLimited(c) && at.Before(since) {
			since = at
		}
	}
	return since
}
