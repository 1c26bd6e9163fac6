package p2p_test

import (
	"context"
	"crypto/ed25519"
	"strings"
	"sync"
	"testing"
	"time"

	"haggle/market"
	"haggle/p2p"
	"haggle/p2p/p2ptest"
)

// kept is where a program keeps its list of members.
type kept struct {
	mu   sync.Mutex
	list []byte
}

func (k *kept) load() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.list
}

func (k *kept) save(list []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = list
	return nil
}

// club is a private network on loopback.
type club struct {
	creator ed25519.PrivateKey
	network string
}

func newClub(t *testing.T) club {
	creator := p2ptest.Key(t)
	network, err := market.PrivateNetwork("club", market.KeyOf(creator))
	if err != nil {
		t.Fatal(err)
	}
	return club{creator, network}
}

func (c club) list(t *testing.T, seq int64, keys ...ed25519.PrivateKey) []byte {
	m := market.Members{Network: c.network, Seq: seq, Issued: 1}
	for _, k := range keys {
		m.List = append(m.List, market.Member{Key: market.KeyOf(k)})
	}
	sealed, err := market.SealMembers(c.creator, m)
	if err != nil {
		t.Fatal(err)
	}
	return sealed.Encode()
}

func (c club) start(t *testing.T, key ed25519.PrivateKey, k *kept, boot []string, change ...func(*p2p.Config)) *p2p.Node {
	cfg := p2p.Config{
		Key: key, Network: c.network, Mode: p2p.ModeServer, Bootstrap: boot,
		Listen:  []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"},
		Members: p2p.Members{Creator: market.KeyOf(c.creator), Load: k.load, Save: k.save},
		Reach:   p2p.Reach{NoPortMap: true},
	}
	for _, f := range change {
		f(&cfg)
	}
	return p2ptest.Start(t, cfg)
}

// until waits for something that nodes do by themselves.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ctx := soon(t); !holds(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("it never came to pass that %s", what)
		}
	}
}

func connected(n *p2p.Node, key market.Key) bool {
	for _, p := range n.Peers() {
		if p.Key == key {
			return true
		}
	}
	return false
}

func TestAPrivateNetworkLetsInWhoStandsOnItsList(t *testing.T) {
	c := newClub(t)
	ada, bob, eve := p2ptest.Key(t), p2ptest.Key(t), p2ptest.Key(t)
	first := &kept{list: c.list(t, 1, ada, bob)}
	a := c.start(t, ada, first, nil)
	bobs := &kept{}
	b := c.start(t, bob, bobs, a.Addrs()) // he knows nothing but the line of his invitation
	if err := b.Ready(soon(t)); err != nil {
		t.Fatal(err)
	}
	until(t, "Bob keeps the list", func() bool { return string(bobs.load()) == string(first.load()) })

	e := c.start(t, eve, &kept{}, a.Addrs())
	until(t, "Eve hears that she may have to be invited", func() bool { return strings.Contains(e.Health().Reason, "invited") })
	if connected(a, e.ID()) {
		t.Error("Eve, who is not on the list, is connected")
	}
}

func TestANewListGoesFromMemberToMemberAndWhoIsTakenOffIsLetGo(t *testing.T) {
	c := newClub(t)
	ada, bob, eve := p2ptest.Key(t), p2ptest.Key(t), p2ptest.Key(t)
	all := c.list(t, 1, ada, bob, eve)
	lists := []*kept{{list: all}, {list: all}, {list: all}}
	a := c.start(t, ada, lists[0], nil)
	b := c.start(t, bob, lists[1], a.Addrs())
	e := c.start(t, eve, lists[2], a.Addrs())
	until(t, "all know each other", func() bool {
		return connected(a, b.ID()) && connected(a, e.ID())
	})
	without := c.list(t, 2, ada, bob)
	if err := lists[0].save(without); err != nil { // as `network remove` does, beside the running program
		t.Fatal(err)
	}
	until(t, "Eve is let go", func() bool { return !connected(a, e.ID()) && !connected(b, e.ID()) })
	until(t, "Bob has the new list", func() bool { return string(lists[1].load()) == string(without) })
	until(t, "Eve knows why", func() bool { return strings.Contains(e.Health().Reason, "is not on the list") })
	if !connected(a, b.ID()) {
		t.Error("Bob was let go, too")
	}
}

func TestAListThatAPeerMadeUpChangesNothing(t *testing.T) {
	c := newClub(t)
	ada, bob := p2ptest.Key(t), p2ptest.Key(t)
	good := c.list(t, 5, ada, bob)
	a, b := &kept{list: good}, &kept{list: good}
	first := c.start(t, ada, a, nil)
	second := c.start(t, bob, b, first.Addrs())
	if err := second.Ready(soon(t)); err != nil {
		t.Fatal(err)
	}
	mine := newClub(t)
	for name, raw := range map[string][]byte{
		"of another creator": mine.list(t, 9, bob),
		"that is older":      c.list(t, 4, bob),
		"of the same number": c.list(t, 5, bob),
		"that is no list":    []byte("no list"),
		"that is empty":      nil,
	} {
		t.Run(name, func(t *testing.T) {
			s, err := second.Open(soon(t), first.ID(), p2p.MembersProtocol)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.Send(soon(t), market.MembersMessage{Members: raw}); err != nil {
				t.Fatal(err)
			}
			_, _ = s.Receive(soon(t)) // the end, or a refusal: both are an answer
			if string(a.load()) != string(good) || !connected(first, second.ID()) {
				t.Error("the list changed")
			}
		})
	}
}

func TestANetworkThatIsNotItsCreatorsIsNotEntered(t *testing.T) {
	_, err := p2p.New(p2p.Config{
		Key: p2ptest.Key(t), Network: "main", Members: p2p.Members{Creator: market.KeyOf(p2ptest.Key(t))},
		Listen: []string{"/ip4/127.0.0.1/tcp/0"},
	})
	if err == nil || !strings.Contains(err.Error(), "was not made with") {
		t.Errorf("got %v", err)
	}
}

func TestAPublicNetworkHasNoList(t *testing.T) {
	nodes := p2ptest.Join(t, 2, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := nodes[1].Open(ctx, nodes[0].ID(), p2p.MembersProtocol); market.CodeOf(err) != market.CodeUnsupported {
		t.Errorf("got %v, want code unsupported", err)
	}
}
