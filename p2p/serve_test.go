package p2p_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"haggle/market"
	"haggle/p2p"
)

// pipe is one end of a stream in memory.
type pipe struct{ net.Conn }

func (p pipe) Reset() error { return p.Close() }

// SetReadDeadline works after the far end's close, as it does on libp2p's streams.
func (p pipe) SetReadDeadline(at time.Time) error {
	if err := p.Conn.SetReadDeadline(at); !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	return nil
}

func key(n byte) market.Key { return market.Key{n} }

// wide is a limit that no test meets by accident.
var wide = p2p.Limit{Streams: 100, PerPeer: 100}

// bench is a generic handler under test, in virtual time.
type bench struct {
	t     *testing.T
	serve func(context.Context, p2p.Wire, market.Key, bool)
	log   *bytes.Buffer
	ctx   context.Context
	done  sync.WaitGroup
}

func newBench(t *testing.T, l p2p.Limit, h p2p.Handler) *bench {
	b := &bench{t: t, log: new(bytes.Buffer)}
	log := slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	b.serve = p2p.NewServer(h, l, log)
	ctx, cancel := context.WithCancel(t.Context())
	b.ctx = ctx
	t.Cleanup(func() { cancel(); b.done.Wait() })
	return b
}

// dial opens a stream to the handler and returns its raw far end.
func (b *bench) dial(peer market.Key) net.Conn {
	near, far := net.Pipe()
	b.done.Go(func() { b.serve(b.ctx, pipe{near}, peer, false) })
	b.t.Cleanup(func() { _ = far.Close() })
	return far
}

// refusal reads what the handler says last.
func refusal(t *testing.T, conn net.Conn) error {
	t.Helper()
	_, err := p2p.NewStream(pipe{conn}, key(9), p2p.Limit{}).Receive(t.Context())
	return err
}

func write(conn net.Conn, data string) {
	go func() { _, _ = conn.Write([]byte(data)) }() // the handler may refuse to read all of it
}

func receive(ctx context.Context, s *p2p.Stream) error {
	_, err := s.Receive(ctx)
	return err
}

func TestHostileFramesAreRefusedWithACode(t *testing.T) {
	for name, c := range map[string]struct {
		bytes string
		want  market.Code
	}{
		"garbage":              {"\x05hello", market.CodeBadEncoding},
		"an oversized frame":   {"\xff\xff\x7f" + strings.Repeat("x", 1<<20), market.CodeTooLarge},
		"an unknown message":   {"\x04\x82\x18\xff\xa0", market.CodeUnexpected},
		"a frame without size": {"\x00", market.CodeBadEncoding},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, wide, receive)
				conn := b.dial(key(1))
				write(conn, c.bytes)
				if err := refusal(t, conn); market.CodeOf(err) != c.want {
					t.Errorf("got %v, want code %s", err, c.want)
				}
				b.done.Wait() // what is logged comes after what is sent
				if said := b.log.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "level=WARN") {
					t.Errorf("a peer's fault is told in one warning, and was in: %q", said)
				}
			})
		})
	}
}

func TestSlowPeersAreRefusedWithinTheirBound(t *testing.T) {
	twice := func(ctx context.Context, s *p2p.Stream) error {
		return errors.Join(receive(ctx, s), receive(ctx, s))
	}
	whole, err := p2p.EncodeFrame(market.EndMessage{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		start string
		drip  bool
		limit p2p.Limit
		want  time.Duration
	}{
		"a peer that says nothing":           {"", false, wide, 10 * time.Second},
		"half a first frame":                 {"\x05hel", false, wide, 10 * time.Second},
		"a first frame byte by byte":         {"\x7f", true, wide, 10 * time.Second},
		"half a second frame":                {string(whole) + "\x05hel", false, wide, 10 * time.Second},
		"a second frame byte by byte":        {string(whole) + "\x7f", true, wide, 10 * time.Second},
		"a peer that falls silent":           {string(whole), false, p2p.Limit{Streams: 1, PerPeer: 1, Idle: time.Minute}, time.Minute},
		"a peer that outstays its lifetime":  {string(whole), false, p2p.Limit{Streams: 1, PerPeer: 1, Lifetime: time.Hour}, time.Hour},
		"a short lifetime before any frame":  {"", false, p2p.Limit{Streams: 1, PerPeer: 1, Lifetime: time.Second}, time.Second},
		"an idle limit after the first wait": {"", false, p2p.Limit{Streams: 1, PerPeer: 1, Idle: time.Minute}, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, c.limit, twice)
				begin := time.Now()
				conn := b.dial(key(1))
				write(conn, c.start)
				if c.drip {
					drip(t.Context(), conn)
				}
				if err := refusal(t, conn); market.CodeOf(err) != market.CodeTooSlow {
					t.Errorf("got %v, want code too_slow", err)
				}
				if took := time.Since(begin); took != c.want {
					t.Errorf("refused after %s, want %s", took, c.want)
				}
			})
		})
	}
}

// drip writes a byte every three seconds until the other side closes.
func drip(ctx context.Context, conn net.Conn) {
	go func() {
		ticker := time.NewTicker(3 * time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				_, _ = conn.Write([]byte{1}) // fails once the other side has closed
			}
		}
	}()
}

