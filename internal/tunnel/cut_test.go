package tunnel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"haggle/internal/tunnel"

	"pgregory.net/rapid"
)

// ordeal is a network that cuts paths, replays greetings and doubles paths.
type ordeal struct {
	far    *far
	cutMax int // each path breaks within so many bytes
	cuts   int // so many paths break, then they hold

	mu     sync.Mutex
	rng    *rand.Rand
	opened bool
}

func (o *ordeal) open(ctx context.Context) (tunnel.Conn, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	cutA, cutB := -1, -1
	if o.cuts > 0 {
		o.cuts--
		cutA, cutB = 1+o.rng.IntN(o.cutMax), 1+o.rng.IntN(o.cutMax)
	}
	if !o.opened && cutA > 0 { // the first greetings must pass: their error is Dial's
		cutA, cutB = cutA+500, cutB+500
	}
	near, away := memPair(cutA, cutB, o.opened && o.rng.IntN(2) == 0)
	o.opened = true
	late := o.rng.IntN(3) == 0
	o.far.serve(ctx, away)
	return &recorder{memConn: near, replay: func(hello []byte) {
		if late { // the same greeting comes once more, over another path
			again, other := memPair(-1, -1, false)
			o.far.serve(ctx, other)
			_, _ = again.Write(hello)
			_ = again.CloseWrite()
		}
	}}, nil
}

// recorder hands the first write to replay when the connection closes.
type recorder struct {
	*memConn
	first  []byte
	once   sync.Once
	replay func([]byte)
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.first == nil {
		r.first = bytes.Clone(p)
	}
	return r.memConn.Write(p)
}

func (r *recorder) Close() error {
	r.once.Do(func() { r.replay(r.first) })
	return r.memConn.Close()
}

// stream writes total bytes of a known sequence in pieces of random size, then the end.
func stream(rng *rand.Rand, c *tunnel.Channel, total int) error {
	text := sequence(total)
	for len(text) > 0 {
		n := min(len(text), 1+rng.IntN(1<<uint(rng.IntN(18))))
		var err error
		if rng.IntN(4) == 0 {
			_, err = c.ReadFrom(bytes.NewReader(text[:n]))
		} else {
			_, err = c.Write(text[:n])
		}
		if err != nil {
			return fmt.Errorf("write: %w", err)
		}
		text = text[n:]
	}
	return c.CloseWrite()
}

func sequence(n int) []byte {
	b := make([]byte, n)
	rng := rand.NewChaCha8([32]byte{})
	_, _ = rng.Read(b)
	return b
}

func expect(c *tunnel.Channel, total int) error {
	got, err := io.ReadAll(io.LimitReader(c, int64(total/2))) // by Read
	if err == nil {
		var rest bytes.Buffer
		_, err = c.WriteTo(&rest)
		got = append(got, rest.Bytes()...)
	}
	if err != nil {
		return fmt.Errorf("read after %d bytes: %w", len(got), err)
	}
	if !bytes.Equal(got, sequence(total)) {
		return fmt.Errorf("got %d bytes, want %d, or others", len(got), total)
	}
	return nil
}

func TestEveryByteComesOnceAndInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		up := rapid.IntRange(0, 600_000).Draw(rt, "up")
		down := rapid.IntRange(0, 600_000).Draw(rt, "down")
		cutMax := rapid.SampledFrom([]int{50, 700, 9_000, 150_000, 1_000_000}).Draw(rt, "cut within")
		cuts := rapid.IntRange(0, 30).Draw(rt, "cuts")
		window := rapid.SampledFrom([]int{1, 64 << 10, 1 << 20}).Draw(rt, "window")
		var failed error
		synctest.Test(t, func(t *testing.T) {
			failed = endure(t, seed, up, down, cutMax, cuts, window)
		})
		if failed != nil {
			rt.Fatal(failed)
		}
	})
}

func endure(t *testing.T, seed uint64, up, down, cutMax, cuts, window int) error {
	ends := make(chan error, 2)
	f := newFar(t, tunnel.ServerConfig{Handlers: only(func(_ context.Context, _ json.RawMessage, c *tunnel.Channel) error {
		written := make(chan error, 1)
		go func() { written <- stream(rand.New(rand.NewPCG(seed, 2)), c, down) }()
		ends <- errors.Join(expect(c, up), <-written)
		return nil
	})})
	defer f.close(t)
	o := &ordeal{far: f, cutMax: cutMax, cuts: cuts, rng: rand.New(rand.NewPCG(seed, 1))}
	c := dialWindow(t, o.open, window)
	go func() { ends <- stream(rand.New(rand.NewPCG(seed, 3)), c, up) }()
	return errors.Join(expect(c, down), <-ends, <-ends, c.Close())
}

func TestAPathIsTakenOverFromAHalfDeadOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFar(t, tunnel.ServerConfig{Handlers: only(echoHandler)})
		defer f.close(t)
		var states []tunnel.State
		c, err := tunnel.Dial(t.Context(), tunnel.Config{
			Open: f.open, Request: tunnel.Request{Kind: "raw"}, Notify: func(s tunnel.State) { states = append(states, s) },
		})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write([]byte("one"))
		_, _ = io.ReadFull(c, make([]byte, 3))
		near := f.conns[0] // breaks here; the server hears nothing of it
		near.in.mu.Lock()
		*near.in.cut, near.in.ended = true, true
		near.in.cond.Broadcast()
		near.in.mu.Unlock()
		_, _ = c.Write([]byte("two"))
		if _, err := io.ReadFull(c, make([]byte, 3)); err != nil {
			t.Error(err)
		}
		if len(states) != 2 || states[0].Connected || states[0].Err == nil || !states[1].Connected {
			t.Errorf("states %v", states)
		}
		_ = c.Close()
	})
}

func TestManyChannelsOverUnixSocketsSurviveCuts(t *testing.T) {
	const channels, total, cutAt = 16, 3 << 20, 700_000
	f := newFar(t, tunnel.ServerConfig{Handlers: only(echoHandler)})
	defer f.close(t)
	ends := make(chan error, channels)
	for range channels {
		go func() { ends <- echoThroughCuts(t, f, total, cutAt) }()
	}
	for range channels {
		if err := <-ends; err != nil {
			t.Error(err)
		}
	}
}

func echoThroughCuts(t *testing.T, f *far, total, cutAt int) error {
	paths := make(chan tunnel.Conn, 100)
	c, err := tunnel.Dial(t.Context(), tunnel.Config{Request: tunnel.Request{Kind: "raw"}, Open: func(ctx context.Context) (tunnel.Conn, error) {
		near, away := unixPair(t)
		f.serve(ctx, away)
		paths <- near
		return near, nil
	}})
	if err != nil {
		return err
	}
	written := make(chan error, 1)
	go func() { written <- stream(rand.New(rand.NewPCG(1, 1)), c, total) }()
	got := make([]byte, total)
	for n := 0; n < total; {
		k, err := io.ReadFull(c, got[n:min(n+cutAt, total)])
		if err != nil {
			return err
		}
		if n += k; n < total/2 {
			_ = (<-paths).Close()
		}
	}
	if !bytes.Equal(got, sequence(total)) {
		return errors.New("other bytes")
	}
	return errors.Join(<-written, c.Close())
}
