package p2p

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/host/basic"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/multiformats/go-multiaddr"
)

const (
	interfaceCheck = 2 * time.Second  // a rig whose address changes is to be found again within 30 s
	probeEvery     = 10 * time.Second // of peers with leases
	probeTime      = 5 * time.Second  // for the answer
	settleMoved    = 3 * time.Second  // addresses change one after the other
	leastMoved     = time.Minute      // between two announcements for changes of addresses, other than the machine's own
)

// reacher knows how a node is reached, and keeps it so. The host is made with parts of it, so it is made before the host.
type reacher struct {
	cfg      Config
	used     bool // the host was made with it; not in labs
	log      *slog.Logger
	began    time.Time
	punches  *punches
	sights   *sights
	ports    basichost.NATManager // nil where no router is asked
	pins     *pinholes
	held     *holders
	attached chan struct{} // closed once node and host are set
	node     *Node
	host     host.Host
	emitter  event.Emitter
	// identified tells the library what peers say that they see.
	identified event.Emitter
	troubled   chan struct{} // see trouble
	announce   []multiaddr.Multiaddr

	mu           sync.Mutex
	life         context.Context // of keepReach; nil before it
	reachability network.Reachability
	circuits     []multiaddr.Multiaddr // the node's addresses at its relays
	ifaces       []multiaddr.Multiaddr // of the machine; nil: not read yet
	moved        time.Time             // when the addresses last became others
	kind         string                // as last logged
	changed      func()                // see Node.OnReach
	lot          bool                  // the node is found among the relays
	doubted      map[peer.ID]bool      // peers that are asked for a sign of life
	traffic      map[string]*traffic   // of connections through small relays, by id
	small        map[peer.ID]time.Time // relays that carry no tunnels, and until when that is believed
	detours      map[peer.ID]*detour   // peers that are called through others than these now
}

func newReacher(cfg Config) (*reacher, error) {
	announce, err := parseAddrs("reach.announce", cfg.Reach.Announce)
	if err != nil {
		return nil, err
	}
	boundRouters()
	r := &reacher{
		began: time.Now(), doubted: map[peer.ID]bool{}, troubled: make(chan struct{}, 1), small: map[peer.ID]time.Time{}, detours: map[peer.ID]*detour{},
		cfg: cfg, log: cfg.Log, announce: announce, attached: make(chan struct{}), traffic: map[string]*traffic{},
		punches: newPunches(cfg.Log), sights: newSights(), pins: &pinholes{log: cfg.Log}, kind: ReachUnknown,
	}
	r.punches.failing = r.punchFailed
	r.held = &holders{attached: r.attached, host: func() host.Host { return r.host }, ids: map[peer.ID]netip.Addr{}}
	return r, nil
}

// keepReach follows what peers and routers say about the node's reach, and what the machine's interfaces do.
func (n *Node) keepReach(ctx context.Context) {
	r := n.reach
	if !r.used {
		return
	}
	r.mu.Lock()
	r.life = ctx
	r.mu.Unlock()
	defer r.emitter.Close()
	defer r.identified.Close()
	events, err := n.host.EventBus().Subscribe([]any{
		new(event.EvtLocalReachabilityChanged), new(event.EvtLocalAddressesUpdated), new(event.EvtAutoRelayAddrsUpdated),
		new(event.EvtPeerIdentificationCompleted), new(event.EvtHostReachableAddrsChanged),
	}, eventbus.Name("haggle reach"), eventbus.BufSize(256))
	if err != nil {
		n.log.Error("how the node is reached is not followed", "err", err)
		return
	}
	defer events.Close()
	var side sync.WaitGroup
	defer side.Wait()
	if r.ports != nil {
		side.Go(func() { r.pins.keep(ctx, r.pinnable) })
	}
	side.Go(func() { r.keepInterfaces(ctx) })
	side.Go(func() { r.keepPeers(ctx) })
	side.Go(func() { r.keepObserved(ctx) })
	side.Go(func() { r.keepLot(ctx) })
	unsure := time.NewTimer(r.cfg.Reach.RelayDelay)
	defer unsure.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-unsure.C:
			r.doubt()
		case e, ok := <-events.Out():
			if !ok {
				return
			}
			r.take(e)
		}
		r.tell()
	}
}

// doubt has relays looked for where nobody could say yet whether the node is reachable: the library begins only when it was told.
func (r *reacher) doubt() {
	r.mu.Lock()
	known := r.reachability != network.ReachabilityUnknown
	r.mu.Unlock()
	if known {
		return
	}
	if err := r.emitter.Emit(event.EvtLocalReachabilityChanged{Reachability: network.ReachabilityUnknown}); err != nil {
		r.log.Debug("doubt about the reach is not told", "err", err)
	}
}

func (r *reacher) take(e any) {
	switch e := e.(type) {
	case event.EvtLocalReachabilityChanged:
		r.mu.Lock()
		r.reachability = e.Reachability
		r.mu.Unlock()
		r.node.retell() // with or without the bucket of relays
	case event.EvtAutoRelayAddrsUpdated:
		r.mu.Lock()
		r.circuits = slices.Clone(e.RelayAddrs)
		r.mu.Unlock()
	case event.EvtLocalAddressesUpdated:
		r.updated(e)
	case event.EvtPeerIdentificationCompleted:
		r.sights.add(e.Conn, e.ObservedAddr, time.Now())
	}
}

// updated has the network told where the node is reached now, if it gained an address that strangers can call.
func (r *reacher) updated(e event.EvtLocalAddressesUpdated) {
	gained := slices.ContainsFunc(e.Current, func(a event.UpdatedAddress) bool {
		return a.Action == event.Added && public(a.Address)
	})
	if !gained {
		return
	}
	r.mu.Lock()
	soon := time.Since(r.moved) < leastMoved
	r.mu.Unlock()
	if soon {
		return // the next announcement says it
	}
	r.log.Info("addresses changed", "addrs", addrTexts(r.host.Addrs()))
	time.AfterFunc(settleMoved, r.move)
}

// move has all announcements made again.
func (r *reacher) move() {
	r.mu.Lock()
	r.moved = time.Now()
	r.mu.Unlock()
	r.node.retell()
}

// movedAt returns when the node's addresses last became others: what was announced before names the old ones.
func (r *reacher) movedAt() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.moved
}

// relays returns the peers through which the node is reached.
func (r *reacher) relays() []peer.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []peer.ID
	for _, addr := range r.circuits {
		text, err := addr.ValueForProtocol(multiaddr.P_P2P)
		if err != nil {
			continue
		}
		if id, err := peer.Decode(text); err == nil && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// tell logs how the node is reached when that changed, and tells who asked to know.
func (r *reacher) tell() {
	report := r.node.Reach()
	r.mu.Lock()
	news := report.Kind != r.kind
	r.kind = report.Kind
	changed := r.changed
	r.mu.Unlock()
	if !news {
		return
	}
	r.log.Info("reach changed", "kind", report.Kind, "nat", string(report.NAT), "relays", len(report.Relays))
	if changed != nil {
		changed()
	}
}

// OnReach has a function called after the kind of the node's reach has changed. It must not wait. There is one such function; it is
// set before Run.
func (n *Node) OnReach(f func()) {
	n.reach.mu.Lock()
	defer n.reach.mu.Unlock()
	n.reach.changed = f
}

// retell has keepAnnounced look again at once.
func (n *Node) retell() {
	select {
	case n.rewanted <- struct{}{}:
	default: // one token is enough
	}
}
