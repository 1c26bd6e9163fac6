package p2p

import (
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/host/autorelay"
	"github.com/libp2p/go-libp2p/p2p/host/observedaddrs"
	"github.com/libp2p/go-libp2p/p2p/protocol/holepunch"
	"github.com/multiformats/go-multiaddr"

	"haggle/market"
)

// Reach says what a node does to be called from outside. The zero value is right for a program on the internet; in a lab it is
// ignored, for nobody calls from outside.
type Reach struct {
	// Assume is what the owner knows about the node's reach: AssumePublic, AssumePrivate, or "" where other peers are asked.
	Assume string
	// NoPortMap leaves routers alone: no UPnP, no NAT-PMP, no pinholes. Clients never ask them.
	NoPortMap bool
	// Relay is what a node that is reachable from outside does for those that are not. Clients relay nothing.
	Relay RelayService
	// BulkFor tells for whom a bulk relay works. It is called by many goroutines; nil is nobody.
	BulkFor func(market.Key) bool `json:"-"`
	// Relays are multiaddrs that end in /p2p/ID: relays that are asked before others.
	Relays []string
	// Announce are multiaddrs that are told to peers beside those that the node finds out, such as a port that the owner forwards.
	Announce []string
	// Private says whether addresses of private networks are told to peers: PrivateTold, PrivateKept, or "" for PrivateKept on the
	// network main and PrivateTold elsewhere. Peers on the LAN find each other either way.
	Private string
	// NoIPv6 leaves IPv6 out where Config.Listen is not set.
	NoIPv6 bool
	// RelayDelay is how long a node looks for more relays before it takes what it has; default 10 s.
	RelayDelay time.Duration
}

// What an owner may know of a node's reach.
const (
	AssumePublic  = "public"
	AssumePrivate = "private"
)

// What is told of addresses of private networks.
const (
	PrivateTold = "told"
	PrivateKept = "kept"
)

const relayDelay = 10 * time.Second // the library's 3 minutes keep a rig from being rented for so long

// check reports what its owner has to correct.
func (r Reach) check() error {
	switch {
	case r.Assume != "" && r.Assume != AssumePublic && r.Assume != AssumePrivate:
		return fmt.Errorf("nobody can assume a reach of %.40q", r.Assume)
	case r.Private != "" && r.Private != PrivateTold && r.Private != PrivateKept:
		return fmt.Errorf("private addresses cannot be %.40q", r.Private)
	case r.Relay > RelayNone:
		return fmt.Errorf("there is no relay service %d", r.Relay)
	case r.Relay == RelayBulk && r.BulkFor == nil:
		return errors.New("a bulk relay works for nobody")
	}
	if _, err := parseAddrs("reach.announce", r.Announce); err != nil {
		return err
	}
	_, err := parsePeers("reach.relays", r.Relays)
	return err
}

func parseAddrs(knob string, texts []string) ([]multiaddr.Multiaddr, error) {
	var out []multiaddr.Multiaddr
	for _, text := range texts {
		addr, err := multiaddr.NewMultiaddr(text)
		if err != nil {
			return nil, badAddress(knob, text, err)
		}
		out = append(out, addr)
	}
	return out, nil
}

func parsePeers(knob string, texts []string) ([]peer.AddrInfo, error) {
	var addrs []multiaddr.Multiaddr
	for _, text := range texts {
		addr, err := multiaddr.NewMultiaddr(text)
		if err == nil {
			_, err = peer.AddrInfoFromP2pAddr(addr)
		}
		if err != nil {
			return nil, badAddress(knob, text, err)
		}
		addrs = append(addrs, addr)
	}
	return peer.AddrInfosFromP2pAddrs(addrs...)
}

// reaches reports whether a node does anything to be called from outside.
func (c Config) reaches() bool { return !market.IsLab(c.Network) }

// keepsPrivate reports whether addresses of private networks stay untold.
func (c Config) keepsPrivate() bool {
	if c.Reach.Private == "" {
		return c.Network == market.NetworkMain
	}
	return c.Reach.Private == PrivateKept
}

// reachOptions are about being called from outside; in a lab nobody is.
func reachOptions(cfg Config, r *reacher) []libp2p.Option {
	if !cfg.reaches() {
		return []libp2p.Option{
			libp2p.DisableRelay(),
			libp2p.DisableIdentifyAddressDiscovery(),
			libp2p.ForceReachabilityPublic(), // stops the probing for it
		}
	}
	options := append(relayedOptions(cfg, r), libp2p.EnableAutoNATv2())
	if cfg.Mode == ModeClient {
		return options
	}
	options = append(options, libp2p.EnableNATService()) // version 1 as well: the DHT goes by it
	if !cfg.Reach.NoPortMap {
		options = append(options, libp2p.NATManager(r.mapPorts))
	}
	return options
}

// relayedOptions are those of relays and of holes, and what is told of the node's addresses.
func relayedOptions(cfg Config, r *reacher) []libp2p.Option {
	r.used = true
	options := []libp2p.Option{
		libp2p.EnableRelay(),
		libp2p.EnableHolePunching(holepunch.WithTracer(r.punches)),
		libp2p.AddrsFactory(r.addrs),
	}
	if cfg.Mode != ModeClient || len(cfg.Reach.Relays) > 0 {
		options = append(options, libp2p.EnableAutoRelayWithPeerSource(
			r.relayCandidates,
			autorelay.WithBootDelay(cfg.Reach.RelayDelay),
			autorelay.WithNumRelays(wantedRelays),
			autorelay.WithBackoff(relayBackoff),
			autorelay.WithMinInterval(relaySearch),
		))
	}
	if cfg.Mode != ModeClient && cfg.Reach.Relay != RelayNone {
		options = append(options, libp2p.EnableRelayService(relayOptions(cfg.Reach, r.held)...))
	}
	switch cfg.Reach.Assume {
	case AssumePublic:
		options = append(options, libp2p.ForceReachabilityPublic())
	case AssumePrivate:
		options = append(options, libp2p.ForceReachabilityPrivate())
	}
	return options
}

// TrustTwoObservers lets two peers that see a node at the same address be enough for it to tell others that address; the library
// asks for four, which a young network does not have at different addresses. It sets a variable of the library for the whole
// program, so it is called once, where the program begins, and before the first New.
func TrustTwoObservers() { observedaddrs.ActivationThresh = 2 }

// attach gives the reacher the host that it was an option of.
func (r *reacher) attach(n *Node) error {
	r.node, r.host = n, n.host
	if !r.used {
		close(r.attached)
		return nil
	}
	var err error
	if r.emitter, err = n.host.EventBus().Emitter(new(event.EvtLocalReachabilityChanged)); err != nil {
		return fmt.Errorf("start reach: %w", err)
	}
	if r.identified, err = n.host.EventBus().Emitter(new(event.EvtPeerIdentificationCompleted)); err != nil {
		return fmt.Errorf("start reach: %w", err)
	}
	n.host.Network().Notify(r.notifiee())
	close(r.attached)
	return nil
}

// addresser is a host that tells also the addresses that it keeps to itself.
type addresser interface {
	host.Host
	AllAddrs() []multiaddr.Multiaddr
	ConfirmedAddrs() (reachable, unreachable, unknown []multiaddr.Multiaddr)
}
