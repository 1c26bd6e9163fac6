package p2p_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/x/simlibp2p"
	"github.com/marcopolo/simnet"

	"haggle/market"
	"haggle/p2p"
	"haggle/p2p/p2ptest"
)

// lost is the latency of a packet that never arrives.
const lost = 1000 * time.Hour

// walls are firewalls of a simulated network: nobody gets through to a machine that has not written to them from the same port.
type walls struct {
	mu    sync.Mutex
	shut  map[string]bool // addresses whose firewall lets in only answers
	apart bool            // machines behind firewalls never hear each other, as behind symmetric routers
	wrote map[[2]string]bool
}

func (w *walls) latency(p *simnet.Packet) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	from, to := p.From.String(), p.To.String()
	w.wrote[[2]string{from, to}] = true
	switch {
	case w.apart && w.shut[from] && w.shut[to]:
		return lost
	case w.shut[to] && !w.wrote[[2]string{to, from}]:
		return lost
	}
	return 30 * time.Millisecond
}

// world is a relay that everybody reaches, a rig behind a firewall and an agent behind another, in virtual time.
type world struct {
	relay, rig, agent *p2p.Node
	logs              *lockedBuffer // of rig and agent
	start             func(i int, cfg p2p.Config) *p2p.Node
}

// counts answers each message of a stream with the next number.
func counts(ctx context.Context, s *p2p.Stream) error {
	for {
		m, err := s.Receive(ctx)
		if err != nil {
			return nil //nolint:nilerr // the test looks at the other side
		}
		if err := s.Send(ctx, market.AckMessage{Seq: m.(market.AckMessage).Seq + 1}); err != nil {
			return nil //nolint:nilerr // likewise
		}
	}
}

// inWorld runs a test in such a world. apart says that no hole can be punched.
func inWorld(t *testing.T, apart bool, relaying p2p.Reach, test func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		wall := &walls{shut: map[string]bool{}, apart: apart, wrote: map[[2]string]bool{}}
		router := &simnet.Simnet{LatencyFunc: wall.latency}
		router.Start()
		defer router.Close()
		var runs sync.WaitGroup
		var boot []string
		w := &world{logs: &lockedBuffer{}}
		ctx, stop := context.WithCancel(t.Context())
		start := func(i int, cfg p2p.Config) *p2p.Node {
			ip := simnet.IntToPublicIPv4(i)
			if cfg.Mode != p2p.ModeServer {
				wall.shut[fmt.Sprintf("%s:8000", ip)] = true
			}
			cfg.Network, cfg.Bootstrap = "simulated", boot
			cfg.Log = slog.New(slog.NewTextHandler(w.logs, nil))
			cfg.Handlers = map[p2p.Protocol]p2p.Handler{p2p.LeaseProtocol: counts, p2p.TunnelProtocol: counts}
			n := reaching(t, router, i, cfg)
			runs.Go(func() {
				if err := n.Run(ctx); err != nil {
					t.Error(err)
				}
			})
			return n
		}
		w.start = start
		relaying.Assume = p2p.AssumePublic
		w.relay = start(0, p2p.Config{Key: p2ptest.Key(t), Mode: p2p.ModeServer, Reach: relaying})
		boot = w.relay.Addrs()
		w.rig = start(1, p2p.Config{Key: p2ptest.Key(t), Mode: p2p.ModeAuto, Reach: p2p.Reach{Assume: p2p.AssumePrivate, NoPortMap: true}})
		w.rig.Announce([]string{"any"})
		<-time.After(30 * time.Second)
		w.agent = start(2, p2p.Config{Key: p2ptest.Key(t), Mode: p2p.ModeClient})
		<-time.After(10 * time.Second)
		test(t, w)
		stop()
		runs.Wait()
	})
}

