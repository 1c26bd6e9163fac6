package p2p

import (
	"testing"
	"time"

	"haggle/market"
)

func TestAFaultIsToldOncePerKindAndPeer(t *testing.T) {
	c, now := newComplaints(), time.Unix(1_800_000_000, 0)
	one := complaint{market.Key{1}, LeaseProtocol, market.CodeBadEncoding}
	for i, want := range []bool{true, false, false} {
		if got := c.news(one, now); got != want {
			t.Errorf("time %d of the same: told is %v", i, got)
		}
	}
	other := one
	for _, change := range []func(){
		func() { other.code = market.CodeTooLarge }, func() { other.peer = market.Key{2} }, func() { other.protocol = OffersProtocol },
	} {
		if change(); !c.news(other, now) || c.news(other, now) {
			t.Errorf("%+v is not told once", other)
		}
	}
	if !c.news(one, now.Add(complainAgain)) {
		t.Error("after a long time it is not told again")
	}
}

func TestAPeerWithManyKeysFillsNeitherLogNorMemory(t *testing.T) {
	c, now := newComplaints(), time.Unix(1_800_000_000, 0)
	lines := 0
	for i := range 100_000 {
		if c.news(complaint{market.Key{byte(i), byte(i >> 8), byte(i >> 16)}, LeaseProtocol, market.CodeTooMany}, now) {
			lines++
		}
	}
	if lines != complainAtOnce {
		t.Errorf("%d lines at once", lines)
	}
	for i := range 3 * maxComplaints {
		now = now.Add(complainEvery)
		c.news(complaint{market.Key{byte(i), byte(i >> 8), 0xff}, LeaseProtocol, market.CodeTooMany}, now)
	}
	if len(c.known) > maxComplaints || c.recent.Len() != len(c.known) {
		t.Errorf("%d and %d are remembered", len(c.known), c.recent.Len())
	}
}
