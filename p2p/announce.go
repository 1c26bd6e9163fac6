package p2p

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/multiformats/go-multihash"
	"golang.org/x/sync/errgroup"

	"haggle/market"
)

const (
	announceValidity = time.Hour // protocol: the peers that keep an announcement drop it after this
	announceEvery    = 20 * time.Minute
	announceTimeout  = time.Minute // one bucket
	announceAtOnce   = 4           // buckets
	minAnnounceRetry = 2 * time.Second
	maxAnnounceRetry = time.Minute
)

// Announce replaces the set of buckets in which this node is found. New ones are told to the network at once, or as soon
// as the node has joined it, and all again every 20 minutes. One that was left out is found for up to an hour more:
// the DHT cannot take back.
func (n *Node) Announce(buckets []string) {
	set := slices.Compact(slices.Sorted(slices.Values(buckets)))
	n.mu.Lock()
	same := slices.Equal(set, n.wanted)
	n.wanted = set
	n.mu.Unlock()
	if same {
		return
	}
	select {
	case n.rewanted <- struct{}{}:
	default: // one token is enough
	}
}

func (n *Node) wantedBuckets() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.reach.also(n.wanted)
}

// keepAnnounced tells the network every bucket whose time has come.
func (n *Node) keepAnnounced(ctx context.Context) {
	told := map[string]time.Time{} // when each bucket was last told
	retry := minAnnounceRetry
	for ctx.Err() == nil {
		change := n.tableChange()
		alone := n.dht.RoutingTable().Size() == 0
		err := n.announceDue(ctx, told, alone)
		pause := jitter(announceEvery)
		switch {
		case alone:
			pause = announceEvery // or until there is a peer to tell
		case err != nil:
			n.log.Debug("announcement failed", "err", err)
			change, pause = nil, jitter(retry)
			retry = min(2*retry, maxAnnounceRetry)
		default:
			change, retry = nil, minAnnounceRetry
		}
		n.awaitAnnouncing(ctx, pause, change)
	}
}

func (n *Node) awaitAnnouncing(ctx context.Context, pause time.Duration, change <-chan struct{}) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-change:
	case <-n.rewanted:
	case <-ctx.Done():
	}
}

// announceDue announces the buckets that were not told for most of an interval. A node that is alone only remembers them
// for those who will ask it directly.
func (n *Node) announceDue(ctx context.Context, told map[string]time.Time, alone bool) error {
	wanted := n.wantedBuckets()
	for bucket := range told {
		if !slices.Contains(wanted, bucket) {
			delete(told, bucket)
		}
	}
	n.held.forget(func(bucket string) bool { return !slices.Contains(wanted, bucket) })
	moved := n.reach.movedAt()
	var due []string
	for _, bucket := range wanted {
		if at, ok := told[bucket]; !ok || time.Since(at) > announceEvery/2 || at.Before(moved) {
			due = append(due, bucket)
		}
	}
	failures := make([]error, len(due))
	var group errgroup.Group
	group.SetLimit(announceAtOnce)
	for i, bucket := range due {
		group.Go(func() error {
			failures[i] = n.announce(ctx, bucket, alone)
			return nil
		})
	}
	_ = group.Wait() // the failures are kept per bucket
	for i, bucket := range due {
		if failures[i] == nil && !alone {
			told[bucket] = time.Now()
		}
	}
	err := errors.Join(failures...)
	if err == nil && !alone && len(wanted) > 0 {
		n.mu.Lock()
		n.announced = time.Now()
		n.mu.Unlock()
	}
	return err
}

func (n *Node) announce(ctx context.Context, bucket string, alone bool) error {
	key, err := bucketKey(n.cfg.Network, bucket)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	if err := n.dht.Provide(ctx, key, false); err != nil || alone {
		return err // it is kept here for those who ask this node
	}
	return n.tellKeepers(ctx, bucket, key.Hash())
}

// bucketKey names a bucket in the DHT: the SHA-256 of its canonical text.
func bucketKey(network, bucket string) (cid.Cid, error) {
	hash := market.HashOf([]byte("haggle/" + network + "/bucket/1/" + bucket))
	sum, err := multihash.Encode(hash[:], multihash.SHA2_256)
	if err != nil {
		return cid.Undef, err
	}
	return cid.NewCidV1(cid.Raw, sum), nil
}
