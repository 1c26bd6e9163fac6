package p2p

import (
	"context"
	"crypto/ed25519"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"

	"haggle/market"
)

// labNode runs a node of a lab until the end of the test.
func labNode(t *testing.T, n byte, bootstrap ...string) *Node {
	t.Helper()
	key := ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-1), n))
	node, err := New(Config{Key: key, Network: "lab-hostile", Mode: ModeServer, Bootstrap: bootstrap})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = node.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return node
}

func TestAPeerThatAnswersAheadLooksNoNearer(t *testing.T) {
	far := labNode(t, 1)
	far.host.SetStreamHandler(ping.ID, func(s network.Stream) {
		defer func() { _ = s.Reset() }()
		asked := make([]byte, ping.PingSize)
		if _, err := io.ReadFull(s, asked); err == nil {
			_, _ = s.Write(append(asked, asked...)) // the second time before it is asked
			_, _ = io.Copy(io.Discard, s)
		}
	})
	node := labNode(t, 2, far.Addrs()...)
	node.host.Peerstore().AddAddrs(far.host.ID(), far.host.Addrs(), time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if got, err := node.Ping(ctx, market.KeyOf(far.cfg.Key)); err == nil {
		t.Errorf("a peer that answered ahead is %s away", got.RTT)
	}
	if _, rtt := node.PathTo(far.key); rtt != 0 {
		t.Errorf("a round trip of %s is known", rtt)
	}
}

func TestOnlyMeasuredRoundTripsCount(t *testing.T) {
	far := labNode(t, 1)
	node := labNode(t, 2, far.Addrs()...)
	node.host.Peerstore().AddAddrs(far.host.ID(), far.host.Addrs(), time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := node.connect(ctx, far.host.ID()); err != nil {
		t.Fatal(err)
	}
	node.host.Peerstore().RecordLatency(far.host.ID(), time.Nanosecond) // as the DHT does, by answers on old streams
	if _, rtt := node.PathTo(far.key); rtt != 0 {
		t.Errorf("a round trip of %s is known", rtt)
	}
	got, err := node.Ping(ctx, far.key)
	if err != nil {
		t.Fatal(err)
	}
	if _, rtt := node.PathTo(far.key); rtt != got.RTT {
		t.Errorf("a round trip of %s is known, %s was measured", rtt, got.RTT)
	}
	now := time.Now()
	for i, d := range []time.Duration{time.Hour, time.Minute, time.Hour} {
		node.trips.took("peer", d, now)
		if want := []time.Duration{time.Hour, time.Minute, time.Minute}[i]; node.trips.shortest("peer", now) != want {
			t.Errorf("the shortest is %s", node.trips.shortest("peer", now))
		}
	}
	if d := node.trips.shortest("peer", now.Add(tripLife)); d != 0 {
		t.Errorf("an old round trip of %s is known", d)
	}
}
