package renter_test

import (
	"context"
	"time"

	"haggle/market"
)

// The rigs of these tests keep no shelves: each is asked itself.

func (n *testNet) Contacts() []market.Key { return nil }

func (n *testNet) Snapshot(context.Context, market.Key, market.SnapshotRequest) ([][]byte, market.SnapshotEnd, error) {
	return nil, market.SnapshotEnd{}, market.NewError(market.CodeUnsupported, "what", "snapshot", "instead", "nothing")
}

func (n *testNet) Announce([]string) {}

func (n *testNet) Remember(market.Key, []string) {}

func (n *testNet) AddrsOf(market.Key) []string { return nil }

func (n *testNet) PathTo(market.Key) (path string, rtt time.Duration) {
	n.set(func() { path = n.path })
	return path, 0
}

func (n *testNet) Blame(market.Key, error) {}

func (n *testNet) Admits(market.Key) bool { return true }
