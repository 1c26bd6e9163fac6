//go:build linux

package jobnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"haggle/runtime"
)

// jobLink is the name of a job's interface inside the job.
const jobLink = "eth0"

// rigSide is how the rig's end of a job's link behaves. The interface forwards, since the machine as a whole may not.
func (n *Networks) rigSide(link string) []setting {
	v4, v6 := "ipv4/conf/"+link+"/", "ipv6/conf/"+link+"/"
	list := []setting{
		{v4 + "forwarding", "1"},
		{v4 + "accept_redirects", "0"},
		{v4 + "send_redirects", "0"},
		{v4 + "accept_source_route", "0"},
		{v4 + "route_localnet", "0"},
		{v4 + "proxy_arp", "0"},
		{v4 + "rp_filter", "0"},
		{v4 + "arp_ignore", "0"},
	}
	if n.has(OwnAddress) {
		list = append(list, setting{v4 + "rp_filter", "1"})
	}
	if n.has(SilentARP) {
		list = append(list, setting{v4 + "arp_ignore", "1"})
	}
	if n.has(NoIPv6) {
		list = append(list, setting{v6 + "disable_ipv6", "1"})
	}
	return list
}

// jobSide is how a job's namespace behaves. A job may ping and serve low ports without privileges, as in other engines.
func (n *Networks) jobSide() []setting {
	list := []setting{
		{"ipv4/ping_group_range", "0 2147483647"},
		{"ipv4/ip_unprivileged_port_start", "0"},
	}
	if n.has(NoIPv6) {
		list = append(list, setting{"ipv6/conf/all/disable_ipv6", "1"}, setting{"ipv6/conf/default/disable_ipv6", "1"})
	}
	return list
}

// connect makes a job's link, or completes one that is there.
func (n *Networks) connect(r *rig, job string, rec *record, ns netns.NsHandle, mtu int) error {
	inner, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("links of the job: %w", err)
	}
	defer inner.Close()
	if err := unused(inner); err != nil {
		return err
	}
	outer, err := n.ensureLink(r, inner, job, rec, ns, mtu)
	if err != nil {
		return err
	}
	name := outer.Attrs().Name
	gateway, addr := addresses(n.cfg.Pool, rec.Slot)
	// The settings come first: the link is still down.
	if err := inside(r.ns, func() error { return apply(n.rigSide(name), isIPv6) }); err != nil {
		return err
	}
	if err := inside(ns, func() error { return apply(n.jobSide(), isIPv6) }); err != nil {
		return err
	}
	if err := r.links.AddrReplace(outer, linkAddress(gateway)); err != nil {
		return fmt.Errorf("address of %s: %w", name, err)
	}
	if err := r.links.LinkSetUp(outer); err != nil {
		return fmt.Errorf("switch on %s: %w", name, err)
	}
	return settle(inner, addr, gateway)
}

// unused refuses a namespace in which something other than a job's link is switched on: whatever the process was taken for, that
// is a network that someone uses.
func unused(inner *netlink.Handle) error {
	links, err := inner.LinkList()
	if err != nil {
		return fmt.Errorf("links of the job: %w", err)
	}
	for _, l := range links {
		a := l.Attrs()
		if a.Flags&net.FlagUp != 0 && a.Flags&net.FlagLoopback == 0 && (a.Name != jobLink || l.Type() != "veth") {
			return fmt.Errorf("the process is in a network that is in use, by %s: %w", a.Name, runtime.ErrConflict)
		}
	}
	return nil
}

// settle gives the job's end its address and its way out.
func settle(inner *netlink.Handle, addr, gateway netip.Addr) error {
	lo, err := inner.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("loopback of the job: %w", err)
	}
	if err := inner.LinkSetUp(lo); err != nil {
		return fmt.Errorf("switch on the job's loopback: %w", err)
	}
	link, err := inner.LinkByName(jobLink)
	if err != nil {
		return fmt.Errorf("interface of the job: %w", err)
	}
	if err := inner.AddrReplace(link, linkAddress(addr)); err != nil {
		return fmt.Errorf("address of the job: %w", err)
	}
	if err := inner.LinkSetUp(link); err != nil {
		return fmt.Errorf("switch on the job's interface: %w", err)
	}
	out := &netlink.Route{LinkIndex: link.Attrs().Index, Gw: net.IP(gateway.AsSlice())}
	if err := inner.RouteReplace(out); err != nil {
		return fmt.Errorf("route of the job: %w", err)
	}
	return nil
}

