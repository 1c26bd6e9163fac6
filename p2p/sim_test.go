package p2p_test

import (
	"context"
	"fmt"
	"slices"
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

// The simulated network runs in virtual time: 60 ms round trips, 10 and 50 Mbit/s.

func TestAnnouncementsAreRenewedAndThoseOfTheDeadRunOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rigs = 12
		router := &simnet.Simnet{LatencyFunc: simnet.StaticLatency(30 * time.Millisecond)}
		router.Start()
		defer router.Close()
		var runs sync.WaitGroup
		var boot []string
		start := func(i int, mode p2p.Mode) (*p2p.Node, context.CancelFunc) {
			n := simulated(t, router, i, p2p.Config{Key: p2ptest.Key(t), Network: "simulated", Mode: mode, Bootstrap: boot})
			ctx, stop := context.WithCancel(t.Context())
			runs.Go(func() {
				if err := n.Run(ctx); err != nil {
					t.Error(err)
				}
			})
			return n, stop
		}
		var all []market.Key
		var stops []context.CancelFunc
		for i := range rigs {
			n, stop := start(i, p2p.ModeServer)
			if i == 0 {
				boot = n.Addrs()
			}
			n.Announce([]string{"any"})
			all, stops = append(all, n.ID()), append(stops, stop)
		}
		agent, stop := start(rigs, p2p.ModeClient)
		stops = append(stops, stop)
		if err := agent.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute) // time enough for every announcement
		begin := time.Now()
		if got := found(t.Context(), agent); !sameKeys(got, all) {
			t.Errorf("found %d rigs, want all %d, each once", len(got), len(all))
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("the lookup took %s", took)
		}
		dead := rigs - 1
		stops[dead]()
		<-time.After(80 * time.Minute)
		if got := found(t.Context(), agent); !sameKeys(got, all[:dead]) {
			t.Errorf("80 minutes later: found %d rigs, want the %d that live", len(got), dead)
		}
		for _, stop := range stops {
			stop()
		}
		runs.Wait()
	})
}

func found(ctx context.Context, n *p2p.Node) []market.Key { return slices.Collect(n.Find(ctx, "any")) }

func sameKeys(a, b []market.Key) bool {
	order := func(x, y market.Key) int { return slices.Compare(x[:], y[:]) }
	return slices.Equal(slices.SortedFunc(slices.Values(a), order), slices.SortedFunc(slices.Values(b), order))
}

func simulated(t *testing.T, router *simnet.Simnet, i int, cfg p2p.Config) *p2p.Node {
	t.Helper()
	cfg.Listen = []string{fmt.Sprintf("/ip4/%s/udp/8000/quic-v1", simnet.IntToPublicIPv4(i))}
	n, err := p2p.NewOn(cfg,
		simlibp2p.QUICSimnet(router, simnet.NodeBiDiLinkSettings{
			Downlink: simnet.LinkSettings{BitsPerSecond: 50 * simlibp2p.OneMbps},
			Uplink:   simnet.LinkSettings{BitsPerSecond: 10 * simlibp2p.OneMbps},
		}),
		libp2p.DisableIdentifyAddressDiscovery(), // it stalls virtual time
		libp2p.ResourceManager(&network.NullResourceManager{}),
		libp2p.DisableRelay(),
		libp2p.ForceReachabilityPublic(),
	)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
