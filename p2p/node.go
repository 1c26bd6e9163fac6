package p2p

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p"
	dht "github.com/libp2p/go-libp2p-kad-dht"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/multiformats/go-multiaddr"

	"haggle/market"
)

// closePatience is how long Close waits for handlers, whose contexts have ended by then.
const closePatience = 5 * time.Second

// Node is one program's place in one network. All methods may be called at any time by any goroutine.
type Node struct {
	cfg       Config
	key       market.Key
	log       *slog.Logger
	host      host.Host
	dht       *dht.IpfsDHT
	bulk      *bulk
	reach     *reacher
	members   *members
	sources   *sources
	bootstrap []peer.AddrInfo
	held      announcements
	trips     trips

	handlers sync.WaitGroup
	rewanted chan struct{} // holds one token after the wanted buckets changed
	closed   chan struct{} // closed by Close
	close    func() error

	mu        sync.Mutex
	running   bool
	closing   bool
	reason    string        // why the node is not joined
	changed   chan struct{} // closed and replaced when the routing table gains or loses a peer
	wanted    []string      // buckets to be found in
	announced time.Time     // when all of them were last told to the network
}

// New checks the configuration and makes a node. It listens at once, so that Addrs is known, but it dials nobody and serves
// no stream of ours before Run. A node that is never run must be closed.
func New(cfg Config) (*Node, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, fmt.Errorf("p2p: %w", err)
	}
	n, err := build(cfg, hostOptions)
	if err != nil {
		return nil, fmt.Errorf("p2p: %w", err)
	}
	return n, nil
}

// build makes a node of a complete configuration on a host with the transports that the options give it.
func build(cfg Config, transports func(Config) ([]libp2p.Option, error)) (*Node, error) {
	addrs, all, err := cfg.listenAddrs()
	if err != nil {
		return nil, err
	}
	if cfg.reacher, err = newReacher(cfg); err != nil {
		return nil, err
	}
	n := &Node{
		reach: cfg.reacher, members: cfg.members, sources: newSources(cfg),
		cfg: cfg, key: market.KeyOf(cfg.Key), log: cfg.Log, bulk: &bulk{cfg: cfg},
		rewanted: make(chan struct{}, 1), closed: make(chan struct{}), changed: make(chan struct{}),
		reason: "the node has not joined yet",
	}
	n.close = sync.OnceValue(n.shut)
	if n.bootstrap, err = cfg.bootstrapPeers(); err != nil {
		return nil, err
	}
	identity, err := identityOptions(cfg)
	if err != nil {
		return nil, err
	}
	options, err := transports(cfg) // last: they hold resources that the host will own
	if err != nil {
		return nil, err
	}
	if n.host, err = libp2p.New(append(identity, options...)...); err != nil {
		return nil, fmt.Errorf("start host: %w", err)
	}
	n.bulk.addrs = n.host.Addrs
	if n.dht, err = newDHT(cfg, n.host); err != nil {
		return nil, errors.Join(err, n.host.Close())
	}
	n.watchTable()
	if err := n.reach.attach(n); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	if err := n.listen(addrs, all); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func (n *Node) listen(addrs []multiaddr.Multiaddr, all bool) error {
	var failed []error
	for _, addr := range addrs {
		err := free(addr)
		if err == nil {
			err = n.host.Network().Listen(addr)
		}
		if err != nil {
			failed = append(failed, unheard(addr, err))
		}
	}
	if len(failed) == 0 {
		return nil
	}
	err := errors.Join(failed...)
	if all || len(failed) == len(addrs) {
		return err
	}
	n.log.Warn("not every address can be listened on", "err", err)
	return nil
}

// watchTable makes changes of the routing table known. No peer is connected yet, so nobody else reads these fields.
func (n *Node) watchTable() {
	table := n.dht.RoutingTable()
	added, removed := table.PeerAdded, table.PeerRemoved
	table.PeerAdded = func(id peer.ID) { added(id); n.tableChanged() }
	table.PeerRemoved = func(id peer.ID) { removed(id); n.tableChanged() }
}

// tableChanged is called with the table's lock held: it must not ask the table anything.
func (n *Node) tableChanged() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.changed)
	n.changed = make(chan struct{})
}

