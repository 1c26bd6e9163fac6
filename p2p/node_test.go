package p2p_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"haggle/market"
	"haggle/p2p"
	"haggle/p2p/p2ptest"
)

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// find asks again until the wanted key appears, as an agent does.
func find(t *testing.T, n *p2p.Node, bucket string, want market.Key) {
	t.Helper()
	for ctx := soon(t); ctx.Err() == nil; {
		for key := range n.Find(ctx, bucket) {
			if key == want {
				return
			}
		}
	}
	t.Fatalf("%s does not find %s in %s", n.ID().Short(), want.Short(), bucket)
}

func offers(list ...[]byte) map[p2p.Protocol]p2p.Handler {
	return map[p2p.Protocol]p2p.Handler{p2p.OffersProtocol: p2p.OffersHandler(func() [][]byte { return list })}
}

func TestARigIsFoundByItsBucketAndServesItsOffers(t *testing.T) {
	want := [][]byte{[]byte("one"), bytes.Repeat([]byte("x"), market.MaxOffer)}
	nodes := p2ptest.Join(t, 4, func(i int, cfg *p2p.Config) {
		switch i {
		case 1:
			cfg.Handlers = offers(want...)
		case 3:
			cfg.Mode = p2p.ModeClient
		}
	})
	rig, agent := nodes[1], nodes[3]
	rig.Announce([]string{"any", "model/H200"})
	find(t, agent, "any", rig.ID())
	find(t, agent, "model/H200", rig.ID())
	find(t, nodes[2], "any", rig.ID())
	got, err := agent.FetchOffers(soon(t), rig.ID())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("got %d offers, want the %d that the rig serves", len(got), len(want))
	}
	for key := range rig.Find(soon(t), "any") {
		t.Errorf("the rig finds %s in its own bucket", key.Short())
	}
	h := rig.Health()
	for ctx := soon(t); h.LastAnnounce.IsZero() && ctx.Err() == nil; h = rig.Health() { // it is found before the last peer has its word
		goruntime.Gosched()
	}
	if !h.Ready || h.Buckets != 2 || h.LastAnnounce.IsZero() {
		t.Errorf("the rig's health is %+v", h)
	}
}

func TestALoneRigIsFoundByTheAgentThatCallsIt(t *testing.T) {
	nodes := p2ptest.Join(t, 2, func(i int, cfg *p2p.Config) {
		if i == 0 {
			cfg.Handlers = offers([]byte("an offer"))
		} else {
			cfg.Mode = p2p.ModeClient
		}
	})
	nodes[0].Announce([]string{"any"})
	find(t, nodes[1], "any", nodes[0].ID())
	if got, err := nodes[1].FetchOffers(soon(t), nodes[0].ID()); err != nil || len(got) != 1 {
		t.Errorf("got %d offers, %v", len(got), err)
	}
}

func TestARigThatNobodyReachesFromOutsideIsAskedByThoseWhoKnowItsAddress(t *testing.T) {
	nodes := p2ptest.Join(t, 2, func(i int, cfg *p2p.Config) {
		cfg.Mode = p2p.ModeClient // it serves no DHT
		if i == 0 {
			cfg.Handlers = offers([]byte("an offer"))
		}
	})
	if err := nodes[1].Ready(soon(t)); err != nil {
		t.Fatal(err)
	}
	find(t, nodes[1], "any", nodes[0].ID())
	if h := nodes[1].Health(); !h.Ready || h.TableSize != 0 {
		t.Errorf("the agent's health is %+v", h)
	}
	if got, err := nodes[1].FetchOffers(soon(t), nodes[0].ID()); err != nil || len(got) != 1 {
		t.Errorf("got %d offers, %v", len(got), err)
	}
}

