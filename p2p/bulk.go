package p2p

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	tls "github.com/libp2p/go-libp2p/p2p/security/tls"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/multiformats/go-multiaddr"

	"haggle/market"
)

const (
	bulkIdle  = 30 * time.Second // how long a connection for bulk is kept without a stream
	bulkPause = 5 * time.Minute  // how long a peer that has no way for it is not tried again
)

// bulk keeps connections for streams that move many bytes. libp2p has one connection to a peer where it can, and prefers QUIC,
// which takes three times the processor time of TCP; and what is written on one connection waits for what was written there
// before. So these are made by a host of their own, with the node's identity, over TCP, and exist only while they are used.
type bulk struct {
	cfg   Config
	addrs func() []multiaddr.Multiaddr // of the node: a peer knows one identity, and what it hears last replaces what it knew

	mu     sync.Mutex
	closed bool
	host   host.Host // made when it is first needed
	peers  map[peer.ID]*bulkPeer
}

// bulkPeer is what is known of one peer's connection.
type bulkPeer struct {
	streams int
	idle    *time.Timer // closes the connection; set where there is no stream
	barred  time.Time   // until then it is not tried
}

// OpenBulk is Open for a stream that moves many bytes: it has a TCP connection that small messages do not share, where the peer can
// be reached by TCP, and else what Open gives.
func (n *Node) OpenBulk(ctx context.Context, key market.Key, proto Protocol) (*Stream, error) {
	limit, known := n.cfg.Limits[proto]
	id, err := peerID(key)
	if !known || err != nil {
		return n.Open(ctx, key, proto) // it says what is wrong
	}
	addrs := tcpAddrs(n.host.Peerstore().Addrs(id))
	if len(addrs) == 0 || n.reach.punches.through(id) { // TCP has no hole where QUIC has one
		return n.Open(ctx, key, proto)
	}
	s, release, err := n.bulk.open(ctx, peer.AddrInfo{ID: id, Addrs: addrs}, proto)
	if err != nil {
		n.log.Debug("no connection for bulk", "peer", key.Short(), "err", err)
		return n.Open(ctx, key, proto)
	}
	stream := newStream(s, key, limit.Idle)
	stream.release = release
	return stream, nil
}

// tcpAddrs are those of the addresses that are plain TCP on the peer itself.
func tcpAddrs(all []multiaddr.Multiaddr) []multiaddr.Multiaddr {
	var out []multiaddr.Multiaddr
	for _, addr := range all {
		if _, err := addr.ValueForProtocol(multiaddr.P_CIRCUIT); err == nil {
			continue
		}
		if names := addr.Protocols(); names[len(names)-1].Code == multiaddr.P_TCP {
			out = append(out, addr)
		}
	}
	return out
}

// open opens a stream; release must be called once it is over.
func (b *bulk) open(ctx context.Context, info peer.AddrInfo, proto Protocol) (s network.Stream, release func(), err error) {
	h, err := b.enter(info.ID)
	if err != nil {
		return nil, nil, err
	}
	release = func() { b.leave(info.ID) }
	dial, cancel := context.WithTimeout(ctx, b.cfg.DialTimeout)
	defer cancel()
	if err := h.Connect(dial, info); err != nil {
		release()
		b.bar(info.ID, ctx.Err() == nil)
		return nil, nil, err
	}
	ctx, cancel = context.WithTimeout(ctx, firstFrameTimeout)
	defer cancel()
	s, err = h.NewStream(network.WithNoDial(ctx, "bulk"), info.ID, protocol.ID(proto))
	if err != nil {
		release()
		return nil, nil, err
	}
	return s, release, nil
}

// enter counts a stream to a peer, and makes the host where there is none.
func (b *bulk) enter(id peer.ID) (host.Host, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.peers[id]
	switch {
	case b.closed:
		return nil, errors.New("the node is closed")
	case p != nil && time.Now().Before(p.barred):
		return nil, errors.New("it failed a short while ago")
	}
	if b.host == nil {
		if err := b.start(); err != nil {
			return nil, fmt.Errorf("start host for bulk: %w", err)
		}
	}
	if p == nil {
		p = &bulkPeer{}
		b.peers[id] = p
	}
	if p.idle != nil {
		p.idle.Stop()
		p.idle = nil
	}
	p.streams++
	return b.host, nil
}

// start makes the host. b.mu is held.
func (b *bulk) start() error {
	options, err := identityOptions(b.cfg)
	if err != nil {
		return err
	}
	names, err := resolverOption(b.cfg)
	if err != nil {
		return err
	}
	b.host, err = libp2p.New(append(
		options,
		names,
		libp2p.Security(tls.ID, tls.New),
		libp2p.Security(noise.ID, noise.New),
		libp2p.Transport(tcp.NewTCPTransport),
		libp2p.ConnectionGater(newGater(b.cfg)),
		libp2p.DisableRelay(),
		libp2p.DisableIdentifyAddressDiscovery(),
		libp2p.AddrsFactory(func([]multiaddr.Multiaddr) []multiaddr.Multiaddr { return b.addrs() }),
	)...)
	b.peers = map[peer.ID]*bulkPeer{}
	return err
}

// leave ends the count of a stream. The last one leaves the connection for a while.
func (b *bulk) leave(id peer.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.peers[id]
	p.streams--
	if p.streams == 0 && !b.closed {
		p.idle = time.AfterFunc(bulkIdle, func() { b.drop(id) })
	}
}

// drop closes a connection that nobody has used for a while.
func (b *bulk) drop(id peer.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.peers[id]
	if b.closed || p == nil || p.streams > 0 {
		return
	}
	_ = b.host.Network().ClosePeer(id) // nothing is written there
	if !time.Now().Before(p.barred) {
		delete(b.peers, id)
	}
}

// lose closes the connection to a peer that gives no sign of life: its streams end, and are opened again by whoever needs them.
func (b *bulk) lose(id peer.ID) {
	b.mu.Lock()
	h := b.host
	if b.closed {
		h = nil
	}
	b.mu.Unlock()
	if h != nil {
		_ = h.Network().ClosePeer(id)
	}
}

// bar keeps a peer from being tried for a while.
func (b *bulk) bar(id peer.ID, yes bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.peers[id]; yes && p != nil {
		p.barred = time.Now().Add(bulkPause)
	}
}

// hangUp closes the connections of a peer at once.
func (b *bulk) hangUp(id peer.ID) {
	b.mu.Lock()
	h := b.host
	b.mu.Unlock()
	if h != nil {
		_ = h.Network().ClosePeer(id) // it may be gone already
	}
}

func (b *bulk) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, p := range b.peers {
		if p.idle != nil {
			p.idle.Stop()
		}
	}
	if b.host == nil {
		return nil
	}
	return b.host.Close()
}
