//go:build linux

package netlab_test

import (
	"strings"
	"testing"

	"haggle/internal/netlab"
)

// town is a rig and a renter behind routers of their own, and the peers that both know.
type town struct {
	net    *netlab.Net
	rig    *rig
	renter *renter
	homes  [2]*netlab.Router
}

// newTown starts one, and returns when the renter sees the rig's offer.
func newTown(t *testing.T, ofRig, ofRenter netlab.NAT) *town {
	t.Helper()
	m := &town{net: newNet(t)}
	ctx := t.Context()
	_, bootstrap := core(t, m.net, 4, netlab.OnlyV4, "-network", network, "-reach", public)
	m.homes[0] = must[*netlab.Router](t)(m.net.Router(ctx, "home-1", ofRig, netlab.OnlyV4))
	m.homes[1] = must[*netlab.Router](t)(m.net.Router(ctx, "home-2", ofRenter, netlab.OnlyV4))
	m.rig = startRig(t, must[*netlab.Host](t)(m.homes[0].Host(ctx, "rig")), "attic", settings(bootstrap)...)
	m.renter = newRenter(t, must[*netlab.Host](t)(m.homes[1].Host(ctx, "ann")), config(bootstrap))
	m.renter.awaitOffer("attic")
	return m
}

func TestARigAtHomeIsRentedPaidAndEnteredFromAnotherHome(t *testing.T) {
	t.Parallel()
	m := newTown(t, netlab.PortPreserving, netlab.PortPreserving)
	id := m.renter.rent(m.rig)
	await(t, "a direct way", func() bool { return m.renter.path(m.rig) == "direct" })
	m.renter.enter().clients()
	m.renter.settles(id)
}

func TestARigThatOnlyARelayReachesIsRentedAndPaid(t *testing.T) {
	t.Parallel()
	m := newTown(t, netlab.Symmetric, netlab.Symmetric)
	id := m.renter.rent(m.rig)
	if got := m.renter.path(m.rig); got != "relayed" {
		t.Errorf("the way to the rig is %q", got)
	}
	w := m.renter.start(m.renter.command("haggle", "exec", "box", "--", "/bin/cat"))
	w.wants(125) // of haggle's own, not the command's
	for _, want := range []string{"through a small relay only", "hint: "} {
		if said := w.err.String(); !strings.Contains(said, want) {
			t.Errorf("of a shell over a small relay haggle says %q, not %q", said, want)
		}
	}
	m.renter.settles(id)
}

func TestWhereThereIsNoIPv4ARigIsRented(t *testing.T) {
	t.Parallel()
	n := newNet(t)
	ctx := t.Context()
	_, bootstrap := core(t, n, 2, netlab.OnlyV6, "-network", network, "-reach", public)
	sells := startRig(t, must[*netlab.Host](t)(n.Public(ctx, "rig", netlab.OnlyV6)), "attic", settings(bootstrap)...)
	home := must[*netlab.Router](t)(n.Router(ctx, "home", netlab.PortPreserving, netlab.OnlyV6))
	ann := newRenter(t, must[*netlab.Host](t)(home.Host(ctx, "ann")), config(bootstrap))
	ann.awaitOffer("attic")
	id := ann.rent(sells)
	b := ann.enter()
	b.exitCodes()
	if got := ann.path(sells); got != "direct" {
		t.Errorf("the agent's way to the rig is %q", got)
	}
	ann.settles(id)
}
