package p2p

import (
	"cmp"
	"container/list"
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"

	"haggle/market"
)

// Access says who may call, beside everybody. The functions are called by any goroutine, often, and before Run; they must be quick and
// call nothing of the node.
type Access struct {
	Allow       []market.Key   // never blocked for what they do, and served as if they had a lease
	Block       []market.Key   // neither called nor answered
	BlockOwners []market.Key   // as Block, and every program of theirs
	BlockNets   []netip.Prefix // turned away before the handshake; wins over Allow

	OwnerOf func(program market.Key) market.Key // whose delegate a program is; nil, or the same key: its own
	Known   func(program market.Key) bool       // it has an open lease with this program, or is of the same owner; nil: none

	// BlockAbove is the score of faults above which a peer is blocked for a while: 0 for the default, 100, and in a lab, where all peers are
	// on one machine, for never; less than 0 for never.
	BlockAbove float64
}

// BlockEntry is somebody who may not call now.
type BlockEntry struct {
	Key   market.Key   // zero where Net is set
	Owner bool         // Key is an owner's: its programs are meant, too
	Net   netip.Prefix // all addresses in it
	Why   string       // a sentence's end, from this machine's user or from this program
	By    BlockedBy
	Until time.Time // zero: for as long as it is configured, or until Unblock
}

// BlockedBy says who blocked somebody.
type BlockedBy string

// Those who block.
const (
	BlockedByConfig BlockedBy = "config" // Access
	BlockedByUser   BlockedBy = "user"   // Node.Block
	BlockedByScore  BlockedBy = "score"  // what it did
)

// access knows who is let in. Its methods may be called by any goroutine.
type access struct {
	cfg   Access
	place func(market.Key, multiaddr.Multiaddr) netip.Addr // where a peer calls from
	above float64
	out   chan market.Key // whose connections are to be closed

	allow, block, owners map[market.Key]bool

	mu      sync.Mutex
	blocked map[market.Key]*blocked
	scores  map[market.Key]*list.Element // values are *score
	recent  *list.List                   // the newest first
}

func newAccess(cfg Access, lab bool) *access {
	a := &access{
		cfg: cfg, above: cfg.BlockAbove, out: make(chan market.Key, 64),
		place: func(_ market.Key, addr multiaddr.Multiaddr) netip.Addr { return ipOf(addr) },
		allow: setOf(cfg.Allow), block: setOf(cfg.Block), owners: setOf(cfg.BlockOwners),
		blocked: map[market.Key]*blocked{}, scores: map[market.Key]*list.Element{}, recent: list.New(),
	}
	if a.above == 0 && !lab {
		a.above = defaultBlockAbove
	}
	return a
}

func setOf(keys []market.Key) map[market.Key]bool {
	set := make(map[market.Key]bool, len(keys))
	for _, k := range keys {
		set[k] = true
	}
	return set
}

func (a *access) ownerOf(program market.Key) market.Key {
	if a.cfg.OwnerOf == nil {
		return program
	}
	if owner := a.cfg.OwnerOf(program); !owner.IsZero() {
		return owner
	}
	return program
}

// known reports whether a peer is more than a stranger.
func (a *access) known(peer market.Key) bool {
	return a.allow[peer] || a.cfg.Known != nil && a.cfg.Known(peer)
}

// admits reports whether a peer may be called and answered.
func (a *access) admits(peer market.Key, now time.Time) bool {
	return a.admitsKey(peer, now) && (len(a.owners) == 0 || !a.owners[a.ownerOf(peer)])
}

// admitsKey is admits without the question whose program a peer is.
func (a *access) admitsKey(key market.Key, now time.Time) bool {
	if a.block[key] || a.owners[key] {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.blocked[key]
	return b == nil || !b.holds(now)
}

// admitsFrom reports whether an address may be called and answered.
func (a *access) admitsFrom(addr multiaddr.Multiaddr) bool {
	if len(a.cfg.BlockNets) == 0 {
		return true
	}
	ip := ipOf(addr)
	return !slices.ContainsFunc(a.cfg.BlockNets, func(net netip.Prefix) bool { return net.Contains(ip) })
}

// Block lets a peer neither call nor be called for a time, or until Unblock where d is zero, and closes its connections. A block
// again replaces the one before. It lives as long as the node. The error has code CodeBlockDeal for a peer that is known, for example
// by an open lease, and CodeBadRequest for the node's own key.
func (n *Node) Block(key market.Key, d time.Duration, why string) error {
	switch a := n.cfg.access; {
	case key == n.key:
		return market.NewError(market.CodeBadRequest, "why", "this is the program's own key")
	case a.known(key):
		return market.NewError(market.CodeBlockDeal, "key", key.String())
	default:
		a.set(key, d, why, time.Now())
		return nil
	}
}

// Unblock lets a peer in again that Block or its own faults kept out, and forgets the faults. It reports whether there was such a block.
func (n *Node) Unblock(key market.Key) bool { return n.cfg.access.unset(key, time.Now()) }

// Blame counts a fault that a program found in what a peer said, such as an offer with a false signature.
func (n *Node) Blame(key market.Key, fault error) {
	n.cfg.access.blame(key, demerits(market.CodeOf(fault)), time.Now())
}

// Admits reports whether a key, of a program or an owner, is not blocked. It does not ask whose program a key is.
func (n *Node) Admits(key market.Key) bool { return n.cfg.access.admitsKey(key, time.Now()) }

// Blocked returns who may not call now, configured ones first, then by key.
func (n *Node) Blocked() []BlockEntry { return n.cfg.access.list(time.Now()) }

func (a *access) list(now time.Time) []BlockEntry {
	var out []BlockEntry
	for _, net := range a.cfg.BlockNets {
		out = append(out, BlockEntry{Net: net, By: BlockedByConfig})
	}
	for _, k := range a.cfg.Block {
		out = append(out, BlockEntry{Key: k, By: BlockedByConfig})
	}
	for _, k := range a.cfg.BlockOwners {
		out = append(out, BlockEntry{Key: k, Owner: true, By: BlockedByConfig})
	}
	configured := len(out)
	a.mu.Lock()
	defer a.mu.Unlock()
	for k, b := range a.blocked {
		if b.holds(now) {
			out = append(out, BlockEntry{Key: k, Why: b.why, By: b.by, Until: b.until})
		}
	}
	slices.SortFunc(out[configured:], func(x, y BlockEntry) int { return cmp.Compare(string(x.Key[:]), string(y.Key[:])) })
	return out
}

// keepAccess closes the connections of peers that are blocked from now on, until ctx ends.
func (n *Node) keepAccess(ctx context.Context) {
	for {
		select {
		case key := <-n.cfg.access.out:
			if id, err := peerID(key); err == nil {
				n.hangUp(id)
			}
		case <-ctx.Done():
			return
		}
	}
}

// hangUp closes every connection of a peer.
func (n *Node) hangUp(id peer.ID) {
	_ = n.host.Network().ClosePeer(id) // it may be gone already
	n.bulk.hangUp(id)
}
