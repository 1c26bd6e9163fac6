package p2p

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

func TestWhoeverNamesPeersWithoutEndIsRememberedWithinBounds(t *testing.T) {
	s := newSources(Config{Network: "open", Sources: Sources{LAN: true}})
	now := time.Now()
	for i := range 10 * maxMet {
		if !s.wanted(SourceLAN, peer.ID(fmt.Sprintf("peer %d", i)), now) {
			t.Fatalf("peer %d is not wanted", i)
		}
	}
	if len(s.met) > maxMet {
		t.Errorf("%d peers are remembered", len(s.met))
	}
}

func TestAStrangerIsNotCalledAgainForAnHour(t *testing.T) {
	s := newSources(Config{Network: "open", Sources: Sources{LAN: true}})
	id, now := peer.ID("somebody"), time.Now()
	s.wanted(SourceDNS, id, now)
	s.stranger(id, now.Add(strangerFor))
	if s.wanted(SourceDNS, id, now.Add(strangerFor-1)) || !s.wanted(SourceDNS, id, now.Add(strangerFor+1)) {
		t.Error("the stranger is called too early, or never")
	}
	if got := s.of(""); len(got) != 0 {
		t.Errorf("a stranger counts as found: %v", got)
	}
}

func TestAFloodOnTheLANWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(*testing.T) { // a call that waits would be a deadlock here
		heard := make(neighbours, lanQueue)
		for range 10 * lanQueue {
			heard.HandlePeerFound(peer.AddrInfo{ID: "flood"})
		}
	})
}

func TestAServiceOnTheLANIsNamedAsItsStandardAllowsAndTellsNoName(t *testing.T) {
	for _, network := range []string{"main", "club-abcdefgh", strings.Repeat("x", 63)} {
		name := lanService(network)
		label, proto, _ := strings.Cut(name, ".")
		if len(label) > 16 || !strings.HasPrefix(label, "_") || proto != "_udp" || strings.Contains(name, network) {
			t.Errorf("%s is called %s", network, name)
		}
	}
	if lanService("main") == lanService("club-abcdefgh") {
		t.Error("two networks share a service")
	}
}

func TestWhereManyAreAnnouncedFewAnnounceThemselvesButNeverNone(t *testing.T) {
	const rounds = 4000
	for _, c := range []struct{ others, least, most int }{
		{0, rounds, rounds}, {31, rounds, rounds}, {64, rounds * 4 / 10, rounds * 6 / 10}, {100_000, rounds / 12, rounds / 6},
	} {
		yes := 0
		for range rounds {
			if worthAnnouncing(c.others) {
				yes++
			}
		}
		if yes < c.least || yes > c.most {
			t.Errorf("beside %d others %d of %d announce themselves", c.others, yes, rounds)
		}
	}
}