func TestAPeerThatDoesNotReadIsGivenUpOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan error, 1)
		b := newBench(t, wide, func(ctx context.Context, s *p2p.Stream) error {
			begin := time.Now()
			err := s.Send(ctx, market.EndMessage{})
			if took := time.Since(begin); took != 10*time.Second {
				t.Errorf("gave up after %s, want 10s", took)
			}
			got <- err
			return err
		})
		b.dial(key(1))
		if err := <-got; market.CodeOf(err) != market.CodeTooSlow {
			t.Errorf("got %v, want code too_slow", err)
		}
	})
}

func TestOwnFaultsAreLoggedOnceAndToldAsInternal(t *testing.T) {
	for name, h := range map[string]p2p.Handler{
		"an error": func(context.Context, *p2p.Stream) error { return errors.New("the disk is full of /secret/paths") },
		"a panic":  func(context.Context, *p2p.Stream) error { panic("a bug with /secret/paths") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, wide, h)
				err := refusal(t, b.dial(key(1)))
				if market.CodeOf(err) != market.CodeInternal || strings.Contains(err.Error(), "secret") {
					t.Errorf("the peer was told %v", err)
				}
				synctest.Wait()
				if n := strings.Count(b.log.String(), "level=ERROR"); n != 1 || !strings.Contains(b.log.String(), "/secret/paths") {
					t.Errorf("logged %d errors: %s", n, b.log)
				}
			})
		})
	}
}

func TestStreamsOverTheLimitsAreRefused(t *testing.T) {
	hold := func(ctx context.Context, s *p2p.Stream) error {
		return errors.Join(receive(ctx, s), s.Send(ctx, market.EndMessage{}), receive(ctx, s))
	}
	frame, err := p2p.EncodeFrame(market.EndMessage{})
	if err != nil {
		t.Fatal(err)
	}
	open := func(t *testing.T, b *bench, peer market.Key) (net.Conn, error) {
		t.Helper()
		conn := b.dial(peer)
		write(conn, string(frame))
		return conn, refusal(t, conn) // nil: an EndMessage came
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, p2p.Limit{Streams: 3, PerPeer: 2, Rate: 1, Burst: 3}, hold)
		first, err := open(t, b, key(1))
		_, err2 := open(t, b, key(1))
		if err := errors.Join(err, err2); err != nil {
			t.Fatalf("within the limits: %v", err)
		}
		if _, err := open(t, b, key(1)); market.CodeOf(err) != market.CodeTooMany {
			t.Errorf("a third stream of one peer: %v", err)
		}
		if _, err := open(t, b, key(2)); err != nil {
			t.Errorf("another peer: %v", err)
		}
		if _, err := open(t, b, key(3)); err != nil {
			t.Errorf("a third peer, while one has two streams: %v", err)
		}
		if _, err := open(t, b, key(4)); market.CodeOf(err) != market.CodeTooMany || market.Public(err).Arg("after") != "1s" {
			t.Errorf("a fourth stream of all: %v", err)
		}
		_ = first.Close()
		synctest.Wait()
		if _, err := open(t, b, key(1)); market.CodeOf(err) != market.CodeTooMany || market.Public(err).Arg("after") != "1s" {
			t.Errorf("a fourth stream within a second: %v", err)
		}
		<-time.After(time.Second)
		if _, err := open(t, b, key(1)); err != nil {
			t.Errorf("after a pause: %v", err)
		}
	})
}

func TestAReceiveThatIsCalledOffLeavesTheStreamUsable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		s := p2p.NewStream(pipe{near}, key(1), p2p.Limit{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := s.Receive(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || market.CodeOf(err) != market.CodeTooSlow {
			t.Fatalf("got %v, want a deadline that is too_slow for people", err)
		}
		frame, err := p2p.EncodeFrame(market.AckMessage{Seq: 7})
		if err != nil {
			t.Fatal(err)
		}
		write(far, string(frame))
		if m, err := s.Receive(t.Context()); err != nil || m != market.Message(market.AckMessage{Seq: 7}) {
			t.Fatalf("got %v, %v", m, err)
		}
		_ = far.Close()
		if _, err := s.Receive(t.Context()); !errors.Is(err, io.EOF) {
			t.Fatalf("after a clean close: %v", err)
		}
	})
}

func TestManySendersNeverMixTheirFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const senders, each = 8, 20
		near, far := net.Pipe()
		sender, reader := p2p.NewStream(pipe{near}, key(1), wide), p2p.NewStream(pipe{far}, key(2), wide)
		for i := range senders {
			go func() {
				for range each {
					data := bytes.Repeat([]byte{byte(i)}, 1000)
					if err := sender.Send(t.Context(), market.ChunkMessage{Data: data}); err != nil {
						t.Error(err)
					}
				}
			}()
		}
		for range senders * each {
			m, err := reader.Receive(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			data := m.(market.ChunkMessage).Data
			if !bytes.Equal(data, bytes.Repeat(data[:1], 1000)) {
				t.Fatal("two frames were mixed")
			}
		}
		_ = sender.Close()
	})
}

func TestARelayedTunnelIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, wide, receive)
		near, far := net.Pipe()
		b.done.Go(func() { b.serve(b.ctx, pipe{near}, key(1), true) })
		if err := refusal(t, far); market.CodeOf(err) != market.CodeUnsupported {
			t.Errorf("got %v, want code unsupported", err)
		}
	})
}
