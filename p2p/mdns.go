package p2p

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/discovery/mdns"

	"haggle/market"
)

const (
	lanQueue   = 64               // answers that wait to be looked at; more are dropped, and come again
	lanRenewal = 10 * time.Minute // the service is started anew: what it has seen is forgotten, and everybody is heard again
	lanLook    = 5 * time.Second  // how soon a change of this machine's addresses is noticed
	lanRetry   = 30 * time.Second
)

// keepNeighbours finds the network's other programs on the local network and connects to them.
func (n *Node) keepNeighbours(ctx context.Context) {
	heard := make(neighbours, lanQueue)
	for ctx.Err() == nil {
		service := mdns.NewMdnsService(n.host, lanService(n.cfg.Network), heard)
		if err := service.Start(); err != nil {
			n.sources.failed(SourceLAN, "multicast does not work here: "+printableReason(err))
			_ = service.Close() // what did start
			n.rest(ctx, jitter(lanRetry))
			continue
		}
		n.sources.told(SourceLAN, 0, "")
		n.greetNeighbours(ctx, heard)
		if err := service.Close(); err != nil {
			n.log.Debug("multicast DNS did not end cleanly", "err", err)
		}
	}
}

// greetNeighbours connects to those who are heard until the service must be started anew or ctx ends.
func (n *Node) greetNeighbours(ctx context.Context, heard neighbours) {
	renewal := time.NewTimer(jitter(lanRenewal))
	defer renewal.Stop()
	look := time.NewTicker(lanLook)
	defer look.Stop()
	begun := n.interfaceAddrs()
	for {
		select {
		case info := <-heard:
			infos := []peer.AddrInfo{info}
			for more := true; more && len(infos) < maxNamed; {
				select {
				case info = <-heard:
					infos = append(infos, info)
				default:
					more = false
				}
			}
			n.meetNeighbours(ctx, infos)
		case <-look.C:
			if n.interfaceAddrs() != begun {
				return
			}
		case <-renewal.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// meetNeighbours connects to neighbours while there are few; of more it keeps the addresses.
func (n *Node) meetNeighbours(ctx context.Context, infos []peer.AddrInfo) {
	room := maxNeighbours - len(n.connectedOf(n.sources.of(SourceLAN)))
	if room <= 0 {
		for _, info := range n.plausible(SourceLAN, infos) {
			if n.sources.wanted(SourceLAN, info.ID, time.Now()) {
				n.note(info)
			}
		}
		return
	}
	n.meet(ctx, SourceLAN, infos, room)
	n.sources.told(SourceLAN, len(n.sources.of(SourceLAN)), "")
}

// interfaceAddrs is what this node would tell the LAN, to notice that it changed.
func (n *Node) interfaceAddrs() string {
	addrs, err := n.host.Network().InterfaceListenAddresses()
	if err != nil {
		return ""
	}
	var texts []string
	for _, addr := range addrs {
		texts = append(texts, addr.String())
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

// neighbours takes what the multicast service hears, each on a goroutine of the service's.
type neighbours chan peer.AddrInfo

// HandlePeerFound implements mdns.Notifee. It never waits.
func (h neighbours) HandlePeerFound(info peer.AddrInfo) {
	select {
	case h <- info:
	default: // somebody floods; those who are real are heard again
	}
}

// lanService names a network's service on the LAN, by a hash: the name of a private network is not called into a café. The name of
// a service has at most 15 characters (RFC 6335, section 5.1).
func lanService(network string) string {
	hash := market.HashOf([]byte("haggle/lan/1/" + network))
	return "_hg-" + hex.EncodeToString(hash[:6]) + "._udp"
}
