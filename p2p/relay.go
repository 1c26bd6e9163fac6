package p2p

import (
	"context"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	"github.com/multiformats/go-multiaddr"

	"haggle/market"
)

// RelayService is what a node that is reachable from outside does for those that are not.
type RelayService uint8

// The services of relays.
const (
	RelaySmall RelayService = iota // for everybody, within limits: enough to bid, sign and pay
	RelayBulk                      // for those whom Reach.BulkFor names, without limit
	RelayNone
)

// String returns the service's name in the configuration.
func (s RelayService) String() string {
	return [...]string{"small", "bulk", "none"}[min(s, RelayNone)]
}

// Limits of a small relay, each of one relayed connection unless it says otherwise. A lease with a receipt a minute moves less than
// 100 kB an hour, so 4 MiB are for those and for offers; 10 minutes keep a slot from being held by a peer that could be called
// directly by then.
const (
	smallRelayData  = 4 << 20 // bytes each way
	smallRelayTime  = 10 * time.Minute
	relaySlots      = 256 // reservations of all peers
	relaySlotsPerIP = 8   // for 256 of one network a bulk relay is the right one
	relayCircuits   = 16  // to or from one peer
	relayBuffer     = 16 << 10
)

const (
	relayBucket  = "relay" // where nodes that relay announce themselves
	wantedRelays = 2
	relayBackoff = time.Minute // after a relay refused; a relay that restarts is wanted back soon
	relaySearch  = 30 * time.Second
	relayLookup  = 10 * time.Second // of the bucket

	relayFallback = time.Minute // until other relays are used than those of the configuration
)

// relayOptions are those of the service that a node gives when it is reachable.
func relayOptions(r Reach, held *holders) []relay.Option {
	resources := relay.Resources{
		Limit:           &relay.RelayLimit{Duration: smallRelayTime, Data: smallRelayData},
		ReservationTTL:  time.Hour,
		MaxReservations: relaySlots, MaxReservationsPerIP: relaySlotsPerIP, MaxReservationsPerASN: relaySlots / 4,
		MaxCircuits: relayCircuits, BufferSize: relayBuffer,
	}
	acl := relayACL{held: held}
	if r.Relay == RelayBulk {
		// Whom the owner names is one of theirs, and a farm has one address.
		resources.Limit, resources.MaxReservationsPerIP, resources.MaxReservationsPerASN = nil, relaySlots, relaySlots
		acl.only = r.BulkFor
	}
	return []relay.Option{relay.WithResources(resources), relay.WithACL(acl)}
}

// relayACL says who may be reached through this node. Whoever may, may be called by anybody.
type relayACL struct {
	only func(market.Key) bool // nil: everybody
	held *holders
}

// AllowReserve implements libp2p's relay.ACLFilter.
func (a relayACL) AllowReserve(id peer.ID, from multiaddr.Multiaddr) bool {
	allowed := a.allows(id)
	if allowed {
		most := relaySlotsPerIP
		if a.only != nil {
			most = relaySlots
		}
		a.held.hold(id, ipOf(from), most)
	}
	return allowed
}

func (a relayACL) allows(id peer.ID) bool {
	key, err := keyOf(id)
	return err == nil && (a.only == nil || a.only(key))
}

// AllowConnect implements libp2p's relay.ACLFilter.
func (a relayACL) AllowConnect(_ peer.ID, _ multiaddr.Multiaddr, to peer.ID) bool {
	return a.allows(to) // a peer that was taken off the list is not called any more
}

// holders are the peers that are reached through this node. Their connections are not trimmed: they would lose their place.
type holders struct {
	attached <-chan struct{}
	host     func() host.Host

	mu  sync.Mutex
	ids map[peer.ID]netip.Addr // where they call from
}

const heldTag = "haggle/relay"

// hold keeps a peer's connection, as long as there are not more than the service takes, in all and from one address. The library asks before
// it counts: a peer that gets no place because its address has enough must not be kept for it.
func (h *holders) hold(id peer.ID, from netip.Addr, most int) {
	<-h.attached
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, held := h.ids[id]; held || len(h.ids) >= relaySlots {
		return
	}
	same := 0
	for _, addr := range h.ids {
		if addr == from {
			same++
		}
	}
	if same < most {
		h.ids[id] = from
		h.host().ConnManager().Protect(id, heldTag)
	}
}

