package p2p

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/multiformats/go-multistream"

	"haggle/market"
)

// quick reports whether a protocol is one question and its answer. Its stream is opened as soon as there is a connection, without
// waiting until both sides have told each other what they speak: that costs a round trip and more, and of a first screen of offers
// nearly half.
func (p Protocol) quick() bool { return p == OffersProtocol || p == SnapshotProtocol }

// connectFor makes sure that a peer is connected, as far as a protocol needs it.
func (n *Node) connectFor(ctx context.Context, id peer.ID, proto Protocol) error {
	if !proto.quick() {
		return n.connect(ctx, id)
	}
	err := n.dialQuickly(ctx, id)
	if err == nil || ctx.Err() != nil || proto == SnapshotProtocol {
		return err // there are others to ask for a snapshot
	}
	return n.connect(ctx, id)
}

// dialQuickly connects to a peer unless it is connected, and does not wait for what it says about itself.
func (n *Node) dialQuickly(ctx context.Context, id peer.ID) error {
	if s, ok := n.host.Network().(*swarm.Swarm); ok {
		s.Backoff().Clear(id)
	}
	timeout := n.patience(n.host.Peerstore().Addrs(id))
	ctx, cancel := context.WithTimeout(network.WithDialPeerTimeout(ctx, timeout), timeout)
	defer cancel()
	_, err := n.host.Network().DialPeer(ctx, id)
	return err
}

// openStream opens a stream on a connection that is there. Of a quick protocol it is there at once, and a peer that does not speak it
// says so in place of its answer.
func (n *Node) openStream(ctx context.Context, id peer.ID, key market.Key, proto Protocol) (network.Stream, error) {
	if !proto.quick() {
		return n.host.NewStream(ctx, id, protocol.ID(proto))
	}
	known, err := n.host.Peerstore().GetProtocols(id)
	if err == nil && len(known) > 0 {
		return n.host.NewStream(network.WithNoDial(ctx, "connected"), id, protocol.ID(proto)) // it has said what it speaks
	}
	s, err := n.host.Network().NewStream(network.WithNoDial(ctx, "connected"), id)
	if err != nil {
		return nil, err
	}
	if err := s.SetProtocol(protocol.ID(proto)); err != nil {
		return nil, errors.Join(err, s.Reset())
	}
	return &quickStream{Stream: s, rw: multistream.NewMSSelect(s, protocol.ID(proto)), peer: key, proto: proto}, nil
}

// quickStream is a stream whose first write carries the protocol's name, and whose first read the peer's consent.
type quickStream struct {
	network.Stream
	rw    io.ReadWriteCloser
	peer  market.Key
	proto Protocol
}

// Read implements network.Stream.
func (s *quickStream) Read(p []byte) (int, error) {
	n, err := s.rw.Read(p)
	var unsupported multistream.ErrNotSupported[protocol.ID]
	if errors.As(err, &unsupported) {
		err = streamFault(s.peer, s.proto, err)
	}
	return n, err
}

// Write implements network.Stream.
func (s *quickStream) Write(p []byte) (int, error) { return s.rw.Write(p) }

// Close implements network.Stream. A peer that has not consented yet does not hold it up for long.
func (s *quickStream) Close() error {
	_ = s.SetReadDeadline(time.Now().Add(refuseTimeout)) // a dead connection fails by itself
	return s.rw.Close()
}
