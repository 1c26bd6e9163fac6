package p2p_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"haggle/market"
	"haggle/p2p"
	"haggle/p2p/p2ptest"
)

// holding is a handler that says one word and keeps its stream until the peer or the node ends it.
func holding(ctx context.Context, s *p2p.Stream) error {
	if err := s.Send(ctx, market.EndMessage{}); err != nil {
		return err
	}
	_, err := s.Receive(ctx)
	return err
}

// hostileKeys are connected at once; on real loopback a thousand of them would only test the machine.
const hostileKeys = 120

func TestHostileKeysOfOneNetworkDoNotKeepAnHonestRenterOut(t *testing.T) {
	honest := p2ptest.Key(t)
	cfg := p2p.Config{
		Key: p2ptest.Key(t), Network: p2ptest.Network(t), Mode: p2p.ModeServer,
		Handlers: map[p2p.Protocol]p2p.Handler{p2p.LeaseProtocol: holding},
	}
	p2p.Place(&cfg, func(peer market.Key) netip.Addr { // all but one of a /24
		if peer == market.KeyOf(honest) {
			return netip.MustParseAddr("198.51.100.1")
		}
		return netip.AddrFrom4([4]byte{203, 0, 113, peer[0]})
	})
	node := p2ptest.Start(t, cfg)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range hostileKeys / 8 {
				peer := p2ptest.NewStranger(t, node.Addrs()[0])
				for range 4 {
					if s, err := peer.Open(t.Context(), p2p.LeaseProtocol); err == nil {
						_, _ = s.Read(make([]byte, 1)) // it is served or refused by now
					}
				}
			}
		})
	}
	group.Wait()
	renter := p2ptest.Start(t, p2p.Config{Key: honest, Network: node.Network(), Bootstrap: node.Addrs()})
	if err := renter.Ready(soon(t)); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	for range 8 {
		s, err := renter.Open(soon(t), node.ID(), p2p.LeaseProtocol)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := s.Receive(soon(t)); err != nil {
			t.Fatalf("the honest renter is refused: %v", err)
		}
	}
	t.Logf("eight streams beside %d hostile keys took %s", hostileKeys, time.Since(begin).Round(time.Millisecond))
}

func TestAPeerThatSendsGarbageIsCutOffAndOthersAreNot(t *testing.T) {
	node := p2ptest.Start(t, p2p.Config{
		Key: p2ptest.Key(t), Network: p2ptest.Network(t), Mode: p2p.ModeServer, Access: p2p.Access{BlockAbove: 100},
		Handlers: offers(), Limits: map[p2p.Protocol]p2p.Limit{p2p.OffersProtocol: wide},
	})
	hostile, honest := p2ptest.NewStranger(t, node.Addrs()[0]), p2ptest.NewStranger(t, node.Addrs()[0])
	cut := false
	for ctx := soon(t); !cut && ctx.Err() == nil; {
		cut = sendBad(t, hostile, []byte("\x05hello"), market.CodeBadEncoding) != nil
	}
	if !cut || !blocks(node, market.KeyOf(hostile.Key), p2p.BlockedByScore) {
		t.Fatalf("it is not blocked: %+v", node.Blocked())
	}
	awaitGone(t, node, market.KeyOf(hostile.Key))
	if s, err := hostile.Open(soon(t), p2p.OffersProtocol); err == nil {
		if _, err := s.Read(make([]byte, 1)); err == nil {
			t.Error("it is served again")
		}
	}
	if err := sendBad(t, honest, []byte("\x05hello"), market.CodeBadEncoding); err != nil {
		t.Errorf("another peer is not answered: %v", err)
	}
	if !node.Unblock(market.KeyOf(hostile.Key)) || len(node.Blocked()) != 0 {
		t.Error("the block cannot be lifted")
	}
}

func TestABlockEndsConnectionsAndKeepsThemFromComingBack(t *testing.T) {
	nodes := p2ptest.Join(t, 2, func(_ int, cfg *p2p.Config) { cfg.Handlers = offers() })
	rude := nodes[1].ID()
	if _, err := nodes[1].FetchOffers(soon(t), nodes[0].ID()); err != nil {
		t.Fatal(err)
	}
	if err := nodes[0].Block(rude, time.Hour, "rude"); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, nodes[0], rude)
	if _, err := nodes[1].FetchOffers(soon(t), nodes[0].ID()); err == nil {
		t.Error("a blocked peer is served")
	}
	if _, err := nodes[0].FetchOffers(soon(t), rude); market.CodeOf(err) != market.CodeUnreachable {
		t.Errorf("a blocked peer is called: %v", err)
	}
	if !nodes[0].Unblock(rude) {
		t.Error("there was no block")
	}
	for ctx := soon(t); ; {
		_, err := nodes[1].FetchOffers(ctx, nodes[0].ID())
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("it is not served after the block: %v", err)
		}
	}
	if err := nodes[0].Block(nodes[0].ID(), 0, ""); market.CodeOf(err) != market.CodeBadRequest {
		t.Errorf("it blocks itself: %v", err)
	}
}

func TestWhoHoldsALeaseCannotBeBlocked(t *testing.T) {
	tenant := market.KeyOf(p2ptest.Key(t))
	node := p2ptest.Start(t, p2p.Config{
		Key: p2ptest.Key(t), Network: p2ptest.Network(t), Access: p2p.Access{Known: func(k market.Key) bool { return k == tenant }},
	})
	if err := node.Block(tenant, 0, "rude"); market.CodeOf(err) != market.CodeBlockDeal {
		t.Errorf("got %v", err)
	}
}

func TestListsOfTheConfigurationHold(t *testing.T) {
	other, owner := p2ptest.Key(t), market.KeyOf(p2ptest.Key(t))
	for name, access := range map[string]p2p.Access{
		"a key":              {Block: []market.Key{market.KeyOf(other)}},
		"a network":          {BlockNets: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		"an owner":           {BlockOwners: []market.Key{owner}, OwnerOf: func(market.Key) market.Key { return owner }},
		"an owner's machine": {BlockOwners: []market.Key{market.KeyOf(other)}},
	} {
		t.Run(name, func(t *testing.T) {
			node := p2ptest.Start(t, p2p.Config{Key: p2ptest.Key(t), Network: p2ptest.Network(t), Mode: p2p.ModeServer, Access: access, Handlers: offers()})
			peer := p2ptest.Start(t, p2p.Config{Key: other, Network: node.Network(), Bootstrap: node.Addrs()})
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if _, err := peer.FetchOffers(ctx, node.ID()); err == nil {
				t.Error("it is served")
			}
			if len(node.Blocked()) != 1 {
				t.Errorf("the list is %+v", node.Blocked())
			}
		})
	}
}

func blocks(n *p2p.Node, key market.Key, by p2p.BlockedBy) bool {
	for _, b := range n.Blocked() {
		if b.Key == key && b.By == by {
			return true
		}
	}
	return false
}

// awaitGone waits until a node has no connection with a peer.
func awaitGone(t *testing.T, n *p2p.Node, key market.Key) {
	t.Helper()
	connected := func() error {
		for _, p := range n.Peers() {
			if p.Key == key {
				return fmt.Errorf("%s is still connected", key.Short())
			}
		}
		return nil
	}
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for ctx := soon(t); connected() != nil; {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatal(errors.Join(connected(), ctx.Err()))
		}
	}
}
