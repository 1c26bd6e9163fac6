//go:build linux

package netlab

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
)

// NAT is how a router shares its IPv4 address. Every kind drops what comes in unasked, on IPv6 too, where nothing is translated.
type NAT uint8

// The kinds.
const (
	// PortPreserving keeps the port of the one who sends where it is free, for all destinations: most home routers.
	PortPreserving NAT = iota
	// Symmetric takes a new port by chance for each destination: many carriers and company networks.
	Symmetric
)

// Router is a LAN's way to the internet, or to another router's LAN.
type Router struct {
	net    *Net
	space  string
	wan    *Host        // its cable to the outside; nil: it has none
	lan4   netip.Prefix // with its own address
	lan6   netip.Prefix
	family Family
	ports  int
	leases int // addresses given
}

// Router puts a router on the internet.
func (n *Net) Router(ctx context.Context, name string, nat NAT, family Family) (*Router, error) {
	return n.outer(ctx, name, nat, family, home)
}

// Carrier puts a carrier's router on the internet: its customers share an address and have IPv4 only.
func (n *Net) Carrier(ctx context.Context, name string, nat NAT) (*Router, error) {
	return n.outer(ctx, name, nat, OnlyV4, carrier)
}

func (n *Net) outer(ctx context.Context, name string, nat NAT, family Family, block [2]byte) (*Router, error) {
	r, err := n.router(ctx, name, family, block)
	if err != nil {
		return nil, err
	}
	r.wan = &Host{space: r.space, Device: "wan0", family: family, at: n, behind6: r.lan6.Masked()}
	if err := n.attach(ctx, r.wan); err != nil {
		return nil, err
	}
	return r, r.guard(ctx, nat)
}

// Router puts a router behind this one, which is a carrier's then.
func (r *Router) Router(ctx context.Context, name string, nat NAT) (*Router, error) {
	inner, err := r.net.router(ctx, name, OnlyV4, home)
	if err != nil {
		return nil, err
	}
	inner.wan = &Host{space: inner.space, Device: "wan0", family: OnlyV4, at: r}
	if err := r.attach(ctx, inner.wan); err != nil {
		return nil, err
	}
	return inner, inner.guard(ctx, nat)
}

// LAN makes a LAN without a way out.
func (n *Net) LAN(ctx context.Context, name string, family Family) (*Router, error) {
	return n.router(ctx, name, family, home)
}

// Blocks of private addresses, by their first two bytes: of homes (RFC 1918), and between carriers and homes (RFC 6598).
var (
	home    = [2]byte{192, 168}
	carrier = [2]byte{100, 64}
)

// router makes a router without a cable to the outside.
func (n *Net) router(ctx context.Context, name string, family Family, block [2]byte) (*Router, error) {
	space, err := n.space(ctx, name)
	if err != nil {
		return nil, err
	}
	n.links++
	r := &Router{net: n, space: space, family: family}
	lines := []string{"link add lan0 type bridge mcast_snooping 0", "link set lan0 up"}
	if family.v4() {
		r.lan4 = netip.PrefixFrom(netip.AddrFrom4([4]byte{block[0], block[1], byte(n.links), 1}), 24)
		lines = append(lines, fmt.Sprintf("addr add %s dev lan0", r.lan4))
	}
	if family.v6() {
		r.lan6 = netip.PrefixFrom(netip.MustParseAddr(fmt.Sprintf("2a0e:%x::1", n.links)), 64)
		lines = append(lines, fmt.Sprintf("addr add %s dev lan0", r.lan6))
	}
	if err := ip(ctx, space, lines...); err != nil {
		return nil, err
	}
	return r, forward(ctx, space)
}