func reaching(t *testing.T, router *simnet.Simnet, i int, cfg p2p.Config) *p2p.Node {
	t.Helper()
	cfg.Listen = []string{fmt.Sprintf("/ip4/%s/udp/8000/quic-v1", simnet.IntToPublicIPv4(i))}
	fast := simnet.LinkSettings{BitsPerSecond: 100 * simlibp2p.OneMbps}
	n, err := p2p.NewReachingOn(cfg,
		simlibp2p.QUICSimnet(router, simnet.NodeBiDiLinkSettings{Downlink: fast, Uplink: fast}),
		libp2p.DisableIdentifyAddressDiscovery(), // it stalls virtual time
		libp2p.ResourceManager(&network.NullResourceManager{}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestARigBehindASymmetricRouterIsReachedThroughARelay(t *testing.T) {
	inWorld(t, true, p2p.Reach{}, func(t *testing.T, w *world) {
		report := w.rig.Reach()
		if len(report.Relays) != 1 || report.Relays[0] != w.relay.ID().String() || report.Kind != p2p.ReachRelayed {
			t.Errorf("the rig says %+v", report)
		}
		if got := found(t.Context(), w.agent); !sameKeys(got, []market.Key{w.rig.ID()}) {
			t.Errorf("found %d rigs", len(got))
		}
		begin := time.Now()
		s, err := w.agent.Open(t.Context(), w.rig.ID(), p2p.LeaseProtocol)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		asks(t, s)
		if took := time.Since(begin); took > 3*time.Second {
			t.Errorf("a lease began after %s", took)
		}
		ping, err := w.agent.Ping(t.Context(), w.rig.ID())
		if err != nil || ping.Path != p2p.ReachRelayed || !ping.Small || ping.Relay != w.relay.ID().String() || ping.RTT < 100*time.Millisecond {
			t.Errorf("ping: %+v, %v", ping, err)
		}
		begin = time.Now()
		_, err = w.agent.Open(t.Context(), w.rig.ID(), p2p.TunnelProtocol)
		if market.CodeOf(err) != market.CodeRelayOnly {
			t.Errorf("a tunnel over a small relay: %v", err)
		}
		if took := time.Since(begin); took > 21*time.Second {
			t.Errorf("it took %s to say so", took)
		}
		begin = time.Now()
		if _, err = w.agent.Open(t.Context(), w.rig.ID(), p2p.TunnelProtocol); market.CodeOf(err) != market.CodeRelayOnly || time.Since(begin) > time.Second {
			t.Errorf("the second time: %v after %s", err, time.Since(begin))
		}
	})
}

func TestAPunchedHoleTakesTheRelaysPlace(t *testing.T) {
	inWorld(t, false, p2p.Reach{}, func(t *testing.T, w *world) {
		lease, err := w.agent.Open(t.Context(), w.rig.ID(), p2p.LeaseProtocol)
		if err != nil {
			t.Fatal(err)
		}
		defer lease.Close()
		asks(t, lease)
		begin := time.Now()
		tunnel, err := w.agent.Open(t.Context(), w.rig.ID(), p2p.TunnelProtocol)
		if err != nil {
			t.Fatal(err)
		}
		defer tunnel.Close()
		asks(t, tunnel)
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("the hole took %s", took)
		}
		ping, err := w.agent.Ping(t.Context(), w.rig.ID())
		if err != nil || ping.Path != p2p.ReachPunched {
			t.Errorf("ping: %+v, %v", ping, err)
		}
		if got := w.agent.Reach().PunchesOK; got != 1 {
			t.Errorf("%d holes were punched", got)
		}
		<-time.After(2 * time.Minute)
		if err := lease.Send(t.Context(), market.AckMessage{Seq: 1}); err == nil {
			if _, err = lease.Receive(t.Context()); err == nil {
				t.Error("a lease is still on the relay, which is needed no longer")
			}
		}
		asks(t, tunnel)
	})
}

func TestASmallRelayThatReachesItsLimitIsNamedAndCalledAgain(t *testing.T) {
	inWorld(t, true, p2p.Reach{}, func(t *testing.T, w *world) {
		// At first the connection is given up sooner, to try once more to punch a hole.
		for range 6 {
			s, err := w.agent.Open(t.Context(), w.rig.ID(), p2p.LeaseProtocol)
			if err != nil {
				t.Fatal(err)
			}
			asks(t, s)
			begin := time.Now()
			if _, err = s.Receive(t.Context()); err == nil {
				t.Error("a message that nobody sent")
			}
			if lasted := time.Since(begin); lasted < 30*time.Second || lasted > 11*time.Minute {
				t.Errorf("it lasted %s", lasted)
			}
			_ = s.Close()
			<-time.After(time.Second) // what ended is told to others a moment later
		}
		text := w.logs.String()
		if !strings.Contains(text, "the relay's limit of 10m0s") {
			t.Errorf("nobody says why:\n%s", text)
		}
		if tries := strings.Count(text, "hole punch failed"); tries < 6 {
			t.Errorf("holes were tried in %d rounds on both sides", tries)
		}
	})
}

func TestABulkRelayCarriesTunnelsOfThoseItWorksForAndNothingOfOthers(t *testing.T) {
	for name, forAll := range map[string]bool{"for the rig": true, "for others": false} {
		t.Run(name, func(t *testing.T) {
			bulk := p2p.Reach{Relay: p2p.RelayBulk, BulkFor: func(market.Key) bool { return forAll }}
			inWorld(t, true, bulk, func(t *testing.T, w *world) {
				s, err := w.agent.Open(t.Context(), w.rig.ID(), p2p.TunnelProtocol)
				if !forAll {
					if market.CodeOf(err) != market.CodeUnreachable || len(w.rig.Reach().Relays) != 0 {
						t.Errorf("a relay works for a stranger: %v, %+v", err, w.rig.Reach())
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				asks(t, s)
				<-time.After(30 * time.Minute)
				asks(t, s)
				ping, err := w.agent.Ping(t.Context(), w.rig.ID())
				if err != nil || ping.Path != p2p.ReachRelayed || ping.Small {
					t.Errorf("ping: %+v, %v", ping, err)
				}
			})
		})
	}
}

func TestATunnelTakesTheRelayThatCarriesIt(t *testing.T) {
	inWorld(t, true, p2p.Reach{Relay: p2p.RelayBulk, BulkFor: func(market.Key) bool { return true }}, func(t *testing.T, w *world) {
		small := w.start(3, p2p.Config{Key: p2ptest.Key(t), Mode: p2p.ModeServer, Reach: p2p.Reach{Assume: p2p.AssumePublic}})
		<-time.After(3 * time.Minute)
		if got := w.rig.Reach().Relays; len(got) != 2 {
			t.Fatalf("the rig has places at %q", got)
		}
		w.agent.Remember(w.rig.ID(), []string{small.Addrs()[0] + "/p2p-circuit"})
		lease, err := w.agent.Open(t.Context(), w.rig.ID(), p2p.LeaseProtocol)
		if err != nil {
			t.Fatal(err)
		}
		asks(t, lease)
		if ping, err := w.agent.Ping(t.Context(), w.rig.ID()); err != nil || !ping.Small || ping.Relay != small.ID().String() {
			t.Fatalf("the first way: %+v, %v", ping, err)
		}
		for _, most := range []time.Duration{25 * time.Second, time.Second} { // no hole comes at first
			begin := time.Now()
			tunnel, err := w.agent.Open(t.Context(), w.rig.ID(), p2p.TunnelProtocol)
			if err != nil {
				t.Fatal(err)
			}
			defer tunnel.Close()
			asks(t, tunnel)
			if took := time.Since(begin); took > most {
				t.Errorf("a tunnel began after %s", took)
			}
		}
		if ping, err := w.agent.Ping(t.Context(), w.rig.ID()); err != nil || ping.Small || ping.Relay != w.relay.ID().String() {
			t.Errorf("the way of the tunnels: %+v, %v", ping, err)
		}
		again, err := w.agent.Open(t.Context(), w.rig.ID(), p2p.LeaseProtocol)
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		asks(t, again)
	})
}
