package p2p

import (
	"net/netip"
	"testing"
	"time"
)

func TestWhatTranslatesAddressesIsGuessedFromWhatPeersSee(t *testing.T) {
	udp := func(observer, seen string) sight {
		return sight{transport: "udp", observer: netip.MustParseAddr(observer), local: 4701, seen: netip.MustParseAddrPort(seen)}
	}
	tcp := func(observer, seen string) sight {
		s := udp(observer, seen)
		s.transport = "tcp"
		return s
	}
	mine := []netip.Addr{netip.MustParseAddr("192.168.1.7"), netip.MustParseAddr("2a00::7")}
	for _, test := range []struct {
		name string
		all  []sight
		want NATKind
	}{
		{"nobody said anything", nil, NATUnknown},
		{"one peer is not enough", []sight{udp("8.8.8.8", "5.6.7.8:4701")}, NATUnknown},
		{"twice the same peer is one", []sight{udp("8.8.8.8", "5.6.7.8:4701"), udp("8.8.8.8", "5.6.7.8:9")}, NATUnknown},
		{"the port of this machine", []sight{udp("8.8.8.8", "5.6.7.8:4701"), udp("9.9.9.9", "5.6.7.8:4701")}, NATPortPreserving},
		{"another port, the same for all", []sight{udp("8.8.8.8", "5.6.7.8:61000"), udp("9.9.9.9", "5.6.7.8:61000")}, NATFixed},
		{"a port for each", []sight{udp("8.8.8.8", "5.6.7.8:4701"), udp("9.9.9.9", "5.6.7.8:61001")}, NATSymmetric},
		{"an address of this machine", []sight{udp("2a01::1", "[2a00::7]:4701")}, NATNone},
		{"IPv4 says more than IPv6", []sight{udp("2a01::1", "[2a00::7]:4701"), udp("8.8.8.8", "5.6.7.8:1"), udp("9.9.9.9", "5.6.7.8:2")}, NATSymmetric},
		{"UDP says more than TCP", []sight{tcp("8.8.8.8", "5.6.7.8:1"), tcp("9.9.9.9", "5.6.7.8:2"), udp("8.8.8.8", "5.6.7.8:4701"), udp("9.9.9.9", "5.6.7.8:4701")}, NATPortPreserving},
		{"TCP where UDP is shut", []sight{tcp("8.8.8.8", "5.6.7.8:1"), tcp("9.9.9.9", "5.6.7.8:2")}, NATSymmetric},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := natKind(test.all, mine); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestWhatPeersSaidIsBoundedAndForgotten(t *testing.T) {
	s := newSights()
	start := time.Unix(1_700_000_000, 0)
	for i := range 3 * maxSights {
		s.keep(sight{
			transport: "udp", observer: netip.AddrFrom4([4]byte{8, 8, byte(i >> 8), byte(i)}), local: 4701,
			seen: netip.MustParseAddrPort("5.6.7.8:4701"), at: start,
		})
	}
	if n := len(s.list()); n != maxSights {
		t.Errorf("%d are kept, want %d", n, maxSights)
	}
	if got := seen(s.list()); len(got) != 1 || got[0].Observers != maxSights {
		t.Errorf("in sum: %+v", got)
	}
	s.keep(sight{transport: "tcp", observer: netip.MustParseAddr("9.9.9.9"), at: start.Add(sightLife + time.Minute)})
	if n := len(s.list()); n != 1 {
		t.Errorf("%d are kept half an hour later, want the new one", n)
	}
}

func TestTheKindOfReachGoesByWhatWasSeenBeforeWhatIsLikely(t *testing.T) {
	relays := []string{"a relay"}
	for _, test := range []struct {
		name   string
		report ReachReport
		called bool
		want   string
	}{
		{"somebody called", ReachReport{NAT: NATSymmetric, Relays: relays}, true, ReachDirect},
		{"nobody could call, and there is no relay", ReachReport{NAT: NATPortPreserving}, false, ReachUnknown},
		{"a router that lets holes be punched", ReachReport{NAT: NATPortPreserving, Relays: relays}, false, ReachPunched},
		{"one that does not", ReachReport{NAT: NATSymmetric, Relays: relays}, false, ReachRelayed},
		{"one that did all the same", ReachReport{NAT: NATSymmetric, Relays: relays, PunchesOK: 1}, false, ReachPunched},
		{"one that should have", ReachReport{NAT: NATFixed, Relays: relays, Failed: 2}, false, ReachRelayed},
		{"one that nobody knows", ReachReport{NAT: NATUnknown, Relays: relays}, false, ReachRelayed},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := kindOfReach(test.report, test.called); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