// linkAddress is one end of a pair of addresses.
func linkAddress(a netip.Addr) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: net.IP(a.AsSlice()), Mask: net.CIDRMask(31, 32)}}
}

// ensureLink returns the rig's end of a job's link. One that leads elsewhere is replaced.
func (n *Networks) ensureLink(
	r *rig, inner *netlink.Handle, job string, rec *record, ns netns.NsHandle, mtu int,
) (netlink.Link, error) {
	name := n.linkName(rec.Slot)
	outer, err := r.links.LinkByName(name)
	if err == nil {
		if peer, err := inner.LinkByName(jobLink); err == nil && peer.Type() == "veth" &&
			peer.Attrs().ParentIndex == outer.Attrs().Index && outer.Attrs().ParentIndex == peer.Attrs().Index {
			return outer, nil
		}
		if err := r.links.LinkDel(outer); err != nil && !missing(err) {
			return nil, fmt.Errorf("remove %s: %w", name, err)
		}
	} else if !missing(err) {
		return nil, fmt.Errorf("interface %s: %w", name, err)
	}
	veth := netlink.NewVeth(netlink.NewLinkAttrs())
	veth.Name, veth.MTU = name, mtu
	veth.PeerName, veth.PeerMTU, veth.PeerNamespace = jobLink, uint32(mtu), netlink.NsFd(int(ns))
	if err := r.links.LinkAdd(veth); err != nil {
		return nil, fmt.Errorf("make interface %s: %w", name, err)
	}
	outer, err = r.links.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", name, err)
	}
	if err := r.links.LinkSetAlias(outer, job); err != nil {
		return nil, fmt.Errorf("name the job of %s: %w", name, err)
	}
	return outer, nil
}

func (n *Networks) linkName(slot int) string { return n.prefix + strconv.Itoa(slot) }

// ownLinks lists the links of this rig's jobs. Their alias is the job's id.
func (n *Networks) ownLinks(r *rig) ([]netlink.Link, error) {
	all, err := r.links.LinkList()
	if err != nil {
		return nil, fmt.Errorf("interfaces: %w", err)
	}
	return slices.DeleteFunc(all, func(l netlink.Link) bool {
		number, ours := strings.CutPrefix(l.Attrs().Name, n.prefix)
		_, err := strconv.Atoi(number)
		return !ours || err != nil || l.Type() != "veth"
	}), nil
}

// disconnect removes the links that belong to a job: the one of its record, and any that carries its name.
func (n *Networks) disconnect(r *rig, job string, rec *record) error {
	links, err := n.ownLinks(r)
	if err != nil {
		return err
	}
	for _, l := range links {
		if l.Attrs().Alias != job && (rec == nil || l.Attrs().Name != n.linkName(rec.Slot)) {
			continue
		}
		if err := r.links.LinkDel(l); err != nil && !missing(err) {
			return fmt.Errorf("remove %s: %w", l.Attrs().Name, err)
		}
	}
	return nil
}

func missing(err error) bool {
	var none netlink.LinkNotFoundError
	return errors.As(err, &none) || errors.Is(err, unix.ENODEV)
}

// forget ends the connections that conntrack knows of an address.
func (n *Networks) forget(r *rig, addr netip.Addr) error {
	if !n.has(NothingInherited) {
		return nil
	}
	if _, err := r.links.ConntrackDeleteFilters(netlink.ConntrackTable, unix.AF_INET, flowsOf(addr)); err != nil {
		return fmt.Errorf("end the connections of %s: %w", addr, err)
	}
	return nil
}

// flowsOf matches the connections that an address opened.
type flowsOf netip.Addr

// MatchConntrackFlow says whether the address opened the connection.
func (f flowsOf) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	a, ok := netip.AddrFromSlice(flow.Forward.SrcIP)
	return ok && a.Unmap() == netip.Addr(f)
}