// guard loads the router's rules. What comes from outside unasked is dropped without a word: an answer would use up the port that
// a host inside is about to send from.
func (r *Router) guard(ctx context.Context, nat NAT) error {
	// OpenWrt's kernel does not look at TCP's windows (its patch 613-netfilter_optional_tcp_window_check). One that does takes a
	// second call from the same port, which is what punching is, for a forged one.
	if err := set(ctx, r.space, "net/netfilter/nf_conntrack_tcp_be_liberal=1"); err != nil {
		return err
	}
	masquerade := "masquerade"
	if nat == Symmetric {
		masquerade += " fully-random"
	}
	return nft(ctx, r.space, `
table inet guard {
	chain input {
		type filter hook input priority filter; policy accept
		iifname "wan0" ct state established,related accept
		iifname "wan0" icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept
		iifname "wan0" drop
	}
	chain forward {
		type filter hook forward priority filter; policy drop
		ct state established,related accept
		iifname "lan0" accept
	}
}
table ip share {
	chain out {
		type nat hook postrouting priority srcnat
		oifname "wan0" `+masquerade+`
	}
}
`)
}

// DropUDP has the router drop all UDP from now on, as some companies' do.
func (r *Router) DropUDP(ctx context.Context) error {
	return nft(ctx, r.space, "insert rule inet guard forward meta l4proto udp drop\n")
}

// Host puts a host on the router's LAN.
func (r *Router) Host(ctx context.Context, name string) (*Host, error) {
	space, err := r.net.space(ctx, name)
	if err != nil {
		return nil, err
	}
	h := &Host{space: space, Device: "eth0", family: r.family, at: r}
	return h, r.attach(ctx, h)
}

// attach links a host to the LAN.
func (r *Router) attach(ctx context.Context, h *Host) error {
	r.ports++
	h.port = "p" + strconv.Itoa(r.ports)
	if err := cable(ctx, h.space, h.Device, r.space, h.port); err != nil {
		return err
	}
	if err := ip(ctx, r.space, "link set "+h.port+" master lan0 up"); err != nil {
		return err
	}
	return r.address(ctx, h)
}

// address implements place.
func (r *Router) address(ctx context.Context, h *Host) error {
	r.leases++
	last := byte(9 + r.leases)
	lines := []string{"link set " + h.Device + " up"}
	if r.family.v4() {
		b := r.lan4.Addr().As4()
		b[3] = last
		h.V4 = netip.AddrFrom4(b)
		lines = append(lines, fmt.Sprintf("addr add %s dev %s", h.at4(h.V4), h.Device))
		if r.wan != nil {
			lines = append(lines, fmt.Sprintf("route replace default via %s dev %s", r.lan4.Addr(), h.Device))
		}
	}
	if r.family.v6() {
		b := r.lan6.Addr().As16()
		b[15] = last
		h.V6 = netip.AddrFrom16(b)
		lines = append(lines, fmt.Sprintf("addr add %s dev %s", h.at6(h.V6), h.Device))
		if r.wan != nil {
			lines = append(lines, fmt.Sprintf("route replace ::/0 via %s dev %s", r.lan6.Addr(), h.Device))
		}
	}
	return ip(ctx, h.space, lines...)
}

// forget implements place: a LAN needs no routes.
func (r *Router) forget(context.Context, *Host, netip.Addr, netip.Addr) error { return nil }

func (r *Router) farEnd() string { return r.space }

// Outside is the router's own cable to the outside: Readdress gives the whole LAN another address there.
func (r *Router) Outside() *Host { return r.wan }

// at4 is an address as it stands on the host's cable, with the size of its network.
func (h *Host) at4(a netip.Addr) string {
	if r, ok := h.at.(*Router); ok {
		return fmt.Sprintf("%s/%d", a, r.lan4.Bits())
	}
	return a.String() + "/32"
}

// at6 is at4 for IPv6.
func (h *Host) at6(a netip.Addr) string {
	if r, ok := h.at.(*Router); ok {
		return fmt.Sprintf("%s/%d", a, r.lan6.Bits())
	}
	return a.String() + "/128"
}
