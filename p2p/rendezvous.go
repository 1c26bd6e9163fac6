package p2p

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p"
	dht "github.com/libp2p/go-libp2p-kad-dht"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	tls "github.com/libp2p/go-libp2p/p2p/security/tls"
	quic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/multiformats/go-multiaddr"
	"github.com/multiformats/go-multihash"

	"haggle/market"
)

// The public DHT of IPFS keeps an announcement for 48 hours and its addresses for 24 (libp2p's kad-dht, records).
const (
	publicTimeout = 2 * time.Minute // one visit
	publicGrace   = 3 * time.Second // for the other sources, where there are any, before strangers are asked
	publicRenewal = 12 * time.Hour
	publicRetry   = 10 * time.Minute // after a visit at which nothing could be announced
	publicSeen    = 256              // announcements of others that are counted
	publicEnough  = 32               // announcements that are as good as more
	publicConns   = 128              // connections at once
)

// keepPublic visits the public DHT while few peers are known, and every 12 hours to announce a node that can be called from
// outside. Between visits nothing of it runs.
func (n *Node) keepPublic(ctx context.Context) {
	reachability := n.watchReachability(ctx)
	if len(n.bootstrap) > 0 || len(n.cfg.Sources.Remembered) > 0 || len(n.cfg.Sources.DNS) > 0 {
		n.rest(ctx, publicGrace)
	}
	var announce time.Time // when it is due
	var look time.Time     // when it is due
	pause := minLook
	for ctx.Err() == nil {
		callable := n.cfg.Mode != ModeClient && reachability() != network.ReachabilityPrivate && len(n.publicAddrs()) > 0
		few := n.dht.RoutingTable().Size() < fewPeers && !time.Now().Before(look)
		due := callable && !time.Now().Before(announce)
		if few || due {
			announced, err := n.visit(ctx, few, due)
			switch {
			case announced:
				announce = time.Now().Add(jitter(publicRenewal))
			case due:
				announce = time.Now().Add(jitter(publicRetry))
			}
			if err != nil && ctx.Err() == nil {
				n.log.Debug("the public DHT gave nothing", "err", err)
			}
			pause = n.lookAgain(pause)
			look = time.Now().Add(jitter(pause))
		}
		n.rest(ctx, jitter(minLook))
	}
}

// watchReachability returns a function that says whether this node was found to be callable from outside.
func (n *Node) watchReachability(ctx context.Context) func() network.Reachability {
	unknown := func() network.Reachability { return network.ReachabilityUnknown }
	sub, err := n.host.EventBus().Subscribe(new(event.EvtLocalReachabilityChanged), eventbus.BufSize(8))
	if err != nil {
		return unknown
	}
	context.AfterFunc(ctx, func() { _ = sub.Close() }) // it has nothing to lose
	last := network.ReachabilityUnknown
	return func() network.Reachability {
		for {
			select {
			case e, open := <-sub.Out():
				if !open {
					return last
				}
				if changed, ok := e.(event.EvtLocalReachabilityChanged); ok {
					last = changed.Reachability
				}
			default:
				return last
			}
		}
	}
}

// visit asks the public DHT for the network's nodes and meets them, and announces this one where it is due.
func (n *Node) visit(ctx context.Context, look, announce bool) (announced bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, publicTimeout)
	defer cancel()
	key, err := publicKey(n.cfg.Network)
	if err != nil {
		return false, err
	}
	r, err := newRendezvous(n.cfg, n.publicAddrs)
	if err != nil {
		n.sources.failed(SourcePublic, printableReason(err))
		return false, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.join(ctx, n.cfg.Sources.PublicBootstrap); err != nil {
		n.sources.failed(SourcePublic, err.Error())
		return false, err
	}
	found := slices.DeleteFunc(r.find(ctx, key), func(info peer.AddrInfo) bool { return info.ID == n.host.ID() })
	reason := ""
	if len(found) == 0 {
		reason = "no node of this network is announced there"
	}
	n.sources.told(SourcePublic, len(found), reason)
	if look {
		n.meet(ctx, SourcePublic, found, maxDialled)
	}
	if !announce || !worthAnnouncing(len(found)) {
		return announce, nil
	}
	if err := r.dht.Provide(ctx, key, true); err != nil {
		return false, fmt.Errorf("announce: %w", err)
	}
	n.sources.announced(SourcePublic)
	n.log.Info("announced in the public DHT", "others", len(found))
	return true, nil
}

// worthAnnouncing decides by lot whether one more announcement is of use: about 32 are, whoever and however many their authors may be,
// and at least every eighth node announces itself, so that nobody who stands there often keeps the others out.
func worthAnnouncing(others int) bool {
	return rand.Float64() < max(0.125, publicEnough/float64(max(others, 1)))
}

// publicKey is the key in the public DHT under which a network's nodes are found.
func publicKey(network string) (cid.Cid, error) {
	hash := market.HashOf([]byte("haggle/public/1/" + network))
	sum, err := multihash.Encode(hash[:], multihash.SHA2_256)
	if err != nil {
		return cid.Undef, err
	}
	return cid.NewCidV1(cid.Raw, sum), nil
}

