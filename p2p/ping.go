package p2p

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"
	manet "github.com/multiformats/go-multiaddr/net"

	"haggle/market"
)

// The ways to a peer, and the kinds of reach: see PingResult and ReachReport.
const (
	ReachDirect   = "direct"   // it can be called
	ReachPunched  = "punched"  // through a hole in its router that a relay helped to make
	ReachRelayed  = "relayed"  // through a relay only
	ReachLoopback = "loopback" // on this machine, as in labs
	ReachUnknown  = "unknown"
)

// PingResult is how a peer was reached at a moment.
type PingResult struct {
	Path  string        // ReachDirect, ReachPunched, ReachRelayed or ReachLoopback
	RTT   time.Duration // of 32 bytes there and back
	Addr  string        // the far end of the connection, a relay's where Path is ReachRelayed
	Relay string        // the relay's key, where there is one
	Small bool          // the relay is a small one, which carries no tunnels
}

// pingTime bounds a ping where its context does not.
const pingTime = 10 * time.Second

// Ping calls a peer, where it is not connected, and measures the time of 32 bytes there and back on the connection that new streams
// would take. A peer behind a router may be reached through a relay first and directly a second later. The errors are those of Open.
func (n *Node) Ping(ctx context.Context, key market.Key) (PingResult, error) {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	id, err := peerID(key)
	if err != nil {
		return PingResult{}, fmt.Errorf("ping: %w", err)
	}
	if err := n.connect(network.WithAllowLimitedConn(ctx, "ping"), id); err != nil {
		return PingResult{}, fmt.Errorf("ping: %w: %w", unreachable(key), err)
	}
	got, err := n.pingOpen(ctx, id)
	if err != nil {
		return PingResult{}, fmt.Errorf("ping: %w: %w", streamFault(key, "ping", err), err)
	}
	return got, nil
}

// pingOpen pings a peer that is connected.
func (n *Node) pingOpen(ctx context.Context, id peer.ID) (PingResult, error) {
	ctx = network.WithNoDial(network.WithAllowLimitedConn(ctx, "ping"), "ping")
	s, err := n.host.NewStream(ctx, id, ping.ID)
	if err != nil {
		return PingResult{}, err
	}
	defer func() { _ = s.Reset() }()
	defer interrupt(ctx, s.SetDeadline)()
	sent, back := make([]byte, ping.PingSize), make([]byte, ping.PingSize)
	// The first one also brings the stream's protocol to an agreement, which is not the peer's distance.
	var took time.Duration
	for range 2 {
		rand.Read(sent) // anew, or the peer could send the answer ahead; it never fails
		began := time.Now()
		if _, err := s.Write(sent); err != nil {
			return PingResult{}, err
		}
		if _, err := io.ReadFull(s, back); err != nil {
			return PingResult{}, err
		}
		if !bytes.Equal(sent, back) {
			return PingResult{}, errors.New("the peer sent other bytes back")
		}
		took = time.Since(began)
	}
	n.trips.took(id, took, time.Now())
	r := PingResult{Path: n.pathOf(s.Conn()), RTT: took, Addr: s.Conn().RemoteMultiaddr().String(), Small: isLimited(s.Conn())}
	if r.Path == ReachRelayed {
		r.Relay = relayName(s.Conn().RemoteMultiaddr())
	}
	return r, nil
}

// pathOf says how a connection goes.
func (n *Node) pathOf(c network.Conn) string {
	switch {
	case isRelayed(c):
		return ReachRelayed
	case manet.IsIPLoopback(c.RemoteMultiaddr()):
		return ReachLoopback
	case n.reach.punches.through(c.RemotePeer()):
		return ReachPunched
	}
	return ReachDirect
}
