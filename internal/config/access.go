package config

import (
	"fmt"
	"net/netip"
)

// Access is who may call, beside everybody. Keys are as `status` shows them; networks as 203.0.113.0/24, or one address.
type Access struct {
	Allow       []string // never blocked for what they do
	Block       []string // neither called nor answered
	BlockOwners []string // as Block, and every program of theirs
	BlockNets   []string // turned away before anything is said
}

func accessTable[C any](part func(*C) *Access, client bool) []spec[C] {
	others := "renters"
	if client {
		others = "rigs"
	}
	return []spec[C]{
		{
			Knob: Knob{
				Name: "access.allow", Kind: KindList,
				Doc: "Keys that are never blocked for what they do, and are served first where many ask at once.",
			},
			field: func(c *C) any { return &part(c).Allow }, check: checkPeer,
		},
		{
			Knob: Knob{
				Name: "access.block", Kind: KindList,
				Doc: "Keys of " + others + " and other programs that are neither called nor answered.",
			},
			field: func(c *C) any { return &part(c).Block }, check: checkPeer,
		},
		{
			Knob: Knob{
				Name: "access.block_owners", Kind: KindList,
				Doc: "Keys of owners none of whose programs is called or answered.",
			},
			field: func(c *C) any { return &part(c).BlockOwners }, check: checkPeer,
		},
		{
			Knob: Knob{
				Name: "access.block_nets", Kind: KindList,
				Doc: `Networks that are turned away, such as "203.0.113.0/24"; access.allow does not help there.`,
			},
			field: func(c *C) any { return &part(c).BlockNets }, check: checkNet,
		},
	}
}

func checkNet(s string) error {
	_, err := ParseNet(s)
	return err
}

// ParseNet reads a network, or one address, as access.block_nets takes it.
func ParseNet(s string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(s); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	net, err := netip.ParsePrefix(s)
	if err != nil || net != net.Masked() || net.Addr().Is4In6() {
		return netip.Prefix{}, fmt.Errorf("holds %.80q, which is not a network such as 203.0.113.0/24 or 2001:db8::/32", s)
	}
	return net, nil
}
