package p2p_test

import (
	"context"
	"fmt"
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

func TestARoutingTableIsNotFilledFromOneCorner(t *testing.T) {
	for _, c := range []struct {
		name  string
		hub   string
		addr  func(i int) string
		least int
		most  int
	}{
		{"ten peers of a /16", "/ip4/9.9.9.9", func(i int) string { return fmt.Sprintf("/ip4/8.8.%d.7", i) }, 1, 3},
		{"ten peers of ten /16s", "/ip4/9.9.9.9", func(i int) string { return fmt.Sprintf("/ip4/8.%d.8.7", 10+i) }, 10, 10},
		{"ten peers of a LAN", "/ip4/192.168.1.1", func(i int) string { return fmt.Sprintf("/ip4/192.168.1.%d", 10+i) }, 10, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				router := &simnet.Simnet{LatencyFunc: simnet.StaticLatency(30 * time.Millisecond)}
				router.Start()
				defer router.Close()
				var runs sync.WaitGroup
				ctx, stop := context.WithCancel(t.Context())
				start := func(cfg p2p.Config) *p2p.Node {
					n, err := p2p.NewOn(cfg,
						simlibp2p.QUICSimnet(router, simnet.NodeBiDiLinkSettings{
							Downlink: simnet.LinkSettings{BitsPerSecond: 50 * simlibp2p.OneMbps}, Uplink: simnet.LinkSettings{BitsPerSecond: 10 * simlibp2p.OneMbps},
						}),
						libp2p.DisableIdentifyAddressDiscovery(), libp2p.ResourceManager(&network.NullResourceManager{}),
						libp2p.DisableRelay(), libp2p.ForceReachabilityPublic(),
					)
					if err != nil {
						t.Fatal(err)
					}
					runs.Go(func() {
						if err := n.Run(ctx); err != nil {
							t.Error(err)
						}
					})
					return n
				}
				cfg := func(addr string) p2p.Config {
					return p2p.Config{Key: p2ptest.Key(t), Network: market.NetworkMain, Mode: p2p.ModeServer, Listen: []string{addr + "/udp/8000/quic-v1"}}
				}
				hub := start(cfg(c.hub))
				for i := range 10 {
					other := cfg(c.addr(i))
					other.Bootstrap = hub.Addrs()
					start(other)
				}
				<-time.After(2 * time.Minute)
				if size := hub.Health().TableSize; size < c.least || size > c.most {
					t.Errorf("the table has %d peers, want %d to %d", size, c.least, c.most)
				}
				stop()
				runs.Wait()
			})
		})
	}
}
