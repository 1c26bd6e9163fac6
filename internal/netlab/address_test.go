//go:build linux

package netlab_test

import (
	"fmt"
	"testing"

	"haggle/internal/netlab"
)

func TestARigWithAnotherAddressIsFoundAgain(t *testing.T) {
	t.Parallel()
	n := newNet(t)
	ctx := t.Context()
	_, bootstrap := core(t, n, 4, netlab.OnlyV4, "-reach", public)
	h := must[*netlab.Host](t)(n.Public(ctx, "rig", netlab.OnlyV4))
	rig := startPeer(t, h, "rig", "-bootstrap", bootstrap, "-reach", public)
	home := must[*netlab.Router](t)(n.Router(ctx, "home", netlab.PortPreserving, netlab.OnlyV4))
	renter := startPeer(t, must[*netlab.Host](t)(home.Host(ctx, "renter")), "renter", "-bootstrap", bootstrap, "-mode", "client")
	rig.ask(question{Do: netlab.DoAnnounce, Texts: []string{"any"}})
	await(t, "the rig's key", func() bool { return renter.finds("any", rig) })
	had := func() bool { return renter.ask(question{Do: netlab.DoTalk, Peer: rig.key(), Count: 3}).Error == "" }
	await(t, "a talk with the rig", had)
	old := h.V4
	if err := h.Readdress(ctx); err != nil {
		t.Fatal(err)
	}
	if h.V4 == old {
		t.Fatal("the address is the same")
	}
	await(t, "a talk with the rig at its new address", had)
}

// TestAShellOutlivesAnotherAddress has the internet provider of a rig's home give it another address while somebody is inside.
func TestAShellOutlivesAnotherAddress(t *testing.T) {
	t.Parallel()
	m := newTown(t, netlab.PortPreserving, netlab.PortPreserving)
	id := m.renter.rent(m.rig)
	b := m.renter.enter()
	const numbers = 100
	count := b.start(b.ssh("ssh", "box", fmt.Sprintf("for i in $(seq %d); do echo $i; sleep 0.1; done; exit 4", numbers)))
	count.awaitOut("\n5\n")
	if err := m.homes[0].Outside().Readdress(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := ""
	for i := range numbers {
		want += fmt.Sprintln(i + 1)
	}
	if got := count.wants(4); got != want {
		t.Errorf("the count is\n%s", got)
	}
	m.renter.settles(id)
}

// TestTwoHomesMeetAgainAtAnotherAddress is the same with bare nodes: connections to peers outside move over to the new address, so nobody
// tells the rig by himself that it has one.
func TestTwoHomesMeetAgainAtAnotherAddress(t *testing.T) {
	t.Parallel()
	p := newPair(t, netlab.PortPreserving, netlab.PortPreserving, true)
	p.bids(t)
	pull := func() bool {
		return p.renter.ask(question{Do: netlab.DoPull, Peer: p.rig.key(), Count: 1 << 20}).Error == ""
	}
	await(t, "a direct way", func() bool { return p.renter.direct(p.rig) && pull() })
	if err := p.homes[0].Outside().Readdress(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, "a direct way to the new address", pull)
}
