// Package p2ptest joins nodes of one process to a lab network on loopback, for tests.
package p2ptest

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"testing"
	"time"

	"haggle/p2p"
)

// patience bounds every wait for nodes; it is only met when something is broken.
const patience = time.Minute

// Network returns the name of a lab network that nothing else uses.
func Network(t testing.TB) string {
	t.Helper()
	var b [6]byte
	if _, err := rand.Read(b[:]); err != nil {
		t.Fatal(err)
	}
	return "lab-" + hex.EncodeToString(b[:])
}

// Key returns a new identity.
func Key(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Join starts n nodes on one new lab network and returns when each is ready; they stop with the test. configure (nil:
// none) may change a node's configuration, which names key, network, ModeServer and, but for node 0, node 0 as bootstrap.
// Node 0 is not waited for where no other serves the DHT: it has nobody to be ready for.
func Join(t testing.TB, n int, configure func(i int, cfg *p2p.Config)) []*p2p.Node {
	t.Helper()
	network := Network(t)
	nodes := make([]*p2p.Node, n)
	othersServe := false
	for i := range nodes {
		cfg := p2p.Config{Key: Key(t), Network: network, Mode: p2p.ModeServer}
		if i > 0 {
			cfg.Bootstrap = nodes[0].Addrs()
		}
		if configure != nil {
			configure(i, &cfg)
		}
		othersServe = othersServe || i > 0 && cfg.Mode != p2p.ModeClient
		nodes[i] = Start(t, cfg)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i, node := range nodes {
		if i == 0 && !othersServe {
			continue
		}
		if err := node.Ready(ctx); err != nil {
			t.Fatalf("node %d: %v", i, err)
		}
	}
	return nodes
}

// Start makes and runs one node, which stops with the test.
func Start(t testing.TB, cfg p2p.Config) *p2p.Node {
	t.Helper()
	node, err := p2p.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- node.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("node %s: %v", node.ID().Short(), err)
			}
		case <-time.After(patience):
			t.Errorf("node %s does not stop", node.ID().Short())
		}
	})
	return node
}
