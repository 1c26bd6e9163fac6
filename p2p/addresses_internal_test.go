package p2p

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/multiformats/go-multiaddr"

	"haggle/market"
)

func TestWhatOthersSayOfAddressesIsBelievedWithinBounds(t *testing.T) {
	relayed := "/ip4/198.51.100.1/tcp/4701/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN/p2p-circuit"
	told := []string{
		"/ip4/8.8.4.4/udp/4701/quic-v1", "/ip4/192.168.1.1/tcp/80", "/ip4/10.0.0.1/tcp/22", "/ip4/127.0.0.1/tcp/6379",
		"/ip4/100.64.0.1/tcp/4701", "/ip4/169.254.169.254/tcp/80", "/ip6/fd00::1/tcp/4701", "/ip6/fe80::1/tcp/4701", "/ip4/0.0.0.0/tcp/4701",
		"/ip4/224.0.0.1/udp/1/quic-v1", "/ip6/2606:4700::1/tcp/4701", "/dns4/rig.example.org/tcp/4701",
	}
	public := []string{"/ip4/8.8.4.4/udp/4701/quic-v1", "/ip6/2606:4700::1/tcp/4701", "/dns4/rig.example.org/tcp/4701"}
	for _, c := range []struct {
		name    string
		network string
		home    bool
		want    []string
	}{
		{"on the public network", market.NetworkMain, false, public},
		{"on a LAN of the public network", market.NetworkMain, true, told},
		{"on a network of one's own", "ours", false, told},
	} {
		var got []string
		for _, a := range believable(c.network, c.home, addrsOf(t, told)) {
			got = append(got, a.String())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf("/ip4/8.8.4.4/tcp/%d", 1000+i))
	}
	if got := believable(market.NetworkMain, false, addrsOf(t, many)); len(got) != maxAddrs {
		t.Errorf("%d addresses are kept", len(got))
	}
	if ip := ipOf(addrsOf(t, []string{relayed})[0]); ip != netip.MustParseAddr("198.51.100.1") {
		t.Errorf("a relayed peer calls from %s, want its relay", ip)
	}
}

func addrsOf(t *testing.T, texts []string) []multiaddr.Multiaddr {
	t.Helper()
	var out []multiaddr.Multiaddr
	for _, text := range texts {
		a, err := multiaddr.NewMultiaddr(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, a)
	}
	return out
}

func TestAnAddressCountsForItsNetworks(t *testing.T) {
	for text, want := range map[string][]string{
		"203.0.113.7":        {"203.0.113.7/32", "203.0.113.0/24"},
		"::ffff:203.0.113.7": {"203.0.113.7/32", "203.0.113.0/24"},
		"2001:db8:1:2:3::4":  {"2001:db8:1:2::/64", "2001:db8:1::/56", "2001:db8:1::/48"},
		"192.168.1.7":        nil,
		"127.0.0.1":          nil,
		"::1":                nil,
		"fe80::1%eth0":       nil,
		"fd00::1":            nil,
	} {
		var got []string
		for _, p := range netsOf(netip.MustParseAddr(text)) {
			got = append(got, p.String())
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	if netsOf(netip.Addr{}) != nil {
		t.Error("no address has networks")
	}
	for _, net := range unlimitedNets() {
		addr := net.Addr()
		if !net.IsSingleIP() {
			addr = addr.Next()
		}
		if len(netsOf(addr)) > 0 {
			t.Errorf("%s is not exempt from shares", net)
		}
	}
	if !slices.IsSortedFunc(widths6[:], func(a, b int) int { return b - a }) {
		t.Error("the widest network is not the last")
	}
}