// leave forgets a peer that is gone.
func (h *holders) leave(id peer.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, held := h.ids[id]; held {
		delete(h.ids, id)
		h.host().ConnManager().Unprotect(id, heldTag)
	}
}

// relayCandidates implements libp2p's autorelay.PeerSource: the configured relays, connected peers that relay, and those that
// announced it.
func (r *reacher) relayCandidates(ctx context.Context, most int) <-chan peer.AddrInfo {
	out := make(chan peer.AddrInfo)
	go func() {
		defer close(out)
		select {
		case <-r.attached:
		case <-ctx.Done():
			return
		}
		given := map[peer.ID]bool{r.host.ID(): true}
		give := func(info peer.AddrInfo) bool {
			if given[info.ID] || len(given) > most {
				return len(given) <= most
			}
			given[info.ID] = true
			select {
			case out <- info:
				return true
			case <-ctx.Done():
				return false
			}
		}
		r.giveRelays(ctx, give)
	}()
	return out
}

// giveRelays gives candidates until give has enough.
func (r *reacher) giveRelays(ctx context.Context, give func(peer.AddrInfo) bool) {
	held := len(r.relays())
	static, _ := parsePeers("", r.cfg.Reach.Relays) // checked by New
	for _, info := range static {
		if !give(info) {
			return
		}
	}
	// The library takes any of those that it is given, so others are not even named while the owner's may still answer.
	if len(static) > 0 && (held > 0 || time.Since(r.began) < relayFallback) {
		return
	}
	if held >= wantedRelays {
		return // the library asks all the same, and a lookup costs strangers something
	}
	for _, id := range r.host.Network().Peers() {
		speaks, err := r.host.Peerstore().SupportsProtocols(id, proto.ProtoIDv2Hop)
		if err == nil && len(speaks) > 0 && !give(r.host.Peerstore().PeerInfo(id)) {
			return
		}
	}
	ctx, cancel := context.WithTimeout(ctx, relaySearch)
	defer cancel()
	if r.node.Ready(ctx) != nil {
		return
	}
	lookup, cancel := context.WithTimeout(ctx, relayLookup)
	defer cancel()
	for key := range r.node.Find(lookup, relayBucket) {
		id, err := peerID(key)
		if err == nil && !give(r.host.Peerstore().PeerInfo(id)) {
			return
		}
	}
}

// serving returns what the node relays now.
func (r *reacher) serving() RelayService {
	if r.used && speaks(r.host, proto.ProtoIDv2Hop) {
		return r.cfg.Reach.Relay
	}
	return RelayNone
}

func speaks(h interface{ Mux() protocol.Switch }, p protocol.ID) bool {
	return slices.Contains(h.Mux().Protocols(), p)
}

// isRelayed reports whether a connection goes through a relay, and isLimited whether that is a small one.
func isRelayed(c network.ConnMultiaddrs) bool { return circuit(c.RemoteMultiaddr()) }

func isLimited(c network.Conn) bool { return c.Stat().Limited }

func circuit(addr multiaddr.Multiaddr) bool {
	_, err := addr.ValueForProtocol(multiaddr.P_CIRCUIT)
	return err == nil
}

// relayEnd says why a connection through a small relay ended, as far as this side can know: the relay says nothing.
func relayEnd(c network.Conn, carried int64, now time.Time) string {
	extra := c.Stat().Extra
	lasts, _ := extra[client.StatLimitDuration].(time.Duration)
	data, _ := extra[client.StatLimitData].(uint64)
	switch {
	case lasts > 0 && now.Sub(c.Stat().Opened) >= lasts-time.Second:
		return "the relay's limit of " + lasts.String()
	case data > 0 && carried >= int64(min(data, math.MaxInt64)/8*7): // what we wrote, without the handshakes' and ciphers' part
		return "the relay's limit of " + strconv.FormatUint(data>>10, 10) + " KiB each way"
	}
	return "the relay or the peer closed it"
}
