package p2p

import (
	"context"
	"io"
	"log/slog"

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
	return newServer("/haggle/test/1", h, l, newComplaints(), log).serve
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
