package p2p_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"haggle/market"
	"haggle/p2p"
	"haggle/p2p/p2ptest"
)

// shelf makes a node that serves a page.
func shelf(page func(market.Key, market.SnapshotRequest) ([][]byte, market.SnapshotEnd)) map[p2p.Protocol]p2p.Handler {
	return map[p2p.Protocol]p2p.Handler{p2p.SnapshotProtocol: p2p.SnapshotHandler(page)}
}

func TestASnapshotCarriesWhatThePeerHasAndHowToGoOn(t *testing.T) {
	offers := [][]byte{[]byte("one"), bytes.Repeat([]byte("x"), market.MaxOffer)}
	end := market.SnapshotEnd{Next: market.Cursor{Instance: market.Nonce{7}, Seq: 9}, More: true, Held: 12, Depth: 4}
	var asker market.Key
	var asked market.SnapshotRequest
	nodes := p2ptest.Join(t, 2, func(i int, cfg *p2p.Config) {
		if i == 0 {
			cfg.Handlers = shelf(func(k market.Key, r market.SnapshotRequest) ([][]byte, market.SnapshotEnd) {
				asker, asked = k, r
				return offers, end
			})
		}
	})
	want := market.SnapshotRequest{Cells: []string{"any", "model/H200#2/3"}, Have: make([]byte, 8*market.MaxSnapshotHave-8), Since: market.Cursor{Seq: 3}, Mate: true}
	got, gotEnd, err := nodes[1].Snapshot(soon(t), nodes[0].ID(), want)
	if err != nil {
		t.Fatal(err)
	}
	want.Max = market.MaxSnapshotPage
	if !slices.EqualFunc(got, offers, bytes.Equal) || gotEnd != end || asker != nodes[1].ID() || !cmp.Equal(asked, want) {
		t.Errorf("got %d offers and %+v; asked was %+v", len(got), gotEnd, asked.Cells)
	}
}

func TestARequestForASnapshotThatIsOutOfBoundsReachesNobody(t *testing.T) {
	nodes := p2ptest.Join(t, 2, func(i int, cfg *p2p.Config) {
		if i == 0 {
			cfg.Handlers = shelf(func(market.Key, market.SnapshotRequest) ([][]byte, market.SnapshotEnd) {
				t.Error("a bad request was served")
				return nil, market.SnapshotEnd{}
			})
		}
	})
	for name, r := range map[string]market.SnapshotRequest{
		"no cell":        {},
		"too many cells": {Cells: slices.Repeat([]string{"any"}, market.MaxSnapshotCells+1)},
		"an empty cell":  {Cells: []string{""}},
		"a long cell":    {Cells: []string{strings.Repeat("x", 129)}},
		"half a hash":    {Cells: []string{"any"}, Have: make([]byte, 9)},
		"too many":       {Cells: []string{"any"}, Have: make([]byte, 8*market.MaxSnapshotHave+8)},
	} {
		if _, _, err := nodes[1].Snapshot(soon(t), nodes[0].ID(), r); market.CodeOf(err) != market.CodeBadRequest {
			t.Errorf("%s: %v", name, err)
		}
		// One that does not check its own requests is refused by the other side.
		s, err := nodes[1].Open(soon(t), nodes[0].ID(), p2p.SnapshotProtocol)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Send(soon(t), r); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Receive(soon(t)); market.CodeOf(err) != market.CodeBadRequest {
			t.Errorf("%s, sent all the same: %v", name, err)
		}
		_ = s.Close()
	}
}

func TestAPeerThatFloodsASnapshotIsRefusedWhole(t *testing.T) {
	flood := func(n, size int) p2p.Handler {
		return func(ctx context.Context, s *p2p.Stream) error {
			if _, err := s.Receive(ctx); err != nil {
				return err
			}
			for range n {
				if err := s.Send(ctx, market.OfferMessage{Offer: make([]byte, size)}); err != nil {
					return err
				}
			}
			return s.Send(ctx, market.SnapshotEnd{})
		}
	}
	for name, h := range map[string]p2p.Handler{
		"too many":     flood(market.MaxSnapshotPage+1, 10),
		"too large":    flood(1, market.MaxOffer+1),
		"too much":     flood(2<<20/market.MaxOffer+1, market.MaxOffer),
		"another word": func(ctx context.Context, s *p2p.Stream) error { return s.Send(ctx, market.EndMessage{}) },
		"no end":       func(context.Context, *p2p.Stream) error { return nil },
	} {
		nodes := p2ptest.Join(t, 2, func(i int, cfg *p2p.Config) {
			if i == 0 {
				cfg.Handlers = map[p2p.Protocol]p2p.Handler{p2p.SnapshotProtocol: h}
			}
		})
		got, _, err := nodes[1].Snapshot(soon(t), nodes[0].ID(), market.SnapshotRequest{Cells: []string{"any"}})
		if err == nil || got != nil {
			t.Errorf("%s: %d offers, %v", name, len(got), err)
		}
	}
}

func TestAPeerWithoutAShelfSaysSo(t *testing.T) {
	nodes := p2ptest.Join(t, 2, func(int, *p2p.Config) {})
	begin := time.Now()
	for range 2 { // before and after it has said what it speaks
		_, _, err := nodes[1].Snapshot(soon(t), nodes[0].ID(), market.SnapshotRequest{Cells: []string{"any"}})
		if market.CodeOf(err) != market.CodeUnsupported {
			t.Errorf("%v", err)
		}
	}
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestARememberedPeerIsReachedBeforeAnythingIsLookedUp(t *testing.T) {
	nodes := p2ptest.Join(t, 2, func(i int, cfg *p2p.Config) {
		if i == 0 {
			cfg.Handlers = offers([]byte("one"))
		}
	})
	rig := nodes[0]
	if _, err := nodes[1].FetchOffers(soon(t), rig.ID()); err != nil {
		t.Fatal(err)
	}
	kept := nodes[1].AddrsOf(rig.ID())
	if len(kept) == 0 || nodes[1].AddrsOf(market.Key{1}) != nil {
		t.Fatalf("kept %q", kept)
	}
	if path, _ := nodes[1].PathTo(rig.ID()); path != p2p.ReachLoopback {
		t.Errorf("it is reached %q", path)
	}
	alone := p2ptest.Start(t, p2p.Config{Key: p2ptest.Key(t), Network: rig.Network()})
	alone.Remember(rig.ID(), append([]string{"no address", strings.Repeat("/ip4/127.0.0.1", 100)}, kept...))
	if got, err := alone.FetchOffers(soon(t), rig.ID()); err != nil || len(got) != 1 {
		t.Errorf("%d offers, %v", len(got), err)
	}
	if c := nodes[1].Contacts(); !slices.Contains(c, rig.ID()) {
		t.Errorf("the peer by which it joined is no contact: %v", c)
	}
}
