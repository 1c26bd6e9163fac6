package p2p

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	madns "github.com/multiformats/go-multiaddr-dns"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"haggle/market"
)

// Sources say where a node looks for the first peers, beside Config.Bootstrap. All that are on are asked at once and none waits for
// another. The zero value asks none; labs never do.
type Sources struct {
	// DNS are names at which addresses of peers stand as dnsaddr records: TXT records of _dnsaddr.NAME.
	DNS []string
	// LAN asks the local network by multicast DNS, and answers there.
	LAN bool
	// Remembered are addresses from an earlier life of the program, as Node.Acquainted returned them.
	Remembered []string
	// Public asks the public DHT of IPFS, where those of our nodes that can be called from outside stand under one key per network.
	Public bool
	// PublicBootstrap are members of the public DHT that are asked first. None: those that its library names.
	PublicBootstrap []string
	// Resolver looks names up; nil: the system's. *net.Resolver is one.
	Resolver madns.BasicResolver
}

// Source names one way to find first peers.
type Source string

// The sources, in the order of reports.
const (
	SourceList       Source = "list"       // Config.Bootstrap
	SourceRemembered Source = "remembered" // peers of an earlier life
	SourceLAN        Source = "lan"
	SourceDNS        Source = "dns"
	SourcePublic     Source = "public" // the public DHT of IPFS
)

// SourceReport is what a source has given so far.
type SourceReport struct {
	Source    Source
	On        bool
	Found     int       // peers that it named
	Connected int       // of these now
	At        time.Time // when it last answered; zero: never
	Announced time.Time // when this node last said there that it exists, where that is done now and then; zero: not yet
	Reason    string    // why it is off or gives nobody; "" where it does
}

// Bounds of what sources may name: whoever answers on a LAN or keeps a name's records may be hostile.
const (
	maxMet        = 512 // peers that a node remembers to have been named
	maxNamed      = 64  // peers of one answer that are looked at
	maxNamedAddr  = 256 // bytes of one address; a circuit over a relay takes about 100
	maxDialled    = 24  // of these, dialled; on a LAN all
	maxDialling   = 8   // at once, of one source
	maxNeighbours = 64  // peers of the LAN that are kept connected
	strangerFor   = time.Hour
	fewPeers      = 4 // in the routing table: below this, first peers are looked for
	minLook       = 5 * time.Second
	maxLook       = time.Hour
)

// meeting is a peer that a source named.
type meeting struct {
	source   Source
	stranger time.Time // until then it is not dialled again: it was no node of this network
}

// sources is what a node knows of its sources.
type sources struct {
	mu      sync.Mutex
	reports map[Source]*SourceReport
	met     map[peer.ID]*meeting
}

func newSources(cfg Config) *sources {
	s := &sources{reports: map[Source]*SourceReport{}, met: map[peer.ID]*meeting{}}
	c := cfg.Sources
	for source, off := range map[Source]string{
		SourceList:       reasonIf(len(cfg.Bootstrap) == 0, "no address is configured, and none is built in"),
		SourceRemembered: reasonIf(len(c.Remembered) == 0, "no peer of an earlier run is known"),
		SourceLAN:        reasonIf(!c.LAN, "switched off"),
		SourceDNS:        reasonIf(len(c.DNS) == 0, "no name is configured, and none is built in"),
		SourcePublic:     reasonIf(!c.Public, "switched off"),
	} {
		if market.IsLab(cfg.Network) && source != SourceList {
			off = "a lab stays on this machine"
		}
		s.reports[source] = &SourceReport{Source: source, On: off == "", Reason: off}
	}
	return s
}

func reasonIf(holds bool, reason string) string {
	if holds {
		return reason
	}
	return ""
}

// on reports whether a source is asked.
func (s *sources) on(source Source) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reports[source].On
}

// told records a source's answer: how many peers it named, and why none.
func (s *sources) told(source Source, found int, reason string) {
	s.failed(source, reason)
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.reports[source]
	r.At = time.Now()
	r.Found = max(found, r.Found)
}

// failed records why a source does not answer.
func (s *sources) failed(source Source, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports[source].Reason = reason
}

// announced records that this node said at a source that it exists.
func (s *sources) announced(source Source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports[source].Announced = time.Now()
}

// wanted notes that a source named a peer and reports whether it may be dialled.
func (s *sources) wanted(source Source, id peer.ID, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, known := s.met[id]
	if !known {
		s.room(now)
		m = &meeting{source: source}
		s.met[id] = m
	}
	if source == SourceLAN {
		m.source = SourceLAN // who is near stays a neighbour, whoever else names it
	}
	return now.After(m.stranger)
}

// room forgets a peer where the bound is met: strangers whose time is over first.
func (s *sources) room(now time.Time) {
	if len(s.met) < maxMet {
		return
	}
	var any peer.ID
	for id, m := range s.met {
		any = id
		if !m.stranger.IsZero() && now.After(m.stranger) {
			break
		}
	}
	delete(s.met, any)
}

// stranger notes that a peer is no node of this network.
func (s *sources) stranger(id peer.ID, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, ok := s.met[id]; ok {
		m.stranger = until
	}
}

