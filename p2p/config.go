package p2p

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"haggle/market"
)

// Protocol names a kind of stream. The number at its end changes when old programs could not follow.
type Protocol string

// The protocols that peers speak.
const (
	OffersProtocol Protocol = "/haggle/offers/1" // a rig's offers
	LeaseProtocol  Protocol = "/haggle/lease/1"  // bid, grant, receipts, notices
	TunnelProtocol Protocol = "/haggle/tunnel/1" // logs, images, and paths to the doors of jobs
	DeputyProtocol Protocol = "/haggle/deputy/1" // leases that an agent hands to its deputies

	SnapshotProtocol Protocol = "/haggle/snapshot/1" // offers that a program has learnt of
	MembersProtocol  Protocol = "/haggle/members/1"  // who belongs to a private network
)

// Mode says whether a node answers the DHT's questions.
type Mode uint8

// The modes.
const (
	ModeClient Mode = iota // asks only: agents
	ModeServer             // always answers: rigs in labs, well-known peers
	ModeAuto               // answers once it is reachable from outside; in a lab the same as ModeServer
)

// Handler answers one stream. The node closes the stream when it returns. A returned error goes to the peer as
// market.Public shows it. The context ends with the stream's lifetime or the node's Run.
type Handler func(ctx context.Context, s *Stream) error

// Config is what a node needs. Key and Network must be set; everything else has a default.
type Config struct {
	Key       ed25519.PrivateKey // the program's identity
	Network   string             // as market.CheckNetwork allows
	Mode      Mode
	Listen    []string // multiaddrs; every one must work. Default: loopback in a lab, else port 4701 (clients: any port)
	Bootstrap []string // multiaddrs that end in /p2p/ID
	Agent     string   // name and version of the program, shown to peers, such as "haggled/0.3.0"
	Handlers  map[Protocol]Handler
	Limits    map[Protocol]Limit // replaces a protocol's default, whole
	Log       *slog.Logger       // default: none

	DialTimeout time.Duration // for a peer's known addresses; default 1.5 s

	Sources Sources
	Reach   Reach
	Access  Access
	Members Members // who belongs to it, where the network is private

	members *members                    // made of Members by complete
	access  *access                     // made of Access by complete
	place   func(market.Key) netip.Addr // where peers call from, in tests
	reacher *reacher                    // of the one node that is made of it
}

// Limit bounds what peers may ask of one protocol's handler. Rate, Idle and Lifetime are without bound when zero.
type Limit struct {
	Streams  int           // open at once, of all peers
	PerPeer  int           // open at once, of one peer
	Rate     float64       // new streams per second and peer
	Burst    int           // new streams that a peer may open at once after a pause
	Idle     time.Duration // longest wait for a frame to begin, on both sides
	Lifetime time.Duration // longest time in all
	Relayed  bool          // may run over a relay, which is narrow and shared
}

const (
	firstFrameTimeout = 10 * time.Second
	frameTimeout      = 10 * time.Second
	writeTimeout      = 10 * time.Second
	dialTimeout       = 1500 * time.Millisecond
	lookupTimeout     = 3 * time.Second
	fixedPort         = "4701"
	maxAgent          = 64
)

func defaultLimits() map[Protocol]Limit {
	return map[Protocol]Limit{
		OffersProtocol: {Streams: 64, PerPeer: 4, Rate: 2, Burst: 8, Idle: 10 * time.Second, Lifetime: 30 * time.Second, Relayed: true},
		LeaseProtocol:  {Streams: 256, PerPeer: 32, Rate: 4, Burst: 32, Idle: 30 * time.Minute, Relayed: true},
		TunnelProtocol: {Streams: 1024, PerPeer: 128, Rate: 64, Burst: 128},
		DeputyProtocol: {Streams: 64, PerPeer: 8, Rate: 4, Burst: 64, Idle: 30 * time.Second, Lifetime: time.Minute, Relayed: true},

		SnapshotProtocol: {Streams: 64, PerPeer: 4, Rate: 2, Burst: 16, Idle: 10 * time.Second, Lifetime: time.Minute, Relayed: true},
		MembersProtocol:  {Streams: 32, PerPeer: 2, Rate: 1, Burst: 4, Idle: 10 * time.Second, Lifetime: 30 * time.Second, Relayed: true},
	}
}

