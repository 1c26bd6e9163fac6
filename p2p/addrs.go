package p2p

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// addrs implements libp2p's AddrsFactory: what the node tells peers of where it is reached, of all that the library found out.
func (r *reacher) addrs(found []multiaddr.Multiaddr) []multiaddr.Multiaddr {
	all := slices.Concat(found, r.announce)
	r.mu.Lock()
	ifaces := r.ifaces
	private := r.reachability == network.ReachabilityPrivate && len(r.circuits) > 0
	r.mu.Unlock()
	if ifaces != nil {
		all = current(all, r.listening(), ifaces)
	}
	if private {
		all = r.withoutObservedTCP(all, ifaces)
	}
	if r.cfg.keepsPrivate() && !r.atHome() {
		all = slices.DeleteFunc(all, func(a multiaddr.Multiaddr) bool { return !public(a) })
	}
	return multiaddr.Unique(all)
}

// withoutObservedTCP leaves out TCP addresses that peers see at a router which lets nobody in. A peer that calls one leaves a mark in its
// own router, whose check of sequence numbers then spoils the hole that is punched at the same ports a moment later. What a hole needs
// to know is told when it is punched.
func (r *reacher) withoutObservedTCP(all, ifaces []multiaddr.Multiaddr) []multiaddr.Multiaddr {
	_, mapped := r.mapped()
	mine := ips(ifaces)
	return slices.DeleteFunc(all, func(a multiaddr.Multiaddr) bool {
		transport, _, _ := portOf(a)
		return transport == "tcp" && public(a) && !circuit(a) && !slices.Contains(mine, addrPort(a).Addr()) &&
			!slices.Contains(mapped, a.String()) && !slices.ContainsFunc(r.announce, a.Equal)
	})
}

// atHome reports whether nobody outside hears what the node tells: a market of a house has only private addresses. Whoever said that
// they are kept means always.
func (r *reacher) atHome() bool {
	select {
	case <-r.attached:
		return r.cfg.Reach.Private == "" && atHome(r.host)
	default:
		return false
	}
}

func (r *reacher) listening() []multiaddr.Multiaddr {
	select {
	case <-r.attached:
		return r.host.Network().ListenAddresses()
	default:
		return nil
	}
}

// callable returns where the node can be called: what peers are told, and addresses of private networks, which people of one LAN tell
// each other.
func (r *reacher) callable() []multiaddr.Multiaddr {
	told := r.host.Addrs()
	h, ok := r.host.(addresser)
	if !r.used || !ok || !r.cfg.keepsPrivate() {
		return told
	}
	home := slices.DeleteFunc(h.AllAddrs(), public)
	return multiaddr.Unique(append(told, home...))
}

// current returns addresses as the machine's interfaces have them now: the library looks at them once a minute, which is longer
// than a job's shell should hang. Addresses that were seen by peers, mapped by a router or are a relay's stay.
func current(all, listening, ifaces []multiaddr.Multiaddr) []multiaddr.Multiaddr {
	now, err := manet.ResolveUnspecifiedAddresses(listening, ifaces)
	if err != nil {
		return all
	}
	have := map[string]bool{}
	for _, addr := range ifaces {
		if ip, err := manet.ToIP(addr); err == nil {
			have[ip.String()] = true
		}
	}
	all = slices.DeleteFunc(all, func(a multiaddr.Multiaddr) bool {
		ip, err := manet.ToIP(a)
		return err == nil && !circuit(a) && !manet.IsPublicAddr(a) && !have[ip.String()]
	})
	now = slices.DeleteFunc(now, func(a multiaddr.Multiaddr) bool {
		return circuit(a) || manet.IsIPUnspecified(a) || manet.IsIP6LinkLocal(a)
	})
	return append(all, now...)
}

// public reports whether strangers can call an address: not one of RFC 1918, of carriers' own networks (100.64.0.0/10), unique
// local, link-local or loopback. A relay's is judged by where the relay is.
func public(addr multiaddr.Multiaddr) bool { return manet.IsPublicAddr(addr) }

func addrTexts(addrs []multiaddr.Multiaddr) []string {
	out := make([]string, 0, len(addrs))
	for _, a := range addrs {
		out = append(out, a.String())
	}
	return out
}

// keepInterfaces follows the addresses of the machine.
func (r *reacher) keepInterfaces(ctx context.Context) {
	ticker := time.NewTicker(interfaceCheck)
	defer ticker.Stop()
	for {
		if now, err := manet.InterfaceMultiaddrs(); err != nil {
			r.log.Debug("the machine's addresses are not known", "err", err)
		} else {
			r.look(ctx, now)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// machine returns the machine's own addresses.
func (r *reacher) machine() []netip.Addr {
	r.mu.Lock()
	defer r.mu.Unlock()
	return ips(r.ifaces)
}

// look compares the machine's addresses with those of a while ago. After a change connections may be dead without knowing it, and
// nobody knows where the node is.
func (r *reacher) look(ctx context.Context, now []multiaddr.Multiaddr) {
	slices.SortFunc(now, multiaddr.Multiaddr.Compare)
	r.mu.Lock()
	before := r.ifaces
	r.ifaces = now
	r.mu.Unlock()
	if before == nil || slices.EqualFunc(before, now, multiaddr.Multiaddr.Equal) {
		return
	}
	r.log.Info("addresses changed", "machine", addrTexts(now))
	r.probe(ctx, r.host.Network().Peers(), interfaceProbe)
	r.node.dialBootstrap(ctx)
	r.move()
}

// portOf returns the port and the transport of an address that is listened on: "tcp" or "udp".
func portOf(addr multiaddr.Multiaddr) (transport string, port uint16, ok bool) {
	for _, p := range []struct {
		code int
		name string
	}{{multiaddr.P_TCP, "tcp"}, {multiaddr.P_UDP, "udp"}} {
		text, err := addr.ValueForProtocol(p.code)
		if err != nil {
			continue
		}
		n, err := strconv.ParseUint(text, 10, 16)
		return p.name, uint16(n), err == nil
	}
	return "", 0, false
}

// globalIPv6 reports whether strangers can call an address if no firewall is between.
func globalIPv6(ip net.IP) bool {
	if ip.To4() != nil || !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return false
	}
	addr, err := manet.FromIP(ip)
	return err == nil && manet.IsPublicAddr(addr)
}
