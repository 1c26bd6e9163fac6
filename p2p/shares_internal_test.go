package p2p

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"haggle/market"
)

func nobodyKnown(market.Key) bool { return false }

func testKey(i int) market.Key { return market.Key{byte(i), byte(i >> 8), byte(i >> 16), 1} }

// from is a stranger at an address.
func from(i int, addr string) caller {
	k := testKey(i)
	return caller{peer: k, owner: k, nets: netsOf(netip.MustParseAddr(addr))}
}

func TestAThousandKeysOfOneNetworkDoNotStarveAnHonestOne(t *testing.T) {
	for _, c := range []struct {
		name   string
		addr   func(i int) string
		honest string
	}{
		{"one address", func(int) string { return "203.0.113.7" }, "198.51.100.1"},
		{"a /24", func(i int) string { return fmt.Sprintf("203.0.113.%d", i%256) }, "203.0.112.1"},
		{"a /48 of IPv6", func(i int) string { return fmt.Sprintf("2001:db8:7:%x::1", i) }, "2001:db8:8::1"},
		{"ten /24s", func(i int) string { return fmt.Sprintf("203.0.%d.7", i%10) }, "203.0.113.1"},
		{"no network, as on a LAN", func(int) string { return "192.168.1.7" }, "203.0.113.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			limit := defaultLimits()[LeaseProtocol]
			limit.Rate = 0
			g := newGate(limit, nobodyKnown)
			now := time.Unix(1_000_000, 0)
			for i := range 1000 {
				for range 4 {
					g.enter(from(i, c.addr(i)), now, func() {})
				}
			}
			for i := range 8 {
				if x, no := g.enter(from(1_000_000+i, c.honest), now, func() {}); x == nil {
					t.Fatalf("stream %d of the honest was refused: %+v", i, no)
				}
			}
		})
	}
}

func TestAHolderOfALeaseIsServedWhateverStrangersHold(t *testing.T) {
	limit := Limit{Streams: 16, PerPeer: 4}
	g := newGate(limit, nobodyKnown)
	now := time.Unix(1_000_000, 0)
	evicted := 0
	for i := range 200 {
		g.enter(from(i, fmt.Sprintf("203.%d.113.7", i)), now, func() { evicted++ })
	}
	if g.shares.open != 14 {
		t.Errorf("strangers hold %d streams, want all but the 2 that are reserved", g.shares.open)
	}
	for i := range 16 {
		c := from(1000+i, "198.51.100.1")
		c.known = true
		if x, _ := g.enter(c, now, func() {}); x == nil {
			t.Errorf("holder %d was refused", i)
		}
	}
	if evicted != 14 {
		t.Errorf("%d strangers lost their streams, want 14", evicted)
	}
	c := from(2000, "198.51.100.1")
	c.known = true
	if x, _ := g.enter(c, now, func() {}); x != nil {
		t.Error("a stream beyond all was let in")
	}
}

func TestWhoComesToALeaseOnItsStreamIsAStrangerNoMore(t *testing.T) {
	known := map[market.Key]bool{}
	g := newGate(Limit{Streams: 8, PerPeer: 8}, func(k market.Key) bool { return known[k] })
	now := time.Unix(1_000_000, 0)
	lost := false
	tenant := from(1, "203.0.113.1")
	seat, _ := g.enter(tenant, now, func() { lost = true })
	known[tenant.peer] = true
	for i := range 100 {
		g.enter(from(10+i, fmt.Sprintf("203.%d.113.7", i)), now, func() {})
	}
	if lost || seat.gone {
		t.Error("it lost its stream")
	}
	g.leave(seat)
	g.leave(seat)
	if g.shares.peers[tenant.peer] != 0 {
		t.Error("its stream still counts")
	}
}

func TestAFarmBehindOneAddressIsServed(t *testing.T) {
	farm := testKey(9999)
	for proto, limit := range defaultLimits() {
		g := newGate(limit, nobodyKnown)
		now := time.Unix(1_000_000, 0)
		var seats []*seat
		for i := range 12 { // all at once
			c := from(i, "203.0.113.7")
			c.owner = farm
			x, no := g.enter(c, now, func() {})
			if x == nil && proto != MembersProtocol { // asked once in a program's life
				t.Fatalf("%s: rig %d of 12 was refused: %+v", proto, i, no)
			}
			if x != nil {
				seats = append(seats, x)
			}
		}
		for _, x := range seats {
			g.leave(x)
		}
		for i := range 600 { // a hundred rigs, six streams each, within ten seconds
			c := from(i%100, "203.0.113.7")
			c.owner = farm
			x, no := g.enter(c, now.Add(time.Duration(i)*17*time.Millisecond), func() {})
			if x == nil && limit.Rate >= 2 {
				t.Fatalf("%s: stream %d was refused: %+v", proto, i, no)
			}
			if x != nil {
				g.leave(x)
			}
		}
	}
}

