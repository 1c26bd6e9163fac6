package p2p

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"haggle/market"
)

func TestFaultsAddUpAndFade(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for _, c := range []struct {
		name    string
		code    market.Code
		each    time.Duration
		faults  int
		blocked bool
	}{
		{"ten frames of garbage", market.CodeBadEncoding, time.Second, 11, true},
		{"nine frames of garbage", market.CodeBadEncoding, time.Second, 9, false},
		{"false signatures", market.CodeBadSignature, time.Second, 6, true},
		{"garbage every ten minutes for a day", market.CodeBadEncoding, scoreHalf, 144, false},
		{"a line that breaks every minute for a day", market.CodeTooSlow, time.Minute, 1440, false},
		{"messages of a newer program, twenty at once", market.CodeUnexpected, 0, 19, false},
		{"what belongs to the trade", market.CodeCardBusy, 0, 10_000, false},
		{"our own faults", market.CodeInternal, 0, 10_000, false},
	} {
		a := newAccess(Access{}, false)
		for i := range c.faults {
			a.blame(testKey(1), demerits(c.code), now.Add(time.Duration(i)*c.each))
		}
		if got := !a.admits(testKey(1), now.Add(time.Duration(c.faults)*c.each)); got != c.blocked {
			t.Errorf("%s: blocked is %t", c.name, got)
		}
	}
}

func TestEachBlockIsTwiceAsLongUpToADayAndIsForgiven(t *testing.T) {
	a := newAccess(Access{}, false)
	now := time.Unix(1_000_000, 0)
	offend := func() time.Duration {
		a.blame(testKey(1), 2*defaultBlockAbove, now)
		d := a.blocked[testKey(1)].until.Sub(now)
		now = now.Add(d)
		return d
	}
	var got []time.Duration
	for range 10 {
		got = append(got, offend())
	}
	now = now.Add(forgiven)
	got = append(got, offend())
	m := time.Minute
	want := []time.Duration{10 * m, 20 * m, 40 * m, 80 * m, 160 * m, 320 * m, 640 * m, 1280 * m, 1440 * m, 1440 * m, 10 * m}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhoIsKnownOrAllowedIsNeverBlockedForWhatItDoes(t *testing.T) {
	a := newAccess(Access{
		Allow: []market.Key{testKey(1)},
		Known: func(k market.Key) bool { return k == testKey(2) },
	}, false)
	now := time.Unix(1_000_000, 0)
	for _, k := range []market.Key{testKey(1), testKey(2)} {
		a.blame(k, 1e6, now)
		if !a.admits(k, now) {
			t.Errorf("%s is blocked", k)
		}
	}
	lab := newAccess(Access{}, true)
	lab.blame(testKey(3), 1e6, now)
	if !lab.admits(testKey(3), now) {
		t.Error("a lab blocks by itself")
	}
}

func TestWhatIsRememberedOfHostileKeysIsBounded(t *testing.T) {
	a := newAccess(Access{}, false)
	now := time.Unix(1_000_000, 0)
	a.set(testKey(1<<23), 0, "mine", now)
	for i := range maxBlocked + 500 {
		a.blame(testKey(i), 1, now)
		a.blame(testKey(i), 2*defaultBlockAbove, now)
	}
	for i := range 3 * maxScores {
		a.blame(testKey(1<<20+i), 1, now)
	}
	if len(a.blocked) > maxBlocked || len(a.scores) > maxScores || len(a.scores) != a.recent.Len() {
		t.Errorf("it remembers %d blocks and %d scores", len(a.blocked), len(a.scores))
	}
	if a.admits(testKey(1<<23), now) {
		t.Error("a block of the user was forgotten")
	}
}

func TestListsSayWhoMayNotCall(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	net := netip.MustParsePrefix("203.0.113.0/24")
	a := newAccess(Access{
		Block: []market.Key{testKey(1)}, BlockOwners: []market.Key{testKey(2)}, BlockNets: []netip.Prefix{net},
		OwnerOf: func(k market.Key) market.Key {
			if k == testKey(3) {
				return testKey(2)
			}
			return market.Key{}
		},
	}, false)
	a.set(testKey(4), time.Hour, "rude", now)
	a.blame(testKey(5), 1000, now)
	for i, want := range map[int]bool{1: false, 2: false, 3: false, 4: false, 5: false, 6: true} {
		if got := a.admits(testKey(i), now); got != want {
			t.Errorf("key %d: admitted is %t", i, got)
		}
	}
	want := []BlockEntry{
		{Net: net, By: BlockedByConfig},
		{Key: testKey(1), By: BlockedByConfig},
		{Key: testKey(2), Owner: true, By: BlockedByConfig},
		{Key: testKey(4), Why: "rude", By: BlockedByUser, Until: now.Add(time.Hour)},
		{Key: testKey(5), Why: "it broke the rules of the protocol again and again", By: BlockedByScore, Until: now.Add(firstBlock)},
	}
	if diff := cmp.Diff(want, a.list(now), cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Error(diff)
	}
	if !a.unset(testKey(5), now) || !a.admits(testKey(5), now) || a.unset(testKey(5), now) {
		t.Error("a block cannot be lifted once")
	}
	if !a.admits(testKey(4), now.Add(time.Hour)) || len(a.list(now.Add(time.Hour))) != 3 {
		t.Error("a block does not end")
	}
}
