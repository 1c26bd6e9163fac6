package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"haggle/internal/index"
	"haggle/market"
)

func TestRigsAreRememberedWithWhenTheyWereFirstSeen(t *testing.T) {
	p := path(t)
	a := openAgent(t, p)
	old := index.Remembered{
		Rig: market.Key{1}, Addrs: []string{"/ip4/192.0.2.1/tcp/4701"}, FirstSeen: 100, Heard: 200, Used: 300, Marked: 400, Failures: 1,
		Offers: [][]byte{[]byte("one"), []byte("two")},
	}
	other := index.Remembered{Rig: market.Key{2}, FirstSeen: 500, Used: 500}
	first, err := a.RememberRigs(t.Context(), []index.Remembered{old, other})
	if diff := cmp.Diff([]int64{100, 500}, first); err != nil || diff != "" {
		t.Errorf("first seen: %v %s", err, diff)
	}
	// A later life that has forgotten says that it sees the rig for the first time, and does not know where it is.
	first, err = a.RememberRigs(t.Context(), []index.Remembered{{Rig: market.Key{1}, FirstSeen: 600, Heard: 650, Used: 700}})
	if err != nil || first[0] != 100 {
		t.Errorf("first seen: %v, %v", first, err)
	}
	must(t, a.Close())
	a = openAgent(t, p)
	got, err := a.RememberedRigs(t.Context(), 10)
	old.Heard, old.Used, old.Failures, old.Offers = 650, 700, 0, nil
	if diff := cmp.Diff([]index.Remembered{old, other}, got); err != nil || diff != "" {
		t.Errorf("remembered: %v (-want +got):\n%s", err, diff)
	}
	if got, err := a.RememberedRigs(t.Context(), 1); err != nil || len(got) != 1 || got[0].Rig != old.Rig {
		t.Errorf("the newest: %v, %v", got, err)
	}
}

func TestARigRemembersOthersToo(t *testing.T) {
	s := openRig(t, path(t))
	_, err := s.RememberRigs(t.Context(), []index.Remembered{{Rig: market.Key{3}, FirstSeen: 1, Used: 2}})
	must(t, err)
	if got, err := s.RememberedRigs(t.Context(), 5); err != nil || len(got) != 1 {
		t.Errorf("remembered: %v, %v", got, err)
	}
}