func TestALeaseStreamCarriesMessagesBothWaysUntilItIsClosed(t *testing.T) {
	closed := make(chan error, 1)
	nodes := p2ptest.Join(t, 2, func(i int, cfg *p2p.Config) {
		cfg.Handlers = map[p2p.Protocol]p2p.Handler{p2p.LeaseProtocol: func(ctx context.Context, s *p2p.Stream) error {
			m, err := s.Receive(ctx)
			if err != nil {
				return err
			}
			if err := s.Send(ctx, market.AckMessage{Seq: m.(market.AckMessage).Seq + 1}); err != nil {
				return err
			}
			_, err = s.Receive(ctx)
			closed <- err
			return nil
		}}
	})
	s, err := nodes[1].Open(soon(t), nodes[0].ID(), p2p.LeaseProtocol)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(soon(t), market.AckMessage{Seq: 1}); err != nil {
		t.Fatal(err)
	}
	m, err := s.Receive(soon(t))
	if err != nil || m != market.Message(market.AckMessage{Seq: 2}) || s.Peer() != nodes[0].ID() {
		t.Fatalf("got %v, %v from %s", m, err, s.Peer().Short())
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-closed; !errors.Is(err, io.EOF) {
		t.Errorf("the rig saw %v, want io.EOF", err)
	}
}

func TestARefusalArrivesAsTheErrorItWas(t *testing.T) {
	refused := market.NewError(market.CodeTooFewSlots, "has", "1", "wanted", "2")
	nodes := p2ptest.Join(t, 2, func(i int, cfg *p2p.Config) {
		cfg.Handlers = map[p2p.Protocol]p2p.Handler{p2p.LeaseProtocol: func(ctx context.Context, s *p2p.Stream) error {
			if _, err := s.Receive(ctx); err != nil {
				return err
			}
			return refused
		}}
	})
	s, err := nodes[1].Open(soon(t), nodes[0].ID(), p2p.LeaseProtocol)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Send(soon(t), market.Hello{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Receive(soon(t)); !errors.Is(err, refused) || err.Error() != refused.Error() {
		t.Errorf("got %v, want %v", err, refused)
	}
	if _, err := nodes[1].FetchOffers(soon(t), nodes[0].ID()); market.CodeOf(err) != market.CodeUnsupported {
		t.Errorf("a protocol without handler: %v, want code unsupported", err)
	}
}

func TestARigThatSendsTooMuchIsRefusedWhole(t *testing.T) {
	flood := func(ctx context.Context, s *p2p.Stream) error {
		for {
			if err := s.Send(ctx, market.OfferMessage{Offer: []byte("x")}); err != nil {
				return err
			}
		}
	}
	for name, h := range map[string]p2p.Handler{
		"offers without end": flood,
		"an offer too large": func(ctx context.Context, s *p2p.Stream) error {
			return s.Send(ctx, market.OfferMessage{Offer: make([]byte, market.MaxOffer+1)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := p2ptest.Join(t, 2, func(_ int, cfg *p2p.Config) {
				cfg.Handlers = map[p2p.Protocol]p2p.Handler{p2p.OffersProtocol: h}
			})
			if _, err := nodes[1].FetchOffers(soon(t), nodes[0].ID()); market.CodeOf(err) != market.CodeTooLarge {
				t.Errorf("got %v, want code too_large", err)
			}
		})
	}
}

func TestTooManyStreamsOfOnePeerAreRefusedOnTheWire(t *testing.T) {
	nodes := p2ptest.Join(t, 2, func(_ int, cfg *p2p.Config) {
		cfg.Handlers = offers()
		cfg.Limits = map[p2p.Protocol]p2p.Limit{p2p.OffersProtocol: {Streams: 8, PerPeer: 8, Rate: 0.001, Burst: 2}}
	})
	for range 2 {
		if _, err := nodes[1].FetchOffers(soon(t), nodes[0].ID()); err != nil {
			t.Fatalf("within the limit: %v", err)
		}
	}
	if _, err := nodes[1].FetchOffers(soon(t), nodes[0].ID()); market.CodeOf(err) != market.CodeTooMany {
		t.Errorf("got %v, want code too_many", err)
	}
}

// nobody returns an address at which nothing listens.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return "/ip4/127.0.0.1/tcp/" + port + "/p2p/" + market.KeyOf(p2ptest.Key(t)).String()
}

func TestANodeThatCannotJoinSaysWhy(t *testing.T) {
	dead := nobody(t)
	other := p2ptest.Join(t, 1, nil)[0]
	for name, c := range map[string]struct {
		bootstrap []string
		want      string
	}{
		"no bootstrap":                  {nil, "no bootstrap peer is configured"},
		"a bootstrap that is down":      {[]string{dead}, "does not answer"},
		"two that are down":             {[]string{dead, nobody(t)}, "none of the 2 bootstrap peers answers"},
		"a bootstrap of another market": {other.Addrs(), "none knows network"},
	} {
		t.Run(name, func(t *testing.T) {
			n := p2ptest.Start(t, p2p.Config{Key: p2ptest.Key(t), Network: p2ptest.Network(t), Bootstrap: c.bootstrap})
			for ctx := soon(t); ctx.Err() == nil; {
				ask, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
				err := n.Ready(ask)
				cancel()
				if market.CodeOf(err) != market.CodeNoPeers {
					t.Fatalf("got %v, want code no_peers", err)
				}
				if hint := market.Explain(err).Hint; strings.Contains(hint, c.want) {
					if h := n.Health(); h.Ready || !strings.Contains(h.Reason, c.want) {
						t.Errorf("health is %+v", h)
					}
					return
				}
			}
			t.Fatalf("the reason never became %q", c.want)
		})
	}
}

func TestAPeerThatIsOffIsUnreachable(t *testing.T) {
	nodes := p2ptest.Join(t, 2, nil)
	gone := market.KeyOf(p2ptest.Key(t))
	_, err := nodes[0].Open(soon(t), gone, p2p.LeaseProtocol)
	var coded *market.Error
	if !errors.As(err, &coded) || coded.Code != market.CodeUnreachable || coded.Arg("peer") != gone.String() {
		t.Errorf("got %v, want that %s is unreachable", err, gone.Short())
	}
}

func TestARigThatMovedIsReachedAtItsNewAddress(t *testing.T) {
	nodes := p2ptest.Join(t, 2, nil)
	cfg := p2p.Config{
		Key: p2ptest.Key(t), Network: nodes[0].Network(), Mode: p2p.ModeServer,
		Bootstrap: nodes[0].Addrs(), Handlers: offers([]byte("an offer")),
	}
	first, err := p2p.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(soon(t))
	done := make(chan error, 1)
	go func() { done <- first.Run(ctx) }()
	first.Announce([]string{"any"})
	find(t, nodes[1], "any", first.ID())
	if _, err := nodes[1].FetchOffers(soon(t), first.ID()); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	second := p2ptest.Start(t, cfg)
	if err := second.Ready(soon(t)); err != nil {
		t.Fatal(err)
	}
	for ctx := soon(t); ; {
		_, err := nodes[1].FetchOffers(ctx, second.ID())
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("the rig is not reached again: %v", err)
		}
	}
}

func TestPeersShowWhoIsConnected(t *testing.T) {
	nodes := p2ptest.Join(t, 2, func(i int, cfg *p2p.Config) { cfg.Agent = "test\x1b[2J/1.0" })
	peers := nodes[1].Peers()
	if len(peers) != 1 {
		t.Fatalf("%d peers, want 1", len(peers))
	}
	p := peers[0]
	if p.Key != nodes[0].ID() || p.Agent != "test[2J/1.0" || p.Inbound || p.Relayed || p.Since.IsZero() || len(p.Addrs) == 0 {
		t.Errorf("got %+v", p)
	}
	if addrs := nodes[0].Addrs(); len(addrs) != 2 || !strings.HasSuffix(addrs[0], "/p2p/"+nodes[0].ID().String()) {
		t.Errorf("addresses are %q", addrs)
	}
}

func TestStoppingANodeEndsItsStreamsAtOnce(t *testing.T) {
	inside := make(chan struct{})
	cfg := p2p.Config{Key: p2ptest.Key(t), Network: p2ptest.Network(t), Mode: p2p.ModeServer, Handlers: map[p2p.Protocol]p2p.Handler{
		p2p.TunnelProtocol: func(ctx context.Context, s *p2p.Stream) error {
			if _, err := s.Receive(ctx); err != nil {
				return err
			}
			close(inside)
			_, err := s.Receive(ctx)
			return err
		},
	}}
	rig, err := p2p.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(soon(t))
	done := make(chan error, 1)
	go func() { done <- rig.Run(ctx) }()
	agent := p2ptest.Start(t, p2p.Config{Key: p2ptest.Key(t), Network: cfg.Network, Bootstrap: rig.Addrs()})
	if err := agent.Ready(soon(t)); err != nil {
		t.Fatal(err)
	}
	s, err := agent.Open(soon(t), rig.ID(), p2p.TunnelProtocol)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Send(soon(t), market.TunnelRequest{Kind: "log"}); err != nil {
		t.Fatal(err)
	}
	<-inside
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := s.Receive(soon(t)); market.CodeOf(err) != market.CodeUnreachable {
		t.Errorf("the renter saw %v, want code unreachable", err)
	}
	if err := rig.Run(soon(t)); err == nil {
		t.Error("a node ran twice")
	}
}