// rendezvous is one visit to the public DHT, as its client. It is a host of its own with the node's identity, which calls and cannot
// be called: the members of that DHT, most of whom have no market key, never get to the node's own host.
type rendezvous struct {
	host host.Host
	dht  *dht.IpfsDHT
}

func newRendezvous(cfg Config, addrs func() []multiaddr.Multiaddr) (*rendezvous, error) {
	identity, err := identityOptions(cfg)
	if err != nil {
		return nil, err
	}
	carriers, err := dialOnlyOptions()
	if err != nil {
		return nil, err
	}
	options := append(append(identity, carriers...),
		libp2p.AddrsFactory(func([]multiaddr.Multiaddr) []multiaddr.Multiaddr { return addrs() }), // where the node can be called
		libp2p.ForceReachabilityPrivate(), // nobody is asked to call back
		libp2p.DisableIdentifyAddressDiscovery(),
		libp2p.DisableRelay(),
	)
	if r := cfg.Sources.Resolver; r != nil {
		resolver, err := (&Node{cfg: cfg}).resolver()
		if err != nil {
			return nil, err
		}
		options = append(options, libp2p.MultiaddrResolver(swarm.ResolverFromMaDNS{Resolver: resolver}))
	}
	h, err := libp2p.New(options...)
	if err != nil {
		return nil, fmt.Errorf("visit the public DHT: %w", err)
	}
	d, err := dht.New(h,
		dht.Mode(dht.ModeClient), dht.ProtocolPrefix(dht.DefaultPrefix), dht.DisableAutoRefresh(),
		dht.QueryFilter(dht.PublicQueryFilter), dht.RoutingTableFilter(dht.PublicRoutingTableFilter), dht.AddressFilter(onlyPublic),
	)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("visit the public DHT: %w", err), h.Close())
	}
	return &rendezvous{host: h, dht: d}, nil
}

// dialOnlyOptions are the transports and bounds of a host that calls a few hundred peers for a minute or two.
func dialOnlyOptions() ([]libp2p.Option, error) {
	connections, err := connmgr.NewConnManager(publicConns/4, publicConns/2)
	if err != nil {
		return nil, fmt.Errorf("connection manager: %w", err)
	}
	bounds := rcmgr.PartialLimitConfig{
		System: rcmgr.ResourceLimits{Conns: publicConns, ConnsInbound: rcmgr.BlockAllLimit, ConnsOutbound: publicConns},
	}.Build(rcmgr.DefaultLimits.AutoScale())
	resources, err := rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(bounds))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("resource manager: %w", err), connections.Close())
	}
	return []libp2p.Option{
		libp2p.Security(tls.ID, tls.New), libp2p.Security(noise.ID, noise.New),
		libp2p.Transport(tcp.NewTCPTransport), libp2p.Transport(quic.NewTransport),
		libp2p.ConnectionManager(connections), libp2p.ResourceManager(resources),
	}, nil
}

func (r *rendezvous) close() error { return errors.Join(r.dht.Close(), r.host.Close()) }

// join connects to members of the public DHT until its routing table has one.
func (r *rendezvous) join(ctx context.Context, bootstrap []string) error {
	infos := parseInfos(bootstrap)
	if len(bootstrap) == 0 {
		infos = dht.GetDefaultBootstrapPeerAddrInfos()
	}
	added := make(chan struct{}, 1)
	table := r.dht.RoutingTable()
	before := table.PeerAdded
	table.PeerAdded = func(id peer.ID) {
		before(id)
		select {
		case added <- struct{}{}:
		default:
		}
	}
	tried := make(chan struct{}, len(infos))
	for _, info := range infos {
		go func() {
			ctx, cancel := context.WithTimeout(ctx, 3*joinTimeout) // its name may have to be looked up first
			defer cancel()
			_ = r.host.Connect(ctx, info) // whoever answers is seen in the table
			tried <- struct{}{}
		}()
	}
	patience := time.NewTimer(4 * joinTimeout)
	defer patience.Stop()
	for left := len(infos); ; {
		if table.Size() > 0 {
			return nil
		}
		if left == 0 && len(infos) > 0 {
			// All were tried; those that answered may still be looked at.
			left = -1
			patience.Reset(joinTimeout)
		}
		select {
		case <-added:
		case <-tried:
			left--
		case <-patience.C:
			return errors.New("no member of the public DHT answers")
		case <-ctx.Done():
			return errors.New("no member of the public DHT answers in time")
		}
		if len(infos) == 0 {
			return errors.New("no member of the public DHT is configured")
		}
	}
}

// find returns the nodes that stand under a key.
func (r *rendezvous) find(ctx context.Context, key cid.Cid) []peer.AddrInfo {
	ctx, cancel := context.WithTimeout(ctx, publicTimeout/4)
	defer cancel()
	var found []peer.AddrInfo
	for info := range r.dht.FindProvidersAsync(ctx, key, publicSeen) {
		found = append(found, info)
	}
	return found
}
