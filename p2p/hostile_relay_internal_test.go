package p2p

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"

	"haggle/market"
)

func TestOneAddressHoldsNoMoreConnectionsOfARelayThanItHasPlaces(t *testing.T) {
	node := labNode(t, 1)
	attached := make(chan struct{})
	close(attached)
	for _, c := range []struct {
		name string
		only func(market.Key) bool
		want int
	}{
		{"small", nil, 2 * relaySlotsPerIP},
		{"bulk", func(market.Key) bool { return true }, 100},
	} {
		held := &holders{attached: attached, host: func() host.Host { return node.host }, ids: map[peer.ID]netip.Addr{}}
		acl := relayACL{only: c.only, held: held}
		for i := range 100 {
			from := multiaddr.StringCast(fmt.Sprintf("/ip4/198.51.100.%d/tcp/4701", 1+i%2))
			if !acl.AllowReserve(numbered(t, i).ID, from) {
				t.Error("refused")
			}
		}
		if len(held.ids) != c.want {
			t.Errorf("%s: %d connections from two addresses are held, want %d", c.name, len(held.ids), c.want)
		}
		for id := range held.ids {
			held.leave(id)
		}
	}
}
