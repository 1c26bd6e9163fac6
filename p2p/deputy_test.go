package p2p_test

import (
	"context"
	goruntime "runtime"
	"testing"

	"haggle/market"
	"haggle/p2p"
	"haggle/p2p/p2ptest"
)

func TestAnAgentThatServesNoDHTTakesALeaseAsADeputy(t *testing.T) {
	nodes := p2ptest.Join(t, 3, func(i int, cfg *p2p.Config) {
		if i == 0 {
			return
		}
		cfg.Mode = p2p.ModeClient
		if i == 1 {
			cfg.Handlers = map[p2p.Protocol]p2p.Handler{p2p.DeputyProtocol: func(ctx context.Context, s *p2p.Stream) error {
				m, err := s.Receive(ctx)
				if err != nil {
					return err
				}
				h, ok := m.(market.HandoverMessage)
				if !ok || len(h.Lease) == 0 {
					return market.Unexpected(m)
				}
				return s.Send(ctx, market.AckMessage{Seq: uint32(len(h.Lease))})
			}}
		}
	})
	deputy, agent := nodes[1], nodes[2]
	open := func(to *p2p.Node) (*p2p.Stream, error) { return agent.Open(soon(t), to.ID(), p2p.DeputyProtocol) }
	ask := func(m market.Message) (market.Message, error) {
		t.Helper()
		s, err := open(deputy) // neither knows the other's addresses: the DHT's server does, once the deputy has told it
		for ctx := soon(t); market.CodeOf(err) == market.CodeUnreachable && ctx.Err() == nil; s, err = open(deputy) {
			goruntime.Gosched()
		}
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.Send(soon(t), m); err != nil {
			t.Fatal(err)
		}
		return s.Receive(soon(t))
	}
	if m, err := ask(market.HandoverMessage{Lease: []byte("terms")}); err != nil || m != market.Message(market.AckMessage{Seq: 5}) {
		t.Errorf("the deputy says %v, %v", m, err)
	}
	if m, err := ask(market.EndMessage{}); market.CodeOf(err) != market.CodeUnexpected {
		t.Errorf("to another message the deputy says %v, %v", m, err)
	}
	if s, err := open(nodes[0]); market.CodeOf(err) != market.CodeUnsupported {
		t.Errorf("one that is no deputy: %v, %v", s, err)
	}
}
