package p2p

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
	madns "github.com/multiformats/go-multiaddr-dns"

	"haggle/market"
)

// Bounds of what the records of a name may lead to.
const (
	dnsTimeout = 10 * time.Second
	maxNames   = 16 // of configured ones, and of those that records of one name lead to
	maxDepth   = 4  // names that lead to names
	maxRecords = 64 // addresses of one name
)

// keepNamed asks the configured names for addresses of peers.
func (n *Node) keepNamed(ctx context.Context) {
	resolver, err := n.resolver()
	if err != nil {
		n.sources.failed(SourceDNS, err.Error())
		return
	}
	pause := minLook
	for ctx.Err() == nil {
		var infos []peer.AddrInfo
		var failed []error
		names := n.cfg.Sources.DNS
		for _, name := range names[:min(len(names), maxNames)] {
			addrs, err := resolveName(ctx, resolver, name)
			if err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", printable(name), err))
			}
			infos = append(infos, infosOf(addrs)...)
		}
		reason := ""
		if err := errors.Join(failed...); err != nil {
			reason = printableReason(err)
		} else if len(infos) == 0 {
			reason = "the records name no peer"
		}
		n.sources.told(SourceDNS, len(infos), reason)
		n.meet(ctx, SourceDNS, infos, maxDialled)
		pause = n.lookAgain(pause)
		n.rest(ctx, jitter(pause))
	}
}

func (n *Node) resolver() (*madns.Resolver, error) {
	if r := n.cfg.Sources.Resolver; r != nil {
		return madns.NewResolver(madns.WithDefaultResolver(r))
	}
	return madns.DefaultResolver, nil
}

// resolveName returns the addresses that a name's dnsaddr records lead to, by at most 4 names in a row and 16 in all.
func resolveName(ctx context.Context, resolver *madns.Resolver, name string) ([]multiaddr.Multiaddr, error) {
	ctx, cancel := context.WithTimeout(ctx, dnsTimeout)
	defer cancel()
	first, err := multiaddr.NewMultiaddr("/dnsaddr/" + name)
	if err != nil {
		return nil, errors.New("it is not a name")
	}
	open, lookups := []multiaddr.Multiaddr{first}, 0
	var found []multiaddr.Multiaddr
	for range maxDepth {
		var next []multiaddr.Multiaddr
		for _, addr := range open {
			if lookups == maxNames || len(found) >= maxRecords {
				return found, nil
			}
			lookups++
			addrs, err := resolver.Resolve(ctx, addr)
			if err != nil && lookups == 1 {
				return nil, err
			}
			for _, a := range addrs[:min(len(addrs), maxRecords)] {
				if madns.Matches(a) {
					next = append(next, a)
				} else if len(found) < maxRecords {
					found = append(found, a)
				}
			}
		}
		open = next
	}
	return found, nil
}

// printableReason returns an error's words for a report, bounded and on one line.
func printableReason(err error) string {
	const most = 200
	text := []rune(err.Error())
	for i, r := range text {
		if r == '\n' {
			text[i] = ';'
		}
	}
	return market.Printable(string(text[:min(len(text), most)]))
}
