//go:build linux

package jobnet

import (
	"cmp"
	"net/netip"
	"slices"
)

// reserved is a range of addresses that is not the internet, and why.
type reserved struct {
	prefix netip.Prefix
	why    string
}

func reservedList() []reserved {
	list := []reserved{}
	for _, r := range []struct{ prefix, why string }{
		{"0.0.0.0/8", "this network"},
		{"10.0.0.0/8", "private"},
		{"100.64.0.0/10", "carriers' and VPNs' own"},
		{"127.0.0.0/8", "loopback"},
		{"169.254.0.0/16", "link-local, metadata services"},
		{"172.16.0.0/12", "private"},
		{"192.0.0.0/24", "protocols' own"},
		{"192.168.0.0/16", "private"},
		{"198.18.0.0/15", "benchmarks, proxies' fake answers"},
		{"224.0.0.0/4", "multicast"},
		{"240.0.0.0/4", "reserved, broadcast"},
	} {
		list = append(list, reserved{netip.MustParsePrefix(r.prefix), r.why})
	}
	return list
}

func reservedRanges() []netip.Prefix {
	var ranges []netip.Prefix
	for _, r := range reservedList() {
		ranges = append(ranges, r.prefix)
	}
	return ranges
}

// ipv4Only returns the IPv4 prefixes among some, in order and without those that lie in others: sets of ranges in nft take
// no overlap.
func ipv4Only(prefixes []netip.Prefix) []netip.Prefix {
	var all []netip.Prefix
	for _, p := range prefixes {
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		if p.IsValid() && p.Addr().Is4() {
			all = append(all, p.Masked())
		}
	}
	slices.SortFunc(all, func(a, b netip.Prefix) int {
		return cmp.Or(a.Bits()-b.Bits(), a.Addr().Compare(b.Addr()))
	})
	var outer []netip.Prefix
	for _, p := range all {
		if !covered(p.Addr(), outer) {
			outer = append(outer, p)
		}
	}
	slices.SortFunc(outer, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
	return outer
}

func covered(a netip.Addr, by []netip.Prefix) bool {
	return slices.ContainsFunc(by, func(p netip.Prefix) bool { return p.Contains(a) })
}
