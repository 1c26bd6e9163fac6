package p2p

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
)

const (
	interfaceProbe = 3 * time.Second  // for an answer after the machine's addresses changed
	probesAtOnce   = 32               // peers
	settled        = 30 * time.Second // a stream that is older belongs to a lease that was signed, and is opened again when it breaks
)

// keepPeers finds out soon that a peer with a lease is gone, and takes leases off relays that they need no longer.
func (r *reacher) keepPeers(ctx context.Context) {
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		r.leaveRelays()
		r.punchAgain(ctx)
		r.probe(ctx, r.busy(), probeTime)
	}
}

// busy returns the peers with streams of leases.
func (r *reacher) busy() []peer.ID {
	var out []peer.ID
	for _, c := range r.host.Network().Conns() {
		if slices.ContainsFunc(c.GetStreams(), leases) && !slices.Contains(out, c.RemotePeer()) {
			out = append(out, c.RemotePeer())
		}
	}
	return out
}

func leases(s network.Stream) bool {
	p := Protocol(s.Protocol())
	return p == LeaseProtocol || p == TunnelProtocol
}

// probe asks peers for a sign of life and closes the connections of those that give none: whoever needs one calls again, which
// finds the peer at its new address. The transports notice only after 30 seconds or more.
func (r *reacher) probe(ctx context.Context, peers []peer.ID, patience time.Duration) {
	var asking sync.WaitGroup
	slots := make(chan struct{}, probesAtOnce)
	for _, id := range peers {
		slots <- struct{}{}
		asking.Go(func() {
			defer func() { <-slots }()
			limited, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			_, err := r.node.pingOpen(limited, id)
			if err == nil || ctx.Err() != nil || limited.Err() == nil {
				return // a peer that refuses is there
			}
			r.log.Info("a peer gives no sign of life, its connections are closed", "peer", peerText(id))
			_ = r.host.Network().ClosePeer(id)
			r.node.bulk.lose(id)
			r.trouble() // the silence may be this side's: nobody answers to an address that the router has lost
		})
	}
	asking.Wait()
}

// suspect asks a peer that did not answer in time for a sign of life, and closes its connections where it gives none. It does not wait.
func (r *reacher) suspect(id peer.ID) {
	if !r.used {
		return
	}
	r.mu.Lock()
	life, asked := r.life, r.life == nil || r.doubted[id] || len(r.doubted) >= probesAtOnce
	if !asked {
		r.doubted[id] = true
	}
	r.mu.Unlock()
	if asked || !r.node.enter() { // a node that closes forgets it all
		return
	}
	go func() {
		defer r.node.handlers.Done()
		ctx, cancel := context.WithTimeout(life, probeTime)
		defer cancel()
		r.probe(ctx, []peer.ID{id}, interfaceProbe)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.doubted, id)
	}()
}

// leaveRelays closes connections through small relays to peers that are connected directly as well. Only leases are still on them,
// which connect again by the better way.
func (r *reacher) leaveRelays() {
	for _, id := range r.host.Network().Peers() {
		conns := r.host.Network().ConnsToPeer(id)
		if !slices.ContainsFunc(conns, func(c network.Conn) bool { return !isRelayed(c) }) {
			continue
		}
		for _, c := range conns {
			if isLimited(c) && time.Since(c.Stat().Opened) > settled && !slices.ContainsFunc(c.GetStreams(), young) {
				r.log.Info("a direct connection takes the relay's place", "peer", peerText(id))
				_ = c.Close()
			}
		}
	}
}

// punchAgain calls peers with leases that are connected through small relays anew, from time to time, so that they try again to punch
// a hole. The side that called does it.
func (r *reacher) punchAgain(ctx context.Context) {
	for _, id := range r.busy() {
		conns := r.host.Network().ConnsToPeer(id)
		called := func(c network.Conn) bool { return isLimited(c) && c.Stat().Direction == network.DirOutbound }
		if !slices.ContainsFunc(conns, called) || slices.ContainsFunc(conns, func(c network.Conn) bool { return !isLimited(c) }) {
			continue
		}
		if r.punches.again(id, time.Now()) {
			r.node.redialRelayed(ctx, id)
		}
	}
}

// young reports whether a stream may be in the midst of a bid.
func young(s network.Stream) bool { return time.Since(s.Stat().Opened) < settled }

func peerText(id peer.ID) string {
	key, err := keyOf(id)
	if err != nil {
		return id.String()
	}
	return key.String()
}

// traffic counts the bytes of streams of ours on one connection.
type traffic struct{ in, out atomic.Int64 }

func (t *traffic) most() int64 { return max(t.in.Load(), t.out.Load()) }

// metered counts a stream's bytes.
type metered struct {
	network.Stream
	traffic *traffic
}

// Read implements io.Reader.
func (m metered) Read(p []byte) (int, error) {
	n, err := m.Stream.Read(p)
	m.traffic.in.Add(int64(n))
	return n, err
}

// Write implements io.Writer.
func (m metered) Write(p []byte) (int, error) {
	n, err := m.Stream.Write(p)
	m.traffic.out.Add(int64(n))
	return n, err
}

// meter counts what goes through a small relay, so that its end can be explained.
func (r *reacher) meter(s network.Stream) network.Stream {
	if !isLimited(s.Conn()) {
		return s
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.traffic[s.Conn().ID()]
	if t == nil {
		t = &traffic{}
		r.traffic[s.Conn().ID()] = t
	}
	return metered{s, t}
}

// notifiee hears of connections.
func (r *reacher) notifiee() network.Notifiee {
	connected := func(_ network.Network, c network.Conn) {
		r.sized(c)
		if isRelayed(c) && c.Stat().Direction == network.DirInbound && r.reaches(c.RemotePeer()) {
			r.suspect(c.RemotePeer()) // why would it call through a relay? No hole is punched beside a connection that seems to live
		}
		if !isRelayed(c) && slices.ContainsFunc(r.host.Network().ConnsToPeer(c.RemotePeer()), func(o network.Conn) bool { return isRelayed(o) }) {
			r.punches.connected(c.RemotePeer())
		}
	}
	return &network.NotifyBundle{ConnectedF: connected, DisconnectedF: func(_ network.Network, c network.Conn) {
		if len(r.host.Network().ConnsToPeer(c.RemotePeer())) == 0 {
			r.punches.forget(c.RemotePeer())
			r.held.leave(c.RemotePeer())
		}
		if !isLimited(c) {
			return
		}
		r.mu.Lock()
		t := r.traffic[c.ID()]
		delete(r.traffic, c.ID())
		r.mu.Unlock()
		if t == nil {
			return // nothing of ours was on it
		}
		r.log.Info("relayed connection ended", "peer", peerText(c.RemotePeer()), "why", relayEnd(c, t.most(), time.Now()),
			"carried", t.most(), "next", "it is opened again when it is needed")
	}}
}

// reaches reports whether a peer is connected otherwise than through a relay.
func (r *reacher) reaches(id peer.ID) bool {
	return slices.ContainsFunc(r.host.Network().ConnsToPeer(id), func(c network.Conn) bool { return !isRelayed(c) })
}

// relayName returns the key of the relay in an address.
func relayName(addr multiaddr.Multiaddr) string {
	id, ok := relayOf(addr)
	if !ok {
		return ""
	}
	return peerText(id)
}
