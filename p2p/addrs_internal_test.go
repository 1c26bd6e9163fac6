package p2p

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/multiformats/go-multiaddr"

	"haggle/market"
)

func multiaddrs(texts ...string) []multiaddr.Multiaddr {
	var out []multiaddr.Multiaddr
	for _, text := range texts {
		out = append(out, multiaddr.StringCast(text))
	}
	return out
}

func sorted(texts []string) []string { return slices.Sorted(slices.Values(texts)) }

// atHomeAddrs are of every kind that a machine at home finds out.
var atHomeAddrs = []string{
	"/ip4/127.0.0.1/tcp/4701", "/ip4/192.168.1.7/tcp/4701", "/ip4/10.1.2.3/udp/4701/quic-v1", "/ip4/172.17.0.1/tcp/4701",
	"/ip4/100.64.3.4/tcp/4701", "/ip4/169.254.1.1/tcp/4701", "/ip6/::1/tcp/4701", "/ip6/fd00::7/tcp/4701", "/ip6/fe80::7/tcp/4701",
	"/ip4/5.6.7.8/udp/4701/quic-v1", "/ip6/2a00:1450::7/tcp/4701",
	"/ip4/8.8.8.8/tcp/4701/p2p/12D3KooWA1FbgpLbL3RUWLZAJyjQuwVA1A2yNPqBBqGqSeGzGDCp/p2p-circuit",
}

func TestPrivateAddressesAreNotToldOnThePublicNetwork(t *testing.T) {
	public := []string{atHomeAddrs[9], atHomeAddrs[10], atHomeAddrs[11]}
	for _, test := range []struct {
		name, network, private string
		want                   []string
	}{
		{"main", market.NetworkMain, "", public},
		{"main, told", market.NetworkMain, PrivateTold, atHomeAddrs},
		{"a network of friends", "friends", "", atHomeAddrs},
		{"a network of friends, kept", "friends", PrivateKept, public},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := newReacher(Config{Network: test.network, Reach: Reach{Private: test.private}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(sorted(test.want), sorted(addrTexts(r.addrs(multiaddrs(atHomeAddrs...))))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnAddressOfTheOwnersIsToldBesideThoseFound(t *testing.T) {
	r, err := newReacher(Config{Network: market.NetworkMain, Reach: Reach{Announce: []string{"/ip4/5.6.7.8/tcp/9000"}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := addrTexts(r.addrs(multiaddrs("/ip4/192.168.1.7/tcp/4701"))); !slices.Equal(got, []string{"/ip4/5.6.7.8/tcp/9000"}) {
		t.Errorf("told: %v", got)
	}
	if err := (Reach{Announce: []string{"not an address"}}).check(); err == nil {
		t.Error("an announced address that is none was taken")
	}
}

func TestTheMachinesAddressesAreThoseOfNow(t *testing.T) {
	found := multiaddrs("/ip4/192.168.1.7/tcp/4701", "/ip4/5.6.7.8/tcp/61000", "/ip4/8.8.8.8/tcp/1/p2p/12D3KooWA1FbgpLbL3RUWLZAJyjQuwVA1A2yNPqBBqGqSeGzGDCp/p2p-circuit")
	got := current(found, multiaddrs("/ip4/0.0.0.0/tcp/4701"), multiaddrs("/ip4/192.168.1.99", "/ip4/127.0.0.1"))
	want := []string{
		"/ip4/5.6.7.8/tcp/61000", "/ip4/8.8.8.8/tcp/1/p2p/12D3KooWA1FbgpLbL3RUWLZAJyjQuwVA1A2yNPqBBqGqSeGzGDCp/p2p-circuit",
		"/ip4/192.168.1.99/tcp/4701", "/ip4/127.0.0.1/tcp/4701",
	}
	if diff := cmp.Diff(sorted(want), sorted(addrTexts(got))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
