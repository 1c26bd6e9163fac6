package p2p

import (
	"errors"
	"fmt"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	tls "github.com/libp2p/go-libp2p/p2p/security/tls"
	quic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
)

// protocolVersion is what a node of a network says it speaks.
func protocolVersion(cfg Config) string { return "haggle/" + cfg.Network }

// identityOptions are what every host of ours has, simulated ones included.
func identityOptions(cfg Config) ([]libp2p.Option, error) {
	key, err := crypto.UnmarshalEd25519PrivateKey(cfg.Key)
	if err != nil {
		return nil, fmt.Errorf("identity key: %w", err)
	}
	return []libp2p.Option{
		libp2p.Identity(key),
		libp2p.UserAgent(cfg.Agent),
		libp2p.ProtocolVersion(protocolVersion(cfg)),
		libp2p.NoListenAddrs, // New listens once everything is in place
		libp2p.DisableMetrics(),
	}, nil
}

// Bounds of streams that come in. A peer may have as many as our protocols take of one, and some for the DHT.
const (
	maxPerPeer = 80
	maxUnnamed = 4096 // of all peers, whose protocol is not known yet
)

// hostOptions are transports, bounds and reach of a host on real networks.
func hostOptions(cfg Config) ([]libp2p.Option, error) {
	low, high := 160, 192 // of well-known peers
	if cfg.Mode == ModeAuto {
		low, high = 24, 40 // an idle connection costs 10 bytes a second; relayed peers, leases and tunnels are protected
	}
	conns := rcmgr.ResourceLimits{Conns: 512, ConnsInbound: 384, ConnsOutbound: 256, Streams: 2 * maxUnnamed, StreamsInbound: 2 * maxUnnamed}
	if cfg.Mode == ModeClient {
		low, high = 64, 128
		conns = rcmgr.ResourceLimits{Conns: 256, ConnsInbound: 128, ConnsOutbound: 192}
	}
	connections, err := connmgr.NewConnManager(low, high)
	if err != nil {
		return nil, fmt.Errorf("connection manager: %w", err)
	}
	limits := rcmgr.DefaultLimits
	libp2p.SetDefaultServiceLimits(&limits)
	// The defaults let a few peers take all streams that have not said their protocol yet, and so keep everybody out.
	bounds := rcmgr.PartialLimitConfig{
		System:      conns,
		Transient:   rcmgr.ResourceLimits{Streams: maxUnnamed, StreamsInbound: maxUnnamed},
		PeerDefault: rcmgr.ResourceLimits{StreamsInbound: maxPerPeer},
	}.Build(limits.AutoScale())
	resources, err := rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(bounds), connLimits()...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("resource manager: %w", err), connections.Close())
	}
	names, err := resolverOption(cfg)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("resolver of names: %w", err), connections.Close(), resources.Close())
	}
	options := []libp2p.Option{
		names,
		libp2p.Security(tls.ID, tls.New), // before noise: processors have instructions for its ciphers
		libp2p.Security(noise.ID, noise.New),
		libp2p.Transport(tcp.NewTCPTransport),
		libp2p.Transport(quic.NewTransport),
		libp2p.ConnectionManager(connections),
		libp2p.ResourceManager(resources),
		libp2p.ConnectionGater(newGater(cfg)),
	}
	return append(options, reachOptions(cfg, cfg.reacher)...), nil
}
