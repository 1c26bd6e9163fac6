package p2p

import (
	"cmp"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// NATKind is what stands between a node and the internet, as far as it shows. Two hosts behind PortPreserving or Fixed translators
// can call each other once a relay has introduced them; one behind Symmetric cannot be called so, because every peer sees it at
// another port (RFC 4787 names these endpoint-independent and address- and port-dependent mapping).
type NATKind string

// Kinds of address translation.
const (
	NATUnknown        NATKind = "unknown"         // fewer than two peers outside said what they see
	NATNone           NATKind = "none"            // peers see an address of this machine
	NATPortPreserving NATKind = "port-preserving" // all see the port that the node listens on
	NATFixed          NATKind = "fixed"           // all see one other port
	NATSymmetric      NATKind = "symmetric"       // each sees another port
)

const (
	maxSights = 32               // of one transport
	sightLife = 30 * time.Minute // of what a peer said
)

// sight is how one peer outside sees this node.
type sight struct {
	transport string // tcp or udp
	observer  netip.Addr
	local     uint16 // the port here
	seen      netip.AddrPort
	at        time.Time
}

// sights are the latest of all peers.
type sights struct {
	mu  sync.Mutex
	all []sight
}

func newSights() *sights { return &sights{} }

// add keeps what a peer said that it sees. Only peers at public addresses count, for others see the node from inside; and only those
// that this node called, for others came to where a router sends them.
func (s *sights) add(c network.Conn, observed multiaddr.Multiaddr, now time.Time) {
	if c == nil || observed == nil || c.Stat().Direction != network.DirOutbound || isRelayed(c) || circuit(observed) || !public(c.RemoteMultiaddr()) {
		return
	}
	transport, port, ok := portOf(c.LocalMultiaddr())
	observer, seen := addrPort(c.RemoteMultiaddr()), addrPort(observed)
	if other, _, same := portOf(observed); !ok || !same || other != transport || !observer.IsValid() || !seen.IsValid() {
		return
	}
	s.keep(sight{transport: transport, observer: observer.Addr(), local: port, seen: seen, at: now})
}

// differs reports whether a peer sees the node at another address than it said before. Behind a router of the symmetric
// kind ports say nothing.
func (s *sights) differs(c network.Conn, observed multiaddr.Multiaddr) bool {
	transport, local, _ := portOf(c.LocalMultiaddr())
	observer, now := addrPort(c.RemoteMultiaddr()).Addr(), addrPort(observed)
	all := s.list()
	ports := natKind(all, nil) != NATSymmetric
	return now.IsValid() && slices.ContainsFunc(all, func(o sight) bool {
		return o.transport == transport && o.observer == observer && o.local == local &&
			(o.seen.Addr() != now.Addr() || ports && o.seen.Port() != now.Port())
	})
}

func (s *sights) keep(one sight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	same := 0
	s.all = slices.DeleteFunc(s.all, func(o sight) bool {
		old := one.at.Sub(o.at) > sightLife || o.transport == one.transport && o.observer == one.observer && o.local == one.local
		if !old && o.transport == one.transport {
			same++
		}
		return old
	})
	if same >= maxSights {
		i := slices.IndexFunc(s.all, func(o sight) bool { return o.transport == one.transport })
		s.all = slices.Delete(s.all, i, i+1)
	}
	s.all = append(s.all, one)
}

// forget drops what peers said before a moment.
func (s *sights) forget(before time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(o sight) bool { return o.at.Before(before) })
}

func (s *sights) list() []sight {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// addrPort returns the IP and port that begin an address; the zero value where they do not.
func addrPort(addr multiaddr.Multiaddr) netip.AddrPort {
	ip, err := manet.ToIP(addr)
	_, port, ok := portOf(addr)
	a, valid := netip.AddrFromSlice(ip)
	if err != nil || !ok || !valid {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a.Unmap(), port)
}

// natKind guesses what translates a node's IPv4 addresses, or its IPv6 ones where there are no others. Holes are punched with UDP
// first, so what UDP shows wins.
func natKind(all []sight, mine []netip.Addr) NATKind {
	for _, family := range []func(netip.Addr) bool{netip.Addr.Is4, netip.Addr.Is6} {
		for _, transport := range []string{"udp", "tcp"} {
			some := slices.Clone(all)
			some = slices.DeleteFunc(some, func(s sight) bool { return s.transport != transport || !family(s.seen.Addr()) })
			if kind := kindOf(some, mine); kind != NATUnknown {
				return kind
			}
		}
	}
	return NATUnknown
}

// kindOf is natKind for one transport and family. Ports are compared among connections from one port here.
func kindOf(some []sight, mine []netip.Addr) NATKind {
	observers := map[uint16]map[netip.Addr]bool{}
	ports := map[uint16]map[uint16]bool{}
	for _, s := range some {
		if slices.Contains(mine, s.seen.Addr()) {
			return NATNone
		}
		if ports[s.local] == nil {
			observers[s.local], ports[s.local] = map[netip.Addr]bool{}, map[uint16]bool{}
		}
		observers[s.local][s.observer], ports[s.local][s.seen.Port()] = true, true
	}
	kind := NATUnknown
	for local, who := range observers {
		switch {
		case len(who) < 2:
		case len(ports[local]) > 1:
			return NATSymmetric
		case ports[local][local]:
			kind = NATPortPreserving
		case kind == NATUnknown:
			kind = NATFixed
		}
	}
	return kind
}

// Seen is an address at which peers outside see the node.
type Seen struct {
	Transport string // tcp or udp
	Addr      netip.AddrPort
	Observers int // at different addresses
}

// seen sums up what peers see, most observers first.
func seen(all []sight) []Seen {
	type place struct {
		transport string
		addr      netip.AddrPort
	}
	who := map[place]map[netip.Addr]bool{}
	for _, s := range all {
		p := place{s.transport, s.seen}
		if who[p] == nil {
			who[p] = map[netip.Addr]bool{}
		}
		who[p][s.observer] = true
	}
	out := make([]Seen, 0, len(who))
	for p, observers := range who {
		out = append(out, Seen{p.transport, p.addr, len(observers)})
	}
	slices.SortFunc(out, func(a, b Seen) int {
		return cmp.Or(b.Observers-a.Observers, cmp.Compare(a.Transport, b.Transport), a.Addr.Compare(b.Addr))
	})
	return out
}
