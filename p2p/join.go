package p2p

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"

	"haggle/market"
)

const (
	joinTimeout  = 5 * time.Second // one dial of a bootstrap peer
	minJoinRetry = 250 * time.Millisecond
	maxJoinRetry = 30 * time.Second
	minAlone     = 2 * time.Second // between tries beside rigs that one knows: there is no hurry
	rejoinEvery  = time.Minute     // a bootstrap peer that restarted knows nobody until somebody calls it
)

// keepJoined dials the bootstrap peers until the routing table has a peer, and again whenever it has none.
func (n *Node) keepJoined(ctx context.Context) {
	retry, joined := minJoinRetry, false
	var rejoin time.Time
	for ctx.Err() == nil {
		change := n.tableChange()
		if n.dht.RoutingTable().Size() > 0 {
			n.setReason("")
			if !joined {
				joined, retry, rejoin = true, minJoinRetry, time.Now().Add(jitter(rejoinEvery))
				if n.cfg.Mode != ModeClient { // a client learns as it asks: a full table costs more than it saves
					// It only asks for a refresh, which goes on in the background, and reports nothing.
					_ = n.dht.Bootstrap(ctx)
				}
				n.log.Info("joined the network", "network", n.cfg.Network)
			}
			wait(ctx, time.Until(rejoin), change)
			if !time.Now().Before(rejoin) {
				n.dialBootstrap(ctx)
				rejoin = time.Now().Add(jitter(rejoinEvery))
			}
			continue
		}
		if joined {
			n.log.Warn("lost the last peer of the network", "network", n.cfg.Network)
			joined = false
		}
		if reason := n.dialBootstrap(ctx); n.setReason(reason) {
			n.log.Info("not joined yet", "network", n.cfg.Network, "reason", reason)
		}
		if len(n.acquaintances()) > 0 {
			n.tableChanged() // Ready looks again; nobody else minds
			change = n.tableChange()
			retry = max(retry, minAlone)
		}
		_ = n.dht.Bootstrap(ctx) // looks at the connected peers once more
		wait(ctx, jitter(retry), change)
		retry = min(2*retry, maxJoinRetry)
	}
}

// dialBootstrap connects to the bootstrap peers that are not connected and returns why that may leave the table empty.
func (n *Node) dialBootstrap(ctx context.Context) string {
	if !n.members.listed() {
		return n.key.String() + " is not on the list of network " + n.cfg.Network + ": whoever made the network has to invite it"
	}
	if len(n.bootstrap) == 0 {
		return n.unmet()
	}
	var dials sync.WaitGroup
	failed := make([]bool, len(n.bootstrap))
	for i, info := range n.bootstrap {
		dials.Go(func() { failed[i] = n.dial(ctx, info, joinTimeout) != nil })
	}
	dials.Wait()
	silent, first := 0, ""
	for i, info := range n.bootstrap {
		if failed[i] {
			silent++
			first = info.ID.String()
		}
	}
	switch {
	case !n.members.informed():
		return "no member tells who belongs to the network: they may be off, or not know yet that " + n.key.String() + " is invited"
	case silent < len(n.bootstrap):
		return fmt.Sprintf("bootstrap peers answer, but none knows network %s yet", n.cfg.Network)
	case silent == 1:
		return "bootstrap peer " + first + " does not answer"
	}
	return "none of the " + strconv.Itoa(silent) + " bootstrap peers answers"
}

// dial connects to a peer unless it is connected, at the given and the remembered addresses. It does not wait out the pause
// that libp2p makes after a failed dial.
func (n *Node) dial(ctx context.Context, info peer.AddrInfo, timeout time.Duration) error {
	if s, ok := n.host.Network().(*swarm.Swarm); ok {
		s.Backoff().Clear(info.ID)
	}
	ctx, cancel := context.WithTimeout(network.WithDialPeerTimeout(ctx, timeout), timeout)
	defer cancel()
	return n.host.Connect(ctx, info)
}

// setReason records why the node is not joined, "" if it is, and reports whether that is news.
func (n *Node) setReason(reason string) (news bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	news = n.reason != reason
	n.reason = reason
	return news
}

// Ready returns nil once there is somebody to ask: the routing table has a peer, or a bootstrap peer gives offers. When ctx ends first the error has code
// CodeNoPeers and says why.
func (n *Node) Ready(ctx context.Context) error {
	for {
		change := n.tableChange()
		if n.anybody() {
			return nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return n.notReady()
		case <-n.closed:
			return n.notReady()
		}
	}
}

func (n *Node) notReady() error {
	return market.NewError(market.CodeNoPeers, "network", n.cfg.Network, "reason", n.whyNotReady())
}

func (n *Node) whyNotReady() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.closing:
		return "the node is closed"
	case n.reason == "":
		return "the routing table is empty"
	}
	return n.reason
}

// jitter returns a duration up to a tenth shorter or longer, so that nodes started together do not stay in step.
func jitter(d time.Duration) time.Duration {
	return d + time.Duration((rand.Float64()-0.5)*0.2*float64(d))
}

// wait returns after a time, with the signal or when ctx ends.
func wait(ctx context.Context, d time.Duration, signal <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-signal:
	case <-ctx.Done():
	}
}
