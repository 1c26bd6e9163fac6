//go:build linux

package netlab_test

import (
	"testing"

	"haggle/internal/netlab"
)

func TestWhereThereIsNoIPv4APeerIsFoundAndCalled(t *testing.T) {
	t.Parallel()
	n := newNet(t)
	_, bootstrap := core(t, n, 2, netlab.OnlyV6)
	rig := startPeer(t, must[*netlab.Host](t)(n.Public(t.Context(), "rig", netlab.OnlyV6)), "rig", "-bootstrap", bootstrap)
	home := must[*netlab.Router](t)(n.Router(t.Context(), "home", netlab.PortPreserving, netlab.OnlyV6))
	renter := startPeer(t, must[*netlab.Host](t)(home.Host(t.Context(), "renter")), "renter", "-bootstrap", bootstrap, "-mode", "client")
	rig.ask(question{Do: netlab.DoAnnounce, Texts: []string{"any"}})
	await(t, "the rig's key", func() bool { return renter.finds("any", rig) })
	a := renter.ask(question{Do: netlab.DoOffers, Peer: rig.key()})
	if len(a.Texts) != 1 || a.Texts[0] != "rig" {
		t.Errorf("the rig offers %q, %s", a.Texts, a.Error)
	}
	if a := renter.ask(question{Do: netlab.DoPull, Peer: rig.key(), Count: 16 << 20}); a.Error != "" {
		t.Errorf("16 MiB: %s", a.Error)
	}
	if !renter.direct(rig) {
		t.Errorf("the renter's connections: %+v", renter.ask(question{Do: netlab.DoStatus}).Status.Peers)
	}
}
