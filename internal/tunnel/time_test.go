package tunnel_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"haggle/internal/tunnel"
)

func TestASilentPathIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFar(t, tunnel.ServerConfig{Handlers: only(echoHandler)})
		defer f.close(t)
		lost := make(chan time.Time, 9)
		c, err := tunnel.Dial(t.Context(), tunnel.Config{Open: f.open, Request: tunnel.Request{Kind: "raw"}, Notify: func(s tunnel.State) {
			if !s.Connected {
				lost <- time.Now()
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour) // an idle path stays
		if len(lost) > 0 || len(f.conns) != 1 {
			t.Fatalf("an idle path was lost; %d paths", len(f.conns))
		}
		start := time.Now()
		f.conns[0].swallow()
		_, _ = c.Write([]byte("hi"))
		if _, err := io.ReadFull(c, make([]byte, 2)); err != nil {
			t.Error(err)
		}
		if took := (<-lost).Sub(start); took < 10*time.Second || took > 20*time.Second {
			t.Errorf("noticed after %s", took)
		}
		_ = c.Close()
	})
}

func TestTheDiallerTriesAgainUntilItsPatienceIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		f := newFar(t, tunnel.ServerConfig{Handlers: only(func(ctx context.Context, _ json.RawMessage, c *tunnel.Channel) error {
			<-ctx.Done()
			_, err := c.Read(make([]byte, 1))
			ended <- err
			return nil
		})})
		defer f.close(t)
		var tries []time.Duration
		var start time.Time
		c := dial(t, func(ctx context.Context) (tunnel.Conn, error) {
			if start.IsZero() {
				start = time.Now()
				return f.open(ctx)
			}
			tries = append(tries, time.Since(start))
			return nil, errors.New("no way")
		})
		_ = f.conns[0].Close()
		_, err := c.Read(make([]byte, 1))
		if err == nil || !strings.Contains(err.Error(), "no way") || !strings.Contains(err.Error(), "15m") {
			t.Errorf("error %v", err)
		}
		if took := time.Since(start); took < 15*time.Minute || took > 15*time.Minute+time.Second {
			t.Errorf("gave up after %s", took)
		}
		want := []time.Duration{100, 300, 700, 1500, 3100, 6300, 11300, 16300}
		for i := range want {
			want[i] *= time.Millisecond
		}
		if !slices.Equal(tries[:8], want) {
			t.Errorf("tries at %v", tries[:8])
		}
		var told *tunnel.Error
		if err := <-ended; !errors.As(err, &told) || told.Code != tunnel.CodeGone {
			t.Errorf("the handler's end: %v", err)
		}
		_ = c.Close()
	})
}

func TestAnOpenersLastWordEndsTheChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFar(t, tunnel.ServerConfig{Handlers: only(echoHandler)})
		defer f.close(t)
		n := 0
		c := dial(t, func(ctx context.Context) (tunnel.Conn, error) {
			switch n++; n {
			case 1:
				return f.open(ctx)
			case 2:
				return nil, &tunnel.Error{Code: tunnel.CodeTooMany}
			}
			return nil, &tunnel.Error{Code: tunnel.CodeGone, Message: "the lease is over"}
		})
		_ = f.conns[0].Close()
		_, err := c.Read(make([]byte, 1))
		if err == nil || err.Error() != "the lease is over" || n != 3 {
			t.Errorf("after %d tries: %v", n, err)
		}
		_ = c.Close()
	})
}

func TestAFlappingPathIsNotReopenedInALoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFar(t, tunnel.ServerConfig{Handlers: only(echoHandler)})
		defer f.close(t)
		var mu sync.Mutex
		n := 0
		c := dial(t, func(ctx context.Context) (tunnel.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			n++
			near, away := memPair(-1, -1, false)
			if n > 1 {
				near, away = memPair(-1, 70, true) // greets, and breaks
			}
			f.serve(ctx, away)
			if n == 1 {
				go func() { <-time.After(time.Second); _ = near.Close() }()
			}
			return near, nil
		})
		<-time.After(time.Minute)
		mu.Lock()
		if n < 5 || n > 25 {
			t.Errorf("%d paths in a minute", n)
		}
		mu.Unlock()
		_ = c.Close()
	})
}

func TestAServerForgetsAfterItsPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFar(t, tunnel.ServerConfig{Handlers: only(echoHandler), Patience: time.Minute})
		defer f.close(t)
		var mu sync.Mutex
		asleep := false
		c := dial(t, func(ctx context.Context) (tunnel.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			if asleep {
				return nil, errors.New("asleep")
			}
			return f.open(ctx)
		})
		set := func(to bool) { mu.Lock(); asleep = to; mu.Unlock() }
		set(true)
		_ = f.conns[0].Close()
		<-time.After(50 * time.Second)
		set(false)
		_, _ = c.Write([]byte("hi"))
		if _, err := io.ReadFull(c, make([]byte, 2)); err != nil {
			t.Fatal(err)
		}
		set(true)
		_ = f.conns[1].Close()
		<-time.After(2 * time.Minute)
		set(false)
		_, err := c.Read(make([]byte, 1))
		var told *tunnel.Error
		if !errors.As(err, &told) || told.Code != tunnel.CodeGone {
			t.Errorf("error %v", err)
		}
		_ = c.Close()
	})
}

func TestAServersCloseEndsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFar(t, tunnel.ServerConfig{Handlers: only(func(ctx context.Context, _ json.RawMessage, _ *tunnel.Channel) error {
			<-ctx.Done()
			return nil
		})})
		attached, detached := dial(t, f.open), dial(t, f.open)
		f.conns[1].swallow()
		loris, other := memPair(-1, -1, false)
		f.serve(t.Context(), other)
		synctest.Wait()
		start := time.Now()
		f.close(t)
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("took %s", took)
		}
		for _, c := range []*tunnel.Channel{attached, detached} {
			_, err := c.Read(make([]byte, 1))
			var told *tunnel.Error
			if !errors.As(err, &told) || told.Code != tunnel.CodeGone {
				t.Errorf("error %v", err)
			}
			_ = c.Close()
		}
		if _, err := io.ReadAll(loris); err != nil {
			t.Error(err)
		}
	})
}

func TestAChannelThatTheOtherSideClosedNeedsNoPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFar(t, tunnel.ServerConfig{Handlers: only(func(_ context.Context, _ json.RawMessage, c *tunnel.Channel) error {
			_, err := c.Write([]byte("bye"))
			return err
		})})
		defer f.close(t)
		c := dial(t, f.open)
		<-time.After(time.Minute)
		if got, err := io.ReadAll(c); string(got) != "bye" || err != nil {
			t.Errorf("read %q, %v", got, err)
		}
		if len(f.conns) != 1 {
			t.Errorf("%d paths", len(f.conns))
		}
		_ = c.Close()
	})
}
