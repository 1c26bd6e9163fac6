package p2p

import (
	"math"
	"net/netip"
	"time"

	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/x/rate"
)

// Connections that those may have, in both directions, who share an address or a network; see netsOf. libp2p's own bounds, 8 and one
// new one in 5 seconds, keep out a farm behind one address and the households behind a carrier's translator.
const (
	narrowConns = 96
	wideConns   = 192
	narrowRate  = 4 // new ones in a second
	narrowBurst = 128
	wideRate    = 16
	wideBurst   = 512
)

// connLimits are the resource manager's bounds by address.
func connLimits() []rcmgr.Option {
	var conns4, conns6 []rcmgr.ConnLimitPerSubnet
	var rates4, rates6 []rate.SubnetLimit
	for i, bits := range widths4 {
		c, r := connLimit(i == len(widths4)-1)
		conns4 = append(conns4, rcmgr.ConnLimitPerSubnet{PrefixLength: bits, ConnCount: c})
		rates4 = append(rates4, rate.SubnetLimit{PrefixLength: bits, Limit: r})
	}
	for i, bits := range widths6 {
		c, r := connLimit(i == len(widths6)-1)
		conns6 = append(conns6, rcmgr.ConnLimitPerSubnet{PrefixLength: bits, ConnCount: c})
		rates6 = append(rates6, rate.SubnetLimit{PrefixLength: bits, Limit: r})
	}
	var free4, free6 []rcmgr.NetworkPrefixLimit
	var unpaced []rate.PrefixLimit
	for _, net := range unlimitedNets() {
		limit := rcmgr.NetworkPrefixLimit{Network: net, ConnCount: math.MaxInt}
		if net.Addr().Is4() {
			free4 = append(free4, limit)
		} else {
			free6 = append(free6, limit)
		}
		unpaced = append(unpaced, rate.PrefixLimit{Prefix: net})
	}
	return []rcmgr.Option{
		rcmgr.WithLimitPerSubnet(conns4, conns6),
		rcmgr.WithNetworkPrefixLimit(free4, free6),
		rcmgr.WithConnRateLimiters(&rate.Limiter{
			NetworkPrefixLimits: unpaced,
			SubnetRateLimiter:   rate.SubnetLimiter{IPv4SubnetLimits: rates4, IPv6SubnetLimits: rates6, GracePeriod: time.Minute},
		}),
	}
}

func connLimit(wide bool) (conns int, pace rate.Limit) {
	if wide {
		return wideConns, rate.Limit{RPS: wideRate, Burst: wideBurst}
	}
	return narrowConns, rate.Limit{RPS: narrowRate, Burst: narrowBurst}
}

// unlimitedNets are those for which netsOf finds nothing: this machine, and private networks (RFC 1918, RFC 4193, RFC 3927, RFC 4291).
func unlimitedNets() []netip.Prefix {
	var nets []netip.Prefix
	for _, text := range []string{
		"127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "::1/128", "fc00::/7", "fe80::/10",
	} {
		nets = append(nets, netip.MustParsePrefix(text))
	}
	return nets
}
