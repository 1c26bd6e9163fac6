//go:build linux

package netlab_test

import (
	"fmt"
	"testing"

	"haggle/internal/netlab"
)

func TestFiveMachinesOnALANFindEachOtherWithNoConfiguration(t *testing.T) {
	t.Parallel()
	n := newNet(t)
	lan := must[*netlab.Router](t)(n.LAN(t.Context(), "lan", netlab.Both))
	var rigs []*peer
	for i := range 5 {
		name := fmt.Sprintf("rig-%d", i+1)
		h := must[*netlab.Host](t)(lan.Host(t.Context(), name))
		rigs = append(rigs, startPeer(t, h, name, "-sources", `{"LAN":true}`))
	}
	for _, p := range rigs {
		p.ask(question{Do: netlab.DoAnnounce, Texts: []string{"any"}})
	}
	for i, p := range rigs {
		var others []*peer
		for j, o := range rigs {
			if i != j {
				others = append(others, o)
			}
		}
		await(t, "the other four", func() bool { return p.finds("any", others...) })
		if a := p.ask(question{Do: netlab.DoPull, Peer: others[0].key(), Count: 8 << 20}); a.Error != "" {
			t.Errorf("8 MiB from a neighbour: %s", a.Error)
		}
	}
}

func TestTheRigOfTheSameLANIsRentedWithNoConfiguration(t *testing.T) {
	t.Parallel()
	n := newNet(t)
	ctx := t.Context()
	lan := must[*netlab.Router](t)(n.LAN(ctx, "lan", netlab.Both))
	sells := startRig(t, must[*netlab.Host](t)(lan.Host(ctx, "rig")), "attic")
	ann := newRenter(t, must[*netlab.Host](t)(lan.Host(ctx, "ann")))
	ann.awaitOffer("attic")
	id := ann.rent(sells)
	ann.enter().exitCodes()
	ann.settles(id)
}
