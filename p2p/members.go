package p2p

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"haggle/market"
)

// Members makes a network private: only programs on a list that the network's creator signed may call or be called. The list goes
// from member to member. The zero value is a public network.
type Members struct {
	// Creator is the key that signs the list; the network's name must be one of its own (market.IsCreator).
	Creator market.Key
	// Load returns the newest list that this program keeps, sealed, or nil. It is asked every two seconds: whoever keeps it may
	// change it. Save keeps a newer one that came from a peer. Both are called by one goroutine at a time; nil keeps nothing.
	Load func() []byte
	Save func(list []byte) error
}

const (
	membersLook    = 2 * time.Second // how soon a list that was changed here is noticed
	membersRefresh = time.Minute
	membersTimeout = 5 * time.Second
	membersGoodbye = time.Second // for telling a peer that it is no member any more
	membersAtOnce  = 16
)

// members decides who may call and be called.
type members struct {
	cfg  Members
	self market.Key
	net  string
	boot map[market.Key]bool // who is asked for the first list

	keeping sync.Mutex // held around Load and Save, and while a list takes force
	mu      sync.Mutex
	list    *market.Members // nil: none yet
	raw     []byte
	seen    []byte        // what Load returned last, under keeping
	changed chan struct{} // holds one token after a newer list took force
}

// newMembers checks the configuration and takes the list that is kept into force.
func newMembers(cfg Config) (*members, error) {
	m := &members{cfg: cfg.Members, self: market.KeyOf(cfg.Key), net: cfg.Network, boot: map[market.Key]bool{}, changed: make(chan struct{}, 1)}
	if m.public() {
		return m, nil
	}
	if !market.IsCreator(cfg.Network, cfg.Members.Creator) {
		return nil, fmt.Errorf("network %q was not made with the key %s", cfg.Network, cfg.Members.Creator)
	}
	bootstrap, err := cfg.bootstrapPeers()
	if err != nil {
		return nil, err
	}
	for _, info := range bootstrap {
		if key, err := keyOf(info.ID); err == nil {
			m.boot[key] = true
		}
	}
	m.reload()
	return m, nil
}

func (m *members) public() bool { return m.cfg.Creator.IsZero() }

// handlers adds the list's protocol to a node's handlers where the network is private.
func (m *members) handlers(all map[Protocol]Handler) map[Protocol]Handler {
	if m.public() {
		return all
	}
	all = maps.Clone(all)
	if all == nil {
		all = map[Protocol]Handler{}
	}
	all[MembersProtocol] = m.serve
	return all
}

// allows reports whether a peer may call and be called. Before the first list those who may have one may.
func (m *members) allows(peer market.Key) bool {
	if m.public() || peer == m.cfg.Creator || peer == m.self {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.list == nil {
		return m.boot[peer]
	}
	return m.list.Has(peer)
}

func (m *members) allowsID(id peer.ID) bool {
	key, err := keyOf(id)
	return err == nil && m.allows(key)
}

// listed reports whether this program itself may take part, as far as it knows.
func (m *members) listed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.public() || m.self == m.cfg.Creator || m.list == nil || m.list.Has(m.self)
}

// informed reports whether this program knows who belongs to its network.
func (m *members) informed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.public() || m.list != nil || m.self == m.cfg.Creator
}

// newest returns the list in force and its number.
func (m *members) newest() (raw []byte, seq int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.list == nil {
		return nil, 0
	}
	return m.raw, m.list.Seq
}

// reload takes a list into force that was changed where it is kept.
func (m *members) reload() {
	if m.cfg.Load == nil {
		return
	}
	m.keeping.Lock()
	defer m.keeping.Unlock()
	raw := m.cfg.Load()
	if raw == nil || string(raw) == string(m.seen) {
		return
	}
	m.seen = raw
	_, _ = m.take(raw) // one that is not valid is as good as none
}

// adopt takes a list from a peer into force where it is newer, and has it kept. news is true then.
func (m *members) adopt(raw []byte) (news bool, err error) {
	m.keeping.Lock()
	defer m.keeping.Unlock()
	news, err = m.take(raw)
	if err != nil || !news || m.cfg.Save == nil {
		return news, err
	}
	return true, m.cfg.Save(raw)
}

