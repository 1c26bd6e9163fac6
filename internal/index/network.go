package index

import (
	"context"
	"iter"

	"haggle/market"
)

// Network is what an index needs of the network. Its methods may be called concurrently and bound the size of what they return; the
// index bounds their time.
type Network interface {
	// Ready waits until there is somebody to look rigs up with. The error, when ctx ends before, has code CodeNoPeers.
	Ready(ctx context.Context) error
	// Contacts returns peers that may be asked at once, before anything is looked up: those by which the node joins.
	Contacts() []market.Key
	// Find streams the keys of rigs that announced themselves in a cell, each once.
	Find(ctx context.Context, cell string) iter.Seq[market.Key]
	// FetchOffers asks a rig for its sealed offers.
	FetchOffers(ctx context.Context, rig market.Key) ([][]byte, error)
	// Snapshot asks a peer for a page of the offers that it has heard of.
	Snapshot(ctx context.Context, peer market.Key, r market.SnapshotRequest) ([][]byte, market.SnapshotEnd, error)
	// Announce replaces the cells in which this program is found.
	Announce(cells []string)
	// Remember tells the network addresses of an earlier life; AddrsOf returns those to keep for the next.
	Remember(rig market.Key, addrs []string)
	AddrsOf(rig market.Key) []string
	// Blame counts a fault that was found in what a peer said. Admits reports whether a key is blocked neither itself nor through its
	// owner: offers of others are not shown.
	Blame(peer market.Key, fault error)
	Admits(key market.Key) bool
}