// complete returns the configuration with its defaults, after checking it.
func (c Config) complete() (Config, error) {
	if len(c.Key) != ed25519.PrivateKeySize {
		return c, errors.New("the identity key is missing or of the wrong size")
	}
	if err := market.CheckNetwork(c.Network); err != nil {
		return c, fmt.Errorf("network %q: %w", c.Network, err)
	}
	if c.Mode > ModeAuto {
		return c, fmt.Errorf("there is no mode %d", c.Mode)
	}
	if c.Mode == ModeAuto && market.IsLab(c.Network) {
		c.Mode = ModeServer
	}
	limits := defaultLimits()
	maps.Copy(limits, c.Limits)
	c.Limits = limits
	for protocol, handler := range c.Handlers {
		if _, known := limits[protocol]; !known || handler == nil {
			return c, fmt.Errorf("protocol %s needs both a handler and limits", protocol)
		}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.DialTimeout <= 0 {
		c.DialTimeout = dialTimeout
	}
	if err := c.Reach.check(); err != nil {
		return c, err
	}
	if c.Reach.RelayDelay <= 0 {
		c.Reach.RelayDelay = relayDelay
	}
	c.Agent = printable(c.Agent)
	c.access = newAccess(c.Access, market.IsLab(c.Network))
	if c.place != nil {
		c.access.place = func(peer market.Key, _ multiaddr.Multiaddr) netip.Addr { return c.place(peer) }
	}
	var err error
	if c.members, err = newMembers(c); err != nil {
		return c, err
	}
	c.Handlers = c.members.handlers(c.Handlers)
	return c, nil
}

// listenAddrs returns the addresses to listen on, and whether each of them must work.
func (c Config) listenAddrs() (addrs []multiaddr.Multiaddr, all bool, err error) {
	texts := c.Listen
	if len(texts) == 0 {
		texts = c.defaultListen()
	}
	for _, text := range texts {
		addr, err := multiaddr.NewMultiaddr(text)
		if err != nil {
			return nil, false, badAddress("listen", text, err)
		}
		if market.IsLab(c.Network) && !manet.IsIPLoopback(addr) {
			return nil, false, badAddress("listen", text, errors.New("a lab stays on loopback"))
		}
		addrs = append(addrs, addr)
	}
	return addrs, len(c.Listen) > 0 || market.IsLab(c.Network), nil
}

func (c Config) defaultListen() []string {
	if market.IsLab(c.Network) {
		return []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"}
	}
	port := fixedPort
	if c.Mode == ModeClient {
		port = "0"
	}
	all := []string{"/ip4/0.0.0.0/tcp/" + port, "/ip4/0.0.0.0/udp/" + port + "/quic-v1"}
	if !c.Reach.NoIPv6 {
		all = append(all, "/ip6/::/tcp/"+port, "/ip6/::/udp/"+port+"/quic-v1")
	}
	return all
}

// bootstrapPeers returns the peers to join by, the node itself left out.
func (c Config) bootstrapPeers() ([]peer.AddrInfo, error) {
	var addrs []multiaddr.Multiaddr
	for _, text := range c.Bootstrap {
		addr, err := multiaddr.NewMultiaddr(text)
		if err != nil {
			return nil, badAddress("bootstrap", text, err)
		}
		info, err := peer.AddrInfoFromP2pAddr(addr)
		if err != nil {
			return nil, badAddress("bootstrap", text, err)
		}
		key, err := keyOf(info.ID)
		if err != nil {
			return nil, badAddress("bootstrap", text, err)
		}
		if key != market.KeyOf(c.Key) {
			addrs = append(addrs, addr)
		}
	}
	return peer.AddrInfosFromP2pAddrs(addrs...)
}

// printable bounds a name that travels to or comes from peers.
func printable(s string) string {
	return market.Printable(s[:min(len(s), maxAgent)])
}