// take takes a list into force where it is the creator's and newer. Of two lists with one number the first stays.
func (m *members) take(raw []byte) (news bool, err error) {
	list, err := market.OpenMembers(m.net, m.cfg.Creator, raw)
	if err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.list != nil && list.Seq <= m.list.Seq {
		return false, nil
	}
	m.list, m.raw = &list, raw
	select {
	case m.changed <- struct{}{}:
	default:
	}
	return true, nil
}

// serve answers a member that asks for the list, and takes one that a member brings.
func (m *members) serve(ctx context.Context, s *Stream) error {
	got, err := s.Receive(ctx)
	if err != nil {
		return err
	}
	switch got := got.(type) {
	case market.MembersRequest:
		raw, seq := m.newest()
		if seq <= got.Seq {
			raw = nil
		}
		return s.Send(ctx, market.MembersMessage{Members: raw})
	case market.MembersMessage:
		_, err := m.adopt(got.Members)
		return err
	default:
		return market.Unexpected(got)
	}
}

// keepMembers keeps the list fresh: from where it is kept, and from peers. A newer one is brought to all who are connected.
func (n *Node) keepMembers(ctx context.Context) {
	if n.members.public() {
		return
	}
	look := time.NewTicker(membersLook)
	defer look.Stop()
	var refreshed time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.members.changed:
			n.spreadMembers(ctx)
		case <-look.C:
			n.members.reload()
			peers := n.host.Network().Peers()
			_, seq := n.members.newest()
			if len(peers) > 0 && (seq == 0 || time.Since(refreshed) >= membersRefresh) {
				refreshed = time.Now()
				n.refreshMembers(ctx, peers[rand.IntN(len(peers))])
			}
		}
	}
}

// refreshMembers asks a peer for a newer list.
func (n *Node) refreshMembers(ctx context.Context, id peer.ID) {
	key, err := keyOf(id)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, membersTimeout)
	defer cancel()
	if err := n.askMembers(ctx, key); err != nil {
		n.log.Debug("no list of members from a peer", "peer", key.String(), "err", err)
	}
}

func (n *Node) askMembers(ctx context.Context, key market.Key) error {
	s, err := n.Open(ctx, key, MembersProtocol)
	if err != nil {
		return err
	}
	defer s.Close()
	_, seq := n.members.newest()
	if err := s.Send(ctx, market.MembersRequest{Seq: seq}); err != nil {
		return err
	}
	m, err := s.Receive(ctx)
	if err != nil {
		return err
	}
	got, ok := m.(market.MembersMessage)
	if !ok {
		return market.Unexpected(m)
	}
	if len(got.Members) == 0 {
		return nil
	}
	_, err = n.members.adopt(got.Members)
	return err
}

// spreadMembers brings the list in force to every connected peer, and lets those go who are not on it.
func (n *Node) spreadMembers(ctx context.Context) {
	raw, seq := n.members.newest()
	n.log.Info("a newer list of members is in force", "seq", seq)
	var tellings sync.WaitGroup
	places := make(chan struct{}, membersAtOnce)
	for _, id := range n.host.Network().Peers() {
		key, err := keyOf(id)
		if err != nil {
			continue
		}
		places <- struct{}{}
		tellings.Go(func() {
			defer func() { <-places }()
			if n.members.allows(key) {
				n.bringMembers(ctx, key, raw, membersTimeout)
				return
			}
			n.bringMembers(ctx, key, raw, membersGoodbye)
			n.dht.RoutingTable().RemovePeer(id)
			_ = n.host.Network().ClosePeer(id) // it may be gone already
			n.log.Info("no member any more", "peer", key.String())
		})
	}
	tellings.Wait()
	if !n.members.listed() {
		n.log.Warn("this program is not a member of the network any more", "network", n.cfg.Network)
		for _, id := range n.dht.RoutingTable().ListPeers() {
			n.dht.RoutingTable().RemovePeer(id) // nobody there will answer
		}
	}
}

func (n *Node) bringMembers(ctx context.Context, key market.Key, raw []byte, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s, err := n.Open(ctx, key, MembersProtocol)
	if err == nil {
		err = s.Send(ctx, market.MembersMessage{Members: raw})
		_ = s.Close() // what was sent arrives or does not
	}
	if err != nil {
		n.log.Debug("the list of members did not get to a peer", "peer", key.String(), "err", err)
	}
}
