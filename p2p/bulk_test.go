package p2p_test

import (
	"context"
	"errors"
	"io"
	goruntime "runtime"
	"testing"

	"haggle/market"
	"haggle/p2p"
	"haggle/p2p/p2ptest"
)

// answering makes two nodes, of which the first answers each message of a tunnel with the next number.
func answering(t *testing.T, listen ...string) (rig, agent *p2p.Node) {
	nodes := p2ptest.Join(t, 2, func(i int, cfg *p2p.Config) {
		if i == 1 {
			cfg.Mode = p2p.ModeClient
			return
		}
		cfg.Listen = listen
		cfg.Handlers = map[p2p.Protocol]p2p.Handler{p2p.TunnelProtocol: func(ctx context.Context, s *p2p.Stream) error {
			for {
				m, err := s.Receive(ctx)
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err != nil {
					return err
				}
				if err := s.Send(ctx, market.AckMessage{Seq: m.(market.AckMessage).Seq + 1}); err != nil {
					return err
				}
			}
		}}
	})
	return nodes[0], nodes[1]
}

func asks(t *testing.T, s *p2p.Stream) {
	t.Helper()
	if err := s.Send(soon(t), market.AckMessage{Seq: 1}); err != nil {
		t.Fatal(err)
	}
	if m, err := s.Receive(soon(t)); err != nil || m != (market.AckMessage{Seq: 2}) {
		t.Fatalf("the answer is %v, %v", m, err)
	}
}

func TestBulkHasATCPConnectionOfItsOwn(t *testing.T) {
	rig, agent := answering(t)
	small, err := agent.Open(soon(t), rig.ID(), p2p.TunnelProtocol)
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	for range 2 { // the second finds the connection of the first
		large, err := agent.OpenBulk(soon(t), rig.ID(), p2p.TunnelProtocol)
		if err != nil {
			t.Fatal(err)
		}
		asks(t, large)
		if got := large.Transport(); got != "tcp" {
			t.Errorf("bulk goes over %s", got)
		}
		if large.Peer() != rig.ID() {
			t.Errorf("the other side is %s", large.Peer().Short())
		}
		if err := large.Close(); err != nil {
			t.Error(err)
		}
	}
	asks(t, small) // over QUIC or TCP: which of the two answers first depends on the machine
}

func TestBulkOfAPeerWithoutTCPGoesWhereTheRestGoes(t *testing.T) {
	rig, agent := answering(t, "/ip4/127.0.0.1/udp/0/quic-v1")
	s, err := agent.OpenBulk(soon(t), rig.ID(), p2p.TunnelProtocol)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	asks(t, s)
	if got := s.Transport(); got != "quic-v1" {
		t.Errorf("bulk goes over %s", got)
	}
}

func TestBulkOfANodeThatIsClosed(t *testing.T) {
	rig, agent := answering(t)
	s, err := agent.OpenBulk(soon(t), rig.ID(), p2p.TunnelProtocol)
	if err != nil {
		t.Fatal(err)
	}
	asks(t, s)
	if err := agent.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Receive(soon(t)); err == nil {
		t.Error("a stream outlives its node")
	}
	_ = s.Close()
	if _, err := agent.OpenBulk(soon(t), rig.ID(), p2p.TunnelProtocol); market.CodeOf(err) != market.CodeUnreachable {
		t.Errorf("opened after Close: %v", err)
	}
}

func TestAPeerIsStillFoundWhenItHasAConnectionForBulk(t *testing.T) {
	echo := func(ctx context.Context, s *p2p.Stream) error {
		m, err := s.Receive(ctx)
		if err != nil {
			return err
		}
		return s.Send(ctx, market.AckMessage{Seq: m.(market.AckMessage).Seq + 1})
	}
	nodes := p2ptest.Join(t, 3, func(i int, cfg *p2p.Config) {
		cfg.Handlers = map[p2p.Protocol]p2p.Handler{p2p.TunnelProtocol: echo, p2p.DeputyProtocol: echo}
		if i > 0 {
			cfg.Mode = p2p.ModeClient
		}
	})
	rig, deputy, agent := nodes[0], nodes[1], nodes[2]
	large, err := deputy.OpenBulk(soon(t), rig.ID(), p2p.TunnelProtocol)
	if err != nil {
		t.Fatal(err)
	}
	asks(t, large)
	if err := large.Close(); err != nil {
		t.Error(err)
	}
	s, err := agent.Open(soon(t), deputy.ID(), p2p.DeputyProtocol)
	for ctx := soon(t); market.CodeOf(err) == market.CodeUnreachable && ctx.Err() == nil; s, err = agent.Open(soon(t), deputy.ID(), p2p.DeputyProtocol) {
		goruntime.Gosched()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	asks(t, s)
}
