package p2p

import (
	"errors"
	"fmt"

	"github.com/libp2p/go-libp2p"
	dht "github.com/libp2p/go-libp2p-kad-dht"
	"github.com/libp2p/go-libp2p-kad-dht/records"
	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	tls "github.com/libp2p/go-libp2p/p2p/security/tls"
	quic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"haggle/market"
)

// identityOptions are what every host of ours has, simulated ones included.
func identityOptions(cfg Config) ([]libp2p.Option, error) {
	key, err := crypto.UnmarshalEd25519PrivateKey(cfg.Key)
	if err != nil {
		return nil, fmt.Errorf("identity key: %w", err)
	}
	return []libp2p.Option{
		libp2p.Identity(key),
		libp2p.UserAgent(cfg.Agent),
		libp2p.ProtocolVersion("haggle/" + cfg.Network),
		libp2p.NoListenAddrs, // New listens once everything is in place
		libp2p.DisableMetrics(),
		libp2p.Ping(false), // the DHT measures latency on its own messages
	}, nil
}

// Bounds of streams that come in. A peer may have as many as our protocols take of one, and some for the DHT.
const (
	maxPerPeer = 80
	maxUnnamed = 4096 // of all peers, whose protocol is not known yet
)

// hostOptions are transports, bounds and reach of a host on real networks.
func hostOptions(cfg Config) ([]libp2p.Option, error) {
	low, high := 160, 192
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
	resources, err := rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(bounds))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("resource manager: %w", err), connections.Close())
	}
	options := []libp2p.Option{
		libp2p.Security(tls.ID, tls.New), // before noise: processors have instructions for its ciphers
		libp2p.Security(noise.ID, noise.New),
		libp2p.Transport(tcp.NewTCPTransport),
		libp2p.Transport(quic.NewTransport),
		libp2p.ConnectionManager(connections),
		libp2p.ResourceManager(resources),
		libp2p.ConnectionGater(gater{loopback: market.IsLab(cfg.Network)}),
	}
	return append(options, reachOptions(cfg)...), nil
}

// reachOptions are about being called from outside; in a lab nobody is.
func reachOptions(cfg Config) []libp2p.Option {
	if market.IsLab(cfg.Network) {
		return []libp2p.Option{
			libp2p.DisableRelay(),
			libp2p.DisableIdentifyAddressDiscovery(),
			libp2p.ForceReachabilityPublic(), // stops the probing for it
		}
	}
	options := []libp2p.Option{libp2p.EnableRelay(), libp2p.EnableHolePunching(), libp2p.EnableAutoNATv2()}
	if cfg.Mode != ModeClient {
		options = append(options, libp2p.NATPortMap(), libp2p.EnableNATService())
	}
	return options
}

// newDHT makes the network's private DHT on a host.
func newDHT(cfg Config, h host.Host) (*dht.IpfsDHT, error) {
	mode := map[Mode]dht.ModeOpt{ModeClient: dht.ModeClient, ModeServer: dht.ModeServer, ModeAuto: dht.ModeAuto}[cfg.Mode]
	options := []dht.Option{
		dht.Mode(mode),
		dht.ProtocolPrefix(protocol.ID("/haggle/" + cfg.Network)),
		dht.DisableValues(),
		dht.ProviderManagerOpts(
			records.ProvideValidity(announceValidity),
			records.ProviderAddrTTL(announceValidity),
			records.CleanupInterval(announceEvery),
		),
	}
	if cfg.Network == market.NetworkMain {
		// Nobody fills a routing table from one corner of the internet: 2 peers of an IP group per bucket, 3 in all.
		options = append(options, dht.RoutingTablePeerDiversityFilter(dht.NewRTPeerDiversityFilter(h, 2, 3)))
	}
	d, err := dht.New(h, options...)
	if err != nil {
		return nil, fmt.Errorf("start DHT: %w", err)
	}
	return d, nil
}

// gater turns away peers whose keys are no market keys and, in a lab, every address that is not loopback.
type gater struct{ loopback bool }

func (g gater) allows(addr multiaddr.Multiaddr) bool { return !g.loopback || manet.IsIPLoopback(addr) }

// InterceptPeerDial implements libp2p's connmgr.ConnectionGater.
func (g gater) InterceptPeerDial(id peer.ID) bool {
	_, err := keyOf(id)
	return err == nil
}

// InterceptAddrDial implements libp2p's connmgr.ConnectionGater.
func (g gater) InterceptAddrDial(_ peer.ID, addr multiaddr.Multiaddr) bool { return g.allows(addr) }

// InterceptAccept implements libp2p's connmgr.ConnectionGater.
func (g gater) InterceptAccept(addrs network.ConnMultiaddrs) bool {
	return g.allows(addrs.RemoteMultiaddr())
}

// InterceptSecured implements libp2p's connmgr.ConnectionGater.
func (g gater) InterceptSecured(_ network.Direction, id peer.ID, _ network.ConnMultiaddrs) bool {
	return g.InterceptPeerDial(id)
}

// InterceptUpgraded implements libp2p's connmgr.ConnectionGater.
func (g gater) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) { return true, 0 }