func TestARefusalSaysWhenToTryAgain(t *testing.T) {
	g := newGate(Limit{Streams: 10, PerPeer: 10, Rate: 0.5, Burst: 1}, nobodyKnown)
	now := time.Unix(1_000_000, 0)
	c := from(1, "203.0.113.7")
	x, _ := g.enter(c, now, func() {})
	g.leave(x)
	_, no := g.enter(c, now.Add(500*time.Millisecond), func() {})
	if no.after != 1500*time.Millisecond || !no.own {
		t.Errorf("got %+v, want 1.5 s by its own fault", no)
	}
	if x, no := g.enter(c, now.Add(500*time.Millisecond+no.after), func() {}); x == nil {
		t.Errorf("refused when it came as told: %+v", no)
	}
	if err := tooMany(1234 * time.Millisecond); market.Public(err).Arg("after") != "1.2s" {
		t.Errorf("it is told %q", market.Public(err).Arg("after"))
	}
}

func TestSharesKeepTheirCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := Limit{Streams: rapid.IntRange(1, 40).Draw(t, "streams"), PerPeer: rapid.IntRange(1, 6).Draw(t, "per peer")}
		s := newShares(limit)
		usable := limit.Streams - limit.Streams/reserved
		open := map[*seat]bool{}
		for range rapid.IntRange(0, 200).Draw(t, "events") {
			if len(open) > 0 && rapid.IntRange(0, 3).Draw(t, "leave") == 0 {
				for x := range open {
					s.leave(x)
					delete(open, x)
					break
				}
				continue
			}
			c := from(rapid.IntRange(0, 20).Draw(t, "key"), fmt.Sprintf("203.0.%d.%d", rapid.IntRange(0, 5).Draw(t, "net"), rapid.IntRange(0, 2).Draw(t, "host")))
			c.known = rapid.IntRange(0, 4).Draw(t, "known") == 0
			nothing, full := s.groups[c.group()] == 0, strangers(s) >= usable
			most := 0
			for _, n := range s.groups {
				most = max(most, n)
			}
			x := s.take(c, func() {})
			if x != nil {
				open[x] = true
			}
			if x == nil && !c.known && nothing && s.peers[c.peer] < limit.PerPeer && (s.open < usable || full && most > 1) {
				t.Fatalf("a group without a stream was refused, of %d open streams", s.open)
			}
			for x := range open {
				if x.gone {
					delete(open, x)
				}
			}
			check(t, s, limit, usable, len(open))
		}
		for x := range open {
			s.leave(x)
		}
		if s.open != 0 || len(s.peers)+len(s.owners)+len(s.nets)+len(s.groups)+len(s.seats) != 0 {
			t.Fatalf("an empty house has %+v", s)
		}
	})
}

func strangers(s *shares) int { return len(s.seats) }

func check(t *rapid.T, s *shares, limit Limit, usable, open int) {
	t.Helper()
	sum := 0
	for _, n := range s.groups {
		sum += n
	}
	if s.open != open || sum != len(s.seats) || s.open > limit.Streams || len(s.seats) > usable {
		t.Fatalf("%d are open, counted %d; strangers %d and %d", open, s.open, sum, len(s.seats))
	}
	for k, n := range s.peers {
		if n < 1 || n > limit.PerPeer {
			t.Fatalf("%s has %d streams", k, n)
		}
	}
}

func TestInsistingGroupsEndUpEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShares(Limit{Streams: rapid.IntRange(8, 64).Draw(t, "streams"), PerPeer: 1})
		groups := rapid.IntRange(2, 6).Draw(t, "groups")
		key := 0
		for g := range groups { // one after the other, each takes what it can and never lets go
			for range 200 {
				key++
				s.take(from(key, fmt.Sprintf("203.0.%d.%d", g, key%256)), func() {})
			}
		}
		late := rapid.IntRange(0, groups-1).Draw(t, "late")
		for range 200 {
			key++
			s.take(from(key, fmt.Sprintf("203.0.%d.%d", late, key%256)), func() {})
		}
		for _, n := range s.groups {
			if n == 0 {
				t.Fatal("a group has nothing")
			}
		}
		if len(s.groups) != groups {
			t.Fatalf("%d of %d groups have streams", len(s.groups), groups)
		}
	})
}
