package p2p

import (
	"context"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/multiformats/go-multiaddr"
)

// believingResolver looks names up and believes of a stranger's name no more than of its addresses: a name of the public network that leads
// to 192.168.1.1 is as good as that address. Names that this machine's user configured may lead anywhere.
type believingResolver struct {
	network.MultiaddrDNSResolver
	network string
	home    func() bool // every peer is on this machine or its private networks
	own     map[string]bool
}

// resolverOption has a host look names up so.
func resolverOption(cfg Config) (libp2p.Option, error) {
	plain, err := (&Node{cfg: cfg}).resolver()
	if err != nil {
		return nil, err
	}
	own := map[string]bool{}
	for _, texts := range [][]string{cfg.Bootstrap, cfg.Reach.Relays} {
		for _, text := range texts {
			if addr, err := multiaddr.NewMultiaddr(text); err == nil && nameOf(addr) != "" {
				own[nameOf(addr)] = true
			}
		}
	}
	return libp2p.MultiaddrResolver(believingResolver{
		MultiaddrDNSResolver: swarm.ResolverFromMaDNS{Resolver: plain}, network: cfg.Network, own: own,
		home: func() bool {
			select {
			case <-cfg.reacher.attached:
				return atHome(cfg.reacher.host)
			default:
				return false
			}
		},
	}), nil
}

// nameOf returns the first name in an address that is to be looked up; "" where there is none.
func nameOf(addr multiaddr.Multiaddr) string {
	for _, code := range []int{multiaddr.P_DNS, multiaddr.P_DNS4, multiaddr.P_DNS6, multiaddr.P_DNSADDR} {
		if name, err := addr.ValueForProtocol(code); err == nil {
			return name
		}
	}
	return ""
}

// ResolveDNSAddr implements network.MultiaddrDNSResolver.
func (r believingResolver) ResolveDNSAddr(
	ctx context.Context, id peer.ID, addr multiaddr.Multiaddr, recursion, most int,
) ([]multiaddr.Multiaddr, error) {
	found, err := r.MultiaddrDNSResolver.ResolveDNSAddr(ctx, id, addr, recursion, most)
	return r.believed(addr, found), err
}

// ResolveDNSComponent implements network.MultiaddrDNSResolver.
func (r believingResolver) ResolveDNSComponent(ctx context.Context, addr multiaddr.Multiaddr, most int) ([]multiaddr.Multiaddr, error) {
	found, err := r.MultiaddrDNSResolver.ResolveDNSComponent(ctx, addr, most)
	return r.believed(addr, found), err
}

func (r believingResolver) believed(asked multiaddr.Multiaddr, found []multiaddr.Multiaddr) []multiaddr.Multiaddr {
	if r.own[nameOf(asked)] {
		return found
	}
	return believable(r.network, r.home(), found)
}
