package p2p

import (
	"context"
	"io"
	"log/slog"
	"net/netip"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"

	"haggle/market"
)

// Wire is what a stream runs over.
type Wire = wire

// ReadFrame reads one frame.
func ReadFrame(r io.Reader) ([]byte, error) { return readFrame(r, func() {}) }

// EncodeFrame returns a message as a frame.
func EncodeFrame(m market.Message) ([]byte, error) { return encodeFrame(m) }

// NewStream makes a stream of the side that calls.
func NewStream(w Wire, peer market.Key, l Limit) *Stream { return newStream(w, peer, l.Idle) }

// NewServer returns the generic handler around one protocol's handler.
func NewServer(h Handler, l Limit, log *slog.Logger) func(ctx context.Context, w Wire, peer market.Key, relayed bool) {
	sv := newServer("/haggle/test/1", h, l, newAccess(Access{}, true), newComplaints(), log)
	return func(ctx context.Context, w Wire, peer market.Key, relayed bool) {
		sv.serve(ctx, w, caller{peer: peer, owner: peer}, relayed)
	}
}

// NewOn makes a node on a host with other transports.
func NewOn(cfg Config, transports ...libp2p.Option) (*Node, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	return build(cfg, func(Config) ([]libp2p.Option, error) { return transports, nil })
}

// Transport returns the last part of the address at the far end of a stream of a node: "tcp" or "quic-v1".
func (s *Stream) Transport() string {
	wire, ok := s.wire.(network.Stream)
	if !ok {
		return ""
	}
	parts := wire.Conn().RemoteMultiaddr().Protocols()
	return parts[len(parts)-1].Name
}

// Place makes a node believe that its peers call from other addresses than they do.
func Place(cfg *Config, where func(market.Key) netip.Addr) { cfg.place = where }

// NewReachingOn makes a node on a host with other transports that uses relays and punches holes. It asks nobody whether it is reachable:
// for that the library opens sockets of the machine.
func NewReachingOn(cfg Config, transports ...libp2p.Option) (*Node, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	return build(cfg, func(cfg Config) ([]libp2p.Option, error) {
		transports = append(transports, libp2p.ConnectionGater(newGater(cfg)))
		return append(transports, relayedOptions(cfg, cfg.reacher)...), nil
	})
}