// tableChange returns a channel that closes with the next change of the routing table.
func (n *Node) tableChange() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed
}

// Run joins the network and stays in it, serves streams and keeps announcements fresh until ctx ends; then it closes the
// node. A network that cannot be joined is no error: Health tells it, and Run tries for ever. A node runs once.
func (n *Node) Run(ctx context.Context) error {
	n.mu.Lock()
	ran := n.running || n.closing
	n.running = true
	n.mu.Unlock()
	if ran {
		return errors.New("p2p: a node runs once, and not after Close")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	told := newComplaints()
	for p, h := range n.cfg.Handlers {
		n.serve(ctx, newServer(p, h, n.cfg.Limits[p], n.cfg.access, told, n.log))
	}
	var tasks sync.WaitGroup
	tasks.Go(func() { n.keepJoined(ctx) })
	tasks.Go(func() { n.keepAnnounced(ctx) })
	tasks.Go(func() { n.keepFound(ctx) })
	tasks.Go(func() { n.keepReach(ctx) })
	tasks.Go(func() { n.keepAccess(ctx) })
	tasks.Go(func() { n.keepMembers(ctx) })
	select {
	case <-ctx.Done():
	case <-n.closed:
	}
	cancel()
	tasks.Wait()
	return n.Close()
}

// serve registers a protocol's server with the host.
func (n *Node) serve(ctx context.Context, sv *server) {
	n.host.SetStreamHandler(protocol.ID(sv.protocol), func(s network.Stream) {
		key, err := keyOf(s.Conn().RemotePeer())
		if err != nil || !n.enter() {
			_ = s.Reset() // not a market peer, or we are leaving
			return
		}
		defer n.handlers.Done()
		defer n.protect(s, sv.protocol)()
		sv.serve(ctx, n.reach.meter(s), n.cfg.access.callerOf(key, s.Conn()), s.Conn().Stat().Limited)
	})
}

// enter counts a handler unless the node is closing.
func (n *Node) enter() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closing {
		n.handlers.Add(1)
	}
	return !n.closing
}

// protect keeps the connection of a lease or tunnel from being trimmed until the returned function is called.
func (n *Node) protect(s network.Stream, p Protocol) (release func()) {
	if p.quick() {
		return func() {}
	}
	id, tag := s.Conn().RemotePeer(), "haggle/"+s.ID()
	n.host.ConnManager().Protect(id, tag)
	return func() { n.host.ConnManager().Unprotect(id, tag) }
}

// Close stops a node, in Run or not: handlers, DHT, connections and listeners, in this order. Later calls return the same.
func (n *Node) Close() error { return n.close() }

func (n *Node) shut() error {
	n.mu.Lock()
	n.closing = true
	n.mu.Unlock()
	close(n.closed)
	for p := range n.cfg.Handlers {
		n.host.RemoveStreamHandler(protocol.ID(p))
	}
	done := make(chan struct{})
	go func() { n.handlers.Wait(); close(done) }()
	timer := time.NewTimer(closePatience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		n.log.Error("a stream's handler does not end; its connection is closed under it")
	}
	if err := errors.Join(n.bulk.close(), n.dht.Close(), n.host.Close()); err != nil {
		return fmt.Errorf("close node: %w", err)
	}
	return nil
}

// ID returns the node's key.
func (n *Node) ID() market.Key { return n.key }

// Mode returns whether the node answers the DHT's questions.
func (n *Node) Mode() Mode { return n.cfg.Mode }

// Network returns the name of the node's network.
func (n *Node) Network() string { return n.cfg.Network }

// Addrs returns the addresses at which the node believes it can be called, ready to be another node's bootstrap.
func (n *Node) Addrs() []string {
	var out []string
	for _, addr := range n.reach.callable() {
		out = append(out, addr.String()+"/p2p/"+n.key.String())
	}
	return out
}
