package p2p

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// ReachReport is how a node can be called, as far as it knows at a moment.
type ReachReport struct {
	// Kind is ReachDirect where peers were seen to call it, ReachPunched where its router lets holes be punched and a relay helps,
	// ReachRelayed where only a relay helps, ReachLoopback in labs, and ReachUnknown until that is known.
	Kind       string
	Private    bool             // peers tried to call it and could not
	NAT        NATKind          //
	Transports []TransportReach // of public addresses, in the order of their names
	Gateway    bool             // a router was found that maps ports
	Mapped     []string         // addresses that it mapped
	Pinholes   []string         // IPv6 addresses for which it opened its firewall
	Observed   []Seen           // addresses at which peers see the node
	Listen     []string         // addresses that are listened on
	Relays     []string         // keys of the relays that hold a place for the node
	Serves     RelayService     // what it relays for others now
	PunchesOK  int              // holes punched since the start
	Failed     int              // peers for which none could be
}

// TransportReach is whether peers could call one transport.
type TransportReach struct {
	Name  string // such as "quic on IPv4"
	State string // "reachable", "unreachable" or "unknown"
}

// Reach returns how the node can be called.
func (n *Node) Reach() ReachReport {
	r := n.reach
	report := ReachReport{NAT: NATUnknown, Serves: RelayNone, Listen: addrTexts(n.host.Network().ListenAddresses())}
	if !r.used {
		report.Kind, report.NAT = ReachLoopback, NATNone
		return report
	}
	all := r.sights.list()
	r.mu.Lock()
	reachability, mine := r.reachability, ips(r.ifaces)
	r.mu.Unlock()
	report.NAT, report.Observed = natKind(all, mine), seen(all)
	report.PunchesOK, report.Failed = r.punches.counts()
	report.Serves, report.Pinholes = r.serving(), r.pins.open()
	for _, id := range r.relays() {
		report.Relays = append(report.Relays, peerText(id))
	}
	report.Gateway, report.Mapped = r.mapped()
	some := false
	report.Transports, some = r.transports()
	report.Private = reachability == network.ReachabilityPrivate && !some
	report.Kind = kindOfReach(report, some || reachability == network.ReachabilityPublic)
	return report
}

// kindOfReach judges a report. Holes that were punched, or could not be, say more than the look of the router.
func kindOfReach(r ReachReport, called bool) string {
	switch {
	case called:
		return ReachDirect
	case len(r.Relays) == 0:
		return ReachUnknown
	case r.PunchesOK > 0:
		return ReachPunched
	case r.Failed > 1, r.NAT == NATSymmetric, r.NAT == NATUnknown:
		return ReachRelayed
	}
	return ReachPunched
}

// transports returns what other peers found by calling, and whether one transport could be called.
func (r *reacher) transports() (list []TransportReach, some bool) {
	h, ok := r.host.(addresser)
	if !ok {
		return nil, false
	}
	reachable, unreachable, unknown := h.ConfirmedAddrs()
	states := map[string]string{}
	for _, group := range []struct {
		state string
		addrs []multiaddr.Multiaddr
	}{{"unknown", unknown}, {"unreachable", unreachable}, {"reachable", reachable}} { // the best one wins
		for _, addr := range group.addrs {
			states[transportName(addr)] = group.state
		}
	}
	for name, state := range states {
		list = append(list, TransportReach{name, state})
	}
	slices.SortFunc(list, func(a, b TransportReach) int { return strings.Compare(a.Name, b.Name) })
	return list, len(reachable) > 0
}

func transportName(addr multiaddr.Multiaddr) string {
	name := "tcp"
	if transport, _, _ := portOf(addr); transport == "udp" {
		name = "quic"
	}
	if _, err := addr.ValueForProtocol(multiaddr.P_IP6); err == nil {
		return name + " on IPv6"
	}
	return name + " on IPv4"
}

func ips(addrs []multiaddr.Multiaddr) []netip.Addr {
	var out []netip.Addr
	for _, a := range addrs {
		ip, err := manet.ToIP(a)
		if addr, ok := netip.AddrFromSlice(ip); err == nil && ok {
			out = append(out, addr.Unmap())
		}
	}
	return out
}
