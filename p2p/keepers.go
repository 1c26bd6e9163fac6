package p2p

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	dhtpb "github.com/libp2p/go-libp2p-kad-dht/pb"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multihash"
	"golang.org/x/sync/errgroup"
)

// Looking up who is to keep an announcement costs some 25 new connections, telling ten who keep it already costs ten at most: so the
// same peers are told again, and looked up anew only now and then.
const (
	keepersValid = 2 * time.Hour
	tellAtOnce   = 4
)

// keepers are the peers that keep this node's announcement of one bucket.
type keepers struct {
	peers  []peer.ID
	looked time.Time
	table  int // peers in the routing table at that time
}

// announcements are the keepers of all buckets.
type announcements struct {
	mu   sync.Mutex
	held map[string]keepers
}

// keepersOf returns who keeps a bucket's announcement; none where they are to be looked up.
func (a *announcements) keepersOf(bucket string, table int, now time.Time) []peer.ID {
	a.mu.Lock()
	defer a.mu.Unlock()
	h, ok := a.held[bucket]
	// While there are fewer than keep an announcement, or many more came since, others are nearer to it by now.
	if !ok || now.Sub(h.looked) >= keepersValid || len(h.peers) < tableBucket || table > h.table+h.table/2 {
		return nil
	}
	return h.peers
}

func (a *announcements) hold(bucket string, h keepers) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held == nil {
		a.held = map[string]keepers{}
	}
	a.held[bucket] = h
}

// forget drops the keepers of buckets in which this node does not want to be found any more, and of one that is to be looked up.
func (a *announcements) forget(drop func(bucket string) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for bucket := range a.held {
		if drop(bucket) {
			delete(a.held, bucket)
		}
	}
}

// tellKeepers tells the peers that keep a bucket's announcement that this node is still there. More than half of them must be reached.
func (n *Node) tellKeepers(ctx context.Context, bucket string, key multihash.Multihash) error {
	now, table := time.Now(), n.dht.RoutingTable().Size()
	peers := n.held.keepersOf(bucket, table, now)
	if peers == nil {
		closest, err := n.dht.GetClosestPeers(ctx, string(key))
		if err != nil {
			return fmt.Errorf("look up who keeps the announcement: %w", err)
		}
		peers = closest
		n.held.hold(bucket, keepers{peers: peers, looked: now, table: table})
	}
	if err := n.tell(ctx, peers, key); err != nil {
		n.held.forget(func(b string) bool { return b == bucket })
		return err
	}
	return nil
}

func (n *Node) tell(ctx context.Context, peers []peer.ID, key multihash.Multihash) error {
	messenger, err := dhtpb.NewProtocolMessenger(n.dht.MessageSender())
	if err != nil {
		return err
	}
	self := peer.AddrInfo{ID: n.host.ID(), Addrs: n.dht.FilteredAddrs()}
	failures := make([]error, len(peers))
	var group errgroup.Group
	group.SetLimit(tellAtOnce)
	for i, id := range peers {
		group.Go(func() error {
			one, cancel := context.WithTimeout(ctx, lookupTimeout)
			defer cancel()
			failures[i] = messenger.PutProviderAddrs(one, id, key, self)
			return nil
		})
	}
	_ = group.Wait() // the failures are kept per peer
	failed := 0
	for _, err := range failures {
		if err != nil {
			failed++
		}
	}
	if 2*failed >= len(peers) {
		return fmt.Errorf("%d of %d peers did not take the announcement: %w", failed, len(peers), errors.Join(failures...))
	}
	return nil
}
