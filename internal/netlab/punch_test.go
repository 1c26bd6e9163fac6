//go:build linux

package netlab_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"haggle/internal/netlab"
)

const (
	// public is the reach of the peers that everybody knows: nobody needs to find out.
	public = `{"Assume":"public"}`
	// sooner is that of peers at home, who take the relays that they know.
	sooner = `{"RelayDelay":1000000000}`
)

// pair is a rig and a renter behind routers of their own, and the peers that both know.
type pair struct {
	rig, renter *peer
	core        []*peer
	bootstrap   string
	homes       [2]*netlab.Router
}

// newPair starts one. The rig is announced, and has a place at a relay.
func newPair(t *testing.T, rig, renter netlab.NAT, udp bool) *pair {
	t.Helper()
	n := newNet(t)
	ctx := t.Context()
	p := &pair{}
	p.core, p.bootstrap = core(t, n, 4, netlab.OnlyV4, "-reach", public)
	p.homes[0] = must[*netlab.Router](t)(n.Router(ctx, "home-1", rig, netlab.OnlyV4))
	p.homes[1] = must[*netlab.Router](t)(n.Router(ctx, "home-2", renter, netlab.OnlyV4))
	t.Cleanup(func() {
		for _, home := range p.homes {
			if t.Failed() {
				table, _ := home.Outside().Run(context.WithoutCancel(ctx), "cat", "/proc/net/nf_conntrack") // not every kernel has it
				t.Logf("what a router keeps in mind:\n%s", table)
			}
		}
	})
	for _, home := range p.homes {
		if udp {
			continue
		}
		if err := home.DropUDP(ctx); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"-bootstrap", p.bootstrap, "-reach", sooner}
	p.rig = startPeer(t, must[*netlab.Host](t)(p.homes[0].Host(ctx, "rig")), "rig", args...)
	await(t, "a relay of the rig", func() bool { return len(p.rig.ask(question{Do: netlab.DoReach}).Reach.Relays) > 0 })
	p.rig.ask(question{Do: netlab.DoAnnounce, Texts: []string{"any"}})
	p.renter = startPeer(t, must[*netlab.Host](t)(p.homes[1].Host(ctx, "renter")), "renter", append(args, "-mode", "client")...)
	await(t, "the rig's key", func() bool { return p.renter.finds("any", p.rig) })
	return p
}

// bids wants the rig's offer to be had, and a conversation of a lease's kind.
func (p *pair) bids(t *testing.T) {
	t.Helper()
	if a := p.renter.ask(question{Do: netlab.DoOffers, Peer: p.rig.key()}); len(a.Texts) != 1 || a.Texts[0] != "rig" {
		t.Fatalf("the rig offers %q, %s", a.Texts, a.Error)
	}
	if a := p.renter.ask(question{Do: netlab.DoTalk, Peer: p.rig.key(), Count: 100}); a.Error != "" {
		t.Fatalf("a talk with the rig: %s", a.Error)
	}
}

func TestTwoHomesMeetDirectly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, transport string
		udp             bool
	}{
		{"over QUIC", "/quic-v1", true},
		{"over TCP where there is no UDP", "/tcp/", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t, netlab.PortPreserving, netlab.PortPreserving, c.udp)
			p.bids(t)
			await(t, "a direct way", func() bool { return p.renter.direct(p.rig) })
			if a := p.renter.ask(question{Do: netlab.DoPing, Peer: p.rig.key()}); a.Path != "punched" || !strings.Contains(a.Texts[0], c.transport) {
				t.Errorf("ping says %q of %q, %s", a.Path, a.Texts, a.Error)
			}
			for _, do := range []string{netlab.DoPull, netlab.DoBulk} {
				if a := p.renter.ask(question{Do: do, Peer: p.rig.key(), Count: 64 << 20}); a.Error != "" {
					t.Errorf("%s of 64 MiB: %s", do, a.Error)
				}
			}
		})
	}
}

func TestTwoHomesThatCannotMeetUseARelay(t *testing.T) {
	t.Parallel()
	p := newPair(t, netlab.Symmetric, netlab.Symmetric, true)
	p.bids(t)
	a := p.renter.ask(question{Do: netlab.DoPull, Peer: p.rig.key(), Count: 64 << 20})
	if a.Code != "relay_only" || a.Bytes != 0 {
		t.Errorf("64 MiB over a small relay: %s, %s after %d bytes", a.Code, a.Error, a.Bytes)
	}
	if a := p.renter.ask(question{Do: netlab.DoPing, Peer: p.rig.key()}); a.Path != "relayed" {
		t.Errorf("ping says %q, %s", a.Path, a.Error)
	}
	p.bids(t)
}

func TestABulkRelayCarriesWhatASmallOneRefuses(t *testing.T) {
	t.Parallel()
	n := newNet(t)
	ctx := t.Context()
	cores, bootstrap := core(t, n, 2, netlab.OnlyV4, "-reach", public)
	friend := must[*netlab.Host](t)(n.Public(ctx, "friend", netlab.OnlyV4))
	startPeer(t, friend, "friend", "-bootstrap", bootstrap, "-reach", public, "-bulk-for", keyOf("rig"))
	at := multiaddr(friend.V4, "friend", quic)
	home := func(name string) *netlab.Host {
		r := must[*netlab.Router](t)(n.Router(ctx, "home-of-"+name, netlab.Symmetric, netlab.OnlyV4))
		return must[*netlab.Host](t)(r.Host(ctx, name))
	}
	rig := startPeer(t, home("rig"), "rig", "-bootstrap", bootstrap, "-reach", `{"Relays":["`+at+`"],"RelayDelay":1000000000}`)
	await(t, "a place at the friend's relay", func() bool {
		return slices.Contains(rig.ask(question{Do: netlab.DoReach}).Reach.Relays, keyOf("friend"))
	})
	rig.ask(question{Do: netlab.DoAnnounce, Texts: []string{"any"}})
	renter := startPeer(t, home("renter"), "renter", "-bootstrap", bootstrap, "-mode", "client")
	await(t, "the rig's key", func() bool { return renter.finds("any", rig) })
	await(t, "64 MiB", func() bool {
		a := renter.ask(question{Do: netlab.DoPull, Peer: rig.key(), Count: 64 << 20})
		if a.Error != "" && a.Code != "relay_only" { // a small relay may have been found first
			t.Fatalf("64 MiB over a bulk relay: %s, %s after %d bytes", a.Code, a.Error, a.Bytes)
		}
		return a.Error == ""
	})
	if a := renter.ask(question{Do: netlab.DoPing, Peer: rig.key()}); a.Path != "relayed" {
		t.Errorf("ping says %q, %s", a.Path, a.Error)
	}
	if a := cores[0].ask(question{Do: netlab.DoReach}); a.Reach.Serves != "small" {
		t.Errorf("one of the others serves as a %s relay", a.Reach.Serves)
	}
}
