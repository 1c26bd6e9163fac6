package networks

import (
	"net/netip"
	"slices"
	"strings"
)

const (
	maxTold     = 4
	maxToldAddr = 256 // bytes
)

// tellable returns at most 4 addresses for an invitation: those that are good for everybody first, then those of private networks,
// each peer first once. None on loopback, none over a relay.
func tellable(addrs []string) []string {
	type place struct {
		addr, peer string
		rank       int
	}
	var places []place
	for _, addr := range addrs {
		parts := strings.Split(addr, "/")
		at := slices.Index(parts, "p2p")
		if len(parts) < 5 || at != len(parts)-2 || strings.Contains(addr, "/p2p-circuit") || len(addr) > maxToldAddr {
			continue
		}
		rank := 0
		if ip, err := netip.ParseAddr(parts[2]); err == nil {
			if ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() {
				continue
			}
			if ip.IsPrivate() {
				rank = 1
			}
		}
		places = append(places, place{addr, parts[at+1], rank})
	}
	slices.SortStableFunc(places, func(a, b place) int { return a.rank - b.rank })
	var told []string
	var again []string
	seen := map[string]bool{}
	for _, p := range places {
		if seen[p.peer] {
			again = append(again, p.addr)
			continue
		}
		seen[p.peer] = true
		told = append(told, p.addr)
	}
	told = append(told, again...)
	return slices.Compact(told[:min(len(told), maxTold)])
}
