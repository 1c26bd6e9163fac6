package p2p

import (
	"context"
	"errors"
	"fmt"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/multiformats/go-multistream"

	"haggle/market"
)

// Open starts a stream to a peer, which the caller must close. A peer that is not connected is dialled at its known
// addresses within Config.DialTimeout; if that fails the DHT is asked for newer ones. The error has code CodeUnreachable,
// CodeUnsupported where the peer does not speak the protocol, or CodeRelayOnly where the peer is reached through a small relay, the
// protocol is none for it, and no hole could be punched within 20 seconds. ctx bounds the opening, not the stream.
func (n *Node) Open(ctx context.Context, key market.Key, proto Protocol) (*Stream, error) {
	limit, known := n.cfg.Limits[proto]
	if !known {
		return nil, fmt.Errorf("open stream: there is no protocol %s", proto)
	}
	id, err := peerID(key)
	if err != nil {
		return nil, fmt.Errorf("open stream: %w", err)
	}
	if limit.Relayed {
		ctx = network.WithAllowLimitedConn(ctx, string(proto))
	}
	if err := n.connectFor(ctx, id, proto); err != nil {
		return nil, fmt.Errorf("open %s: %w: %w", proto, unreachable(key), err)
	}
	if err := n.awaitDirect(ctx, id, key, limit); err != nil {
		return nil, fmt.Errorf("open %s: %w", proto, err)
	}
	ctx, cancel := context.WithTimeout(ctx, firstFrameTimeout)
	defer cancel()
	s, err := n.openStream(ctx, id, key, proto)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w: %w", proto, streamFault(key, proto, err), err)
	}
	stream := newStream(n.reach.meter(s), key, limit.Idle)
	stream.release = n.protect(s, proto)
	stream.doubt = func() { n.reach.suspect(id) }
	return stream, nil
}

func streamFault(key market.Key, proto Protocol, err error) error {
	var unsupported multistream.ErrNotSupported[protocol.ID]
	if errors.As(err, &unsupported) {
		return market.NewError(market.CodeUnsupported, "what", "protocol "+string(proto), "instead", "choose another peer, or compare `haggle version` on both sides")
	}
	return unreachable(key)
}

// connect makes sure that a peer is connected.
func (n *Node) connect(ctx context.Context, id peer.ID) error {
	err := n.dial(ctx, peer.AddrInfo{ID: id}, n.patience(n.host.Peerstore().Addrs(id)))
	if err == nil || ctx.Err() != nil || n.dht.RoutingTable().Size() == 0 {
		return err
	}
	lookup, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	info, lost := n.dht.FindPeer(lookup, id)
	if lost != nil {
		return err // the dial says more than a failed lookup
	}
	info.Addrs = n.believable(info.Addrs)
	n.remember(info)
	return n.dial(ctx, info, n.patience(info.Addrs))
}
