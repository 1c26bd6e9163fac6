//go:build linux

package jobnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	// broadRoute is the prefix length below which a route is a way to the internet and not a network that the rig is in: a
	// default route, or one that a VPN has cut into halves.
	broadRoute = 8
	defaultMTU = 1500
	minMTU     = 576
)

// house is where the rig stands: the networks that it is in, and its ways out.
type house struct {
	connected []netip.Prefix // that are not reserved
	uplinks   []string
	mtu       int            // the smallest of the uplinks'
	taken     []netip.Prefix // all networks but the default ones
}

// survey reads the rig's own interfaces, addresses and routes.
func (r *rig) survey(ownPrefix string) (house, error) {
	h := house{mtu: defaultMTU}
	links, err := r.links.LinkList()
	if err != nil {
		return h, fmt.Errorf("interfaces: %w", err)
	}
	names, mtus := map[int]string{}, map[int]int{}
	for _, l := range links {
		names[l.Attrs().Index], mtus[l.Attrs().Index] = l.Attrs().Name, l.Attrs().MTU
	}
	addrs, err := r.links.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return h, fmt.Errorf("addresses: %w", err)
	}
	for _, a := range addrs {
		if strings.HasPrefix(names[a.LinkIndex], ownPrefix) {
			continue
		}
		for _, n := range []*net.IPNet{a.IPNet, a.Peer} {
			if p, ok := prefixOf(n); ok {
				h.connected = append(h.connected, p.Masked())
			}
		}
	}
	routes, err := r.links.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return h, fmt.Errorf("routes: %w", err)
	}
	for _, route := range routes {
		h.route(route, names, ownPrefix)
	}
	for _, up := range h.uplinks {
		for i, name := range names {
			if name == up {
				h.mtu = max(min(h.mtu, mtus[i]), minMTU)
			}
		}
	}
	h.taken = append(slices.Clone(h.taken), h.connected...)
	// What is reserved is refused anyway; and other rigs' jobs, which come and go, are.
	h.connected = slices.DeleteFunc(ipv4Only(h.connected), func(p netip.Prefix) bool { return covered(p.Addr(), reservedRanges()) })
	return h, nil
}

// route takes note of one route.
func (h *house) route(r netlink.Route, names map[int]string, ownPrefix string) {
	if r.Type != unix.RTN_UNICAST {
		return
	}
	out := []int{r.LinkIndex}
	for _, hop := range r.MultiPath {
		out = append(out, hop.LinkIndex)
	}
	to, ok := prefixOf(r.Dst)
	if !ok || to.Bits() < broadRoute {
		for _, i := range out {
			if name := names[i]; name != "" && !strings.HasPrefix(name, ownPrefix) && !slices.Contains(h.uplinks, name) {
				h.uplinks = append(h.uplinks, name)
			}
		}
		return
	}
	if strings.HasPrefix(names[r.LinkIndex], ownPrefix) {
		return
	}
	h.taken = append(h.taken, to.Masked())
	if r.Scope == netlink.SCOPE_LINK && len(r.Gw) == 0 {
		h.connected = append(h.connected, to.Masked())
	}
}

func prefixOf(n *net.IPNet) (netip.Prefix, bool) {
	if n == nil {
		return netip.Prefix{}, false
	}
	a, ok := netip.AddrFromSlice(n.IP)
	ones, _ := n.Mask.Size()
	if !ok || !a.Unmap().Is4() || len(n.Mask) != net.IPv4len {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(a.Unmap(), ones), true
}

func forwardingOf(link string) string { return "ipv4/conf/" + link + "/forwarding" }

// allForwarding is the switch of the whole machine, also known as ip_forward.
const allForwarding = "ipv4/conf/all/forwarding"

// openWays lets the uplinks forward, since answers to jobs come in there; the jobs' own links forward already. It returns the
// names of those that forward only because of us, before now or since. A machine that forwards anyway owes us nothing.
func (r *rig) openWays(uplinks, ours []string) (now []string, err error) {
	now = slices.Clone(ours)
	err = inside(r.ns, func() error {
		all, err := sysctlOn(allForwarding)
		if err != nil {
			return err
		}
		for _, up := range uplinks {
			on, err := sysctlOn(forwardingOf(up))
			if err != nil {
				return err
			}
			if on {
				continue
			}
			if err := apply([]setting{{forwardingOf(up), "1"}}, never); err != nil {
				return err
			}
			if !slices.Contains(now, up) {
				now = append(now, up)
			}
		}
		if all {
			now = nil
		}
		return nil
	})
	slices.Sort(now)
	return now, err
}

// closeWays puts back what openWays changed.
func (r *rig) closeWays(ours []string) error {
	return inside(r.ns, func() error {
		if on, err := sysctlOn(allForwarding); on || err != nil {
			return err // Someone else wants the machine to forward by now.
		}
		var all error
		for _, up := range ours {
			all = errors.Join(all, apply([]setting{{forwardingOf(up), "0"}}, gone))
		}
		return all
	})
}

func never(string) bool { return false }

// gone allows for an interface that is no longer there.
func gone(string) bool { return true }