// of returns the peers that a source named, every source's where it is "".
func (s *sources) of(source Source) []peer.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []peer.ID
	for id, m := range s.met {
		if (source == "" || m.source == source) && m.stranger.IsZero() {
			ids = append(ids, id)
		}
	}
	return ids
}

// Sources reports on every source, in a fixed order.
func (n *Node) Sources() []SourceReport {
	var all []SourceReport
	for _, source := range []Source{SourceList, SourceRemembered, SourceLAN, SourceDNS, SourcePublic} {
		ids := n.sources.of(source)
		if source == SourceList {
			ids = nil
			for _, info := range n.bootstrap {
				ids = append(ids, info.ID)
			}
		}
		n.sources.mu.Lock()
		r := *n.sources.reports[source]
		n.sources.mu.Unlock()
		r.Connected = len(n.connectedOf(ids))
		if source == SourceList {
			r.Found = len(ids)
		}
		if r.On && r.Reason == "" && r.Connected == 0 {
			r.Reason = "nobody answers yet"
		}
		if r.Connected > 0 {
			r.Reason = ""
		}
		all = append(all, r)
	}
	return all
}

func (n *Node) connectedOf(ids []peer.ID) []peer.ID {
	return slices.DeleteFunc(slices.Clone(ids), func(id peer.ID) bool {
		return n.host.Network().Connectedness(id) == network.NotConnected
	})
}

// introduced are the peers whom this node knows otherwise than by the network's DHT, and asks directly: the bootstrap peers and the
// neighbours on the LAN, and while nobody serves the DHT everybody whom a source named.
func (n *Node) introduced() []peer.ID {
	var ids []peer.ID
	for _, info := range n.bootstrap {
		ids = append(ids, info.ID)
	}
	source := SourceLAN
	if n.dht.RoutingTable().Size() == 0 {
		source = ""
	}
	for _, id := range n.connectedOf(n.sources.of(source)) {
		if len(ids) == len(n.bootstrap)+maxNeighbours {
			break
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// unmet says why nobody was found where no bootstrap peer is configured.
func (n *Node) unmet() string {
	var asked []string
	for _, r := range n.Sources() {
		if r.On && r.Source != SourceList {
			asked = append(asked, string(r.Source)+": "+reasonOr(r.Reason, "asked"))
		}
	}
	if len(asked) == 0 {
		return "no bootstrap peer is configured and nobody has called"
	}
	return "no member is found yet (" + strings.Join(asked, "; ") + ")"
}

func reasonOr(reason, other string) string {
	if reason == "" {
		return other
	}
	return reason
}

// keepFound asks all sources that are on until ctx ends.
func (n *Node) keepFound(ctx context.Context) {
	var tasks sync.WaitGroup
	for source, keep := range map[Source]func(context.Context){
		SourceRemembered: n.keepRemembered, SourceLAN: n.keepNeighbours, SourceDNS: n.keepNamed, SourcePublic: n.keepPublic,
	} {
		if n.sources.on(source) {
			tasks.Go(func() { keep(ctx) })
		}
	}
	tasks.Wait()
}

// meet dials peers that a source named, those that are not this network's let go again. It returns once each has been tried.
func (n *Node) meet(ctx context.Context, source Source, infos []peer.AddrInfo, most int) {
	infos = n.plausible(source, infos)
	if source != SourceLAN {
		rand.Shuffle(len(infos), func(i, j int) { infos[i], infos[j] = infos[j], infos[i] })
	}
	var dials sync.WaitGroup
	places := make(chan struct{}, maxDialling)
	dialled := 0
	for _, info := range infos {
		if ctx.Err() != nil || dialled == most {
			break
		}
		if !n.sources.wanted(source, info.ID, time.Now()) {
			continue
		}
		n.note(info)
		dialled++
		places <- struct{}{}
		dials.Go(func() {
			n.greet(ctx, info)
			<-places
		})
	}
	dials.Wait()
}

// greet connects to a peer that a source named and lets it go where it is no node of this network.
func (n *Node) greet(ctx context.Context, info peer.AddrInfo) {
	if n.dial(ctx, info, joinTimeout) != nil {
		return
	}
	spoken, err := n.host.Peerstore().Get(info.ID, "ProtocolVersion")
	if err != nil {
		return // it hung up before it had said what it is
	}
	if spoken != protocolVersion(n.cfg) {
		n.sources.stranger(info.ID, time.Now().Add(strangerFor))
		_ = n.host.Network().ClosePeer(info.ID) // it may be gone already
		return
	}
	n.tableChanged() // Ready looks again: there may be somebody to ask
}

// lookAgain returns how long to wait before a source is asked again: the longer the better the node is joined.
func (n *Node) lookAgain(last time.Duration) time.Duration {
	if n.dht.RoutingTable().Size() >= fewPeers {
		return maxLook
	}
	return min(max(2*last, minLook), maxLook/6)
}

// rest waits, and no longer than until the last peer of the routing table is lost.
func (n *Node) rest(ctx context.Context, d time.Duration) {
	until := time.Now().Add(d)
	had := false
	for ctx.Err() == nil && time.Now().Before(until) {
		change := n.tableChange()
		has := n.dht.RoutingTable().Size() > 0
		if had && !has {
			return
		}
		had = has
		wait(ctx, time.Until(until), change)
	}
}
