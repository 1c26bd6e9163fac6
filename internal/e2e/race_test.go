//go:build linux

package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haggle/internal/view"
	"haggle/market"
)

// stranger makes the home of a second renter in the lab's network.
func (l *lab) stranger() (env []string) {
	l.t.Helper()
	home := shortDir(l.t)
	knobs, err := os.ReadFile(filepath.Join(l.home, "config.toml"))
	if err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "config.toml"), knobs, 0o600); err != nil {
		l.t.Fatal(err)
	}
	env = []string{"HAGGLE_HOME=" + home}
	stopAgent(l.t, env)
	start(l.t, env, "haggle", "offers").wants(0)
	return env
}

func TestTwoBidsForTheLastSlotBecomeOneLeaseAndOneRefusal(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	l.haggle(trainJob("bid", 1000)...).wants(0) // takes one of the two cards
	first := []string{"HAGGLE_HOME=" + l.home}
	second := l.stranger()
	t.Run("of two renters", func(t *testing.T) {
		for range 4 {
			l.race(t, first, second)
		}
	})
	t.Run("of one renter", func(t *testing.T) {
		for range 4 {
			l.race(t, first, first)
		}
	})
}

// race has two renters bid for the last slot at the same moment, and frees it again.
func (l *lab) race(t *testing.T, renters ...[]string) {
	t.Helper()
	l.awaitFree(1, 1)
	var bids []*program
	for _, env := range renters {
		bids = append(bids, start(t, env, "haggle", trainJob("bid", 1000)...))
	}
	var won, lost *program
	for _, b := range bids {
		<-b.ended
		if b.cmd.ProcessState.ExitCode() == 0 {
			won = b
		} else {
			lost = b
		}
	}
	if won == nil || lost == nil {
		t.Fatalf("one bid should win and one should lose:\n%s%s\n%s%s", &bids[0].out, &bids[0].err, &bids[1].out, &bids[1].err)
	}
	lost.wants(int(market.ClassRefused))
	wantRefusal(t, lost, "0 of the 1 slots asked for are free now (hint: someone was faster;")

	lease := strings.TrimSpace(won.out.String())
	l.wantCardsOnce(t, lease)
	winner := start(t, won.env, "haggle", "stop", "--kill", lease)
	winner.wants(0)
}

// wantCardsOnce wants two cards that each have a lease of their own, of which one is the given one.
func (l *lab) wantCardsOnce(t *testing.T, lease string) {
	t.Helper()
	cards, err := l.rig(1).Cards(t.Context())
	if err != nil || len(cards) != 2 {
		t.Fatalf("cards: %v, %v", cards, err)
	}
	a, b := cards[0].Lease, cards[1].Lease
	if a == "" || b == "" || a == b || a != lease && b != lease {
		t.Errorf("the cards are leased to %q and %q, one should be %q", a, b, lease)
	}
	held := 0
	list, err := l.rig(1).Leases(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range list {
		if v.State != string(market.JobEnded) {
			held++
		}
	}
	if held != 2 {
		t.Errorf("%d leases hold the rig's two cards: %s", held, states(list))
	}
}

func states(list []view.Lease) string {
	var b strings.Builder
	for _, v := range list {
		b.WriteString(v.ID[:8] + " " + v.State + " " + v.Reason + "\n")
	}
	return b.String()
}
