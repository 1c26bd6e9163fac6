package tunnel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"haggle/internal/tunnel"
)

var _ net.Conn = (*tunnel.Channel)(nil)

func TestCarriesBytesBothWaysAndKeepsHalfClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFar(t, tunnel.ServerConfig{Handlers: only(echoHandler)})
		defer f.close(t)
		c := dial(t, f.open)
		want := bytes.Repeat([]byte("0123456789abcdef"), 40_000)
		go func() {
			_, _ = c.Write(want)
			_ = c.CloseWrite()
		}()
		got, err := io.ReadAll(c)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got %d bytes, %v", len(got), err)
		}
		if _, err := c.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("write after CloseWrite: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("read after Close: %v", err)
		}
	})
}

func TestTellsAHandlersErrorAfterItsBytes(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want tunnel.Error
	}{
		{"an error of ours", &tunnel.Error{Code: tunnel.CodeNoSuchPort, Message: "nothing listens on 80"}, tunnel.Error{Code: "no_such_port", Message: "nothing listens on 80"}},
		{"any other error", errors.New("disk full"), tunnel.Error{Code: "failed", Message: "disk full"}},
		{"a long error", errors.New(strings.Repeat("x", 5000)), tunnel.Error{Code: "failed", Message: strings.Repeat("x", 1024)}},
		{"an error that escapes to many bytes", errors.New(strings.Repeat("\x01", 5000)), tunnel.Error{Code: "failed", Message: strings.Repeat("\x01", 1024)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFar(t, tunnel.ServerConfig{Handlers: only(func(_ context.Context, args json.RawMessage, c *tunnel.Channel) error {
					_, _ = c.Write([]byte("partial"))
					return tt.err
				})})
				defer f.close(t)
				c := dial(t, f.open)
				got, err := io.ReadAll(c)
				var told *tunnel.Error
				if string(got) != "partial" || !errors.As(err, &told) || *told != tt.want {
					t.Errorf("read %q, %v", got, err)
				}
				synctest.Wait()
				if _, err := c.Write([]byte("x")); !errors.As(err, &told) {
					t.Errorf("write: %v", err)
				}
				_ = c.Close()
			})
		})
	}
}

func TestPassesTheArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan string, 1)
		f := newFar(t, tunnel.ServerConfig{Handlers: map[string]tunnel.Handler{
			tunnel.KindDial: func(_ context.Context, args json.RawMessage, _ *tunnel.Channel) error {
				got <- string(args)
				return nil
			},
		}})
		defer f.close(t)
		c, err := tunnel.Dial(t.Context(), tunnel.Config{
			Open: f.open, Request: tunnel.Request{Kind: tunnel.KindDial, Args: json.RawMessage(`{"port":80}`)},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if args := <-got; args != `{"port":80}` {
			t.Errorf("arguments %s", args)
		}
		if c.RemoteAddr().Network() != "tunnel" || !strings.HasPrefix(c.LocalAddr().String(), "dial/") {
			t.Errorf("addresses %v, %v", c.LocalAddr(), c.RemoteAddr())
		}
	})
}

func TestRefusesToDial(t *testing.T) {
	refused := errors.New("no route")
	f := newFar(t, tunnel.ServerConfig{Handlers: only(echoHandler)})
	defer f.close(t)
	for _, tt := range []struct {
		name string
		cfg  tunnel.Config
		is   error
		code string
	}{
		{name: "without an opener"},
		{name: "with too many arguments", cfg: tunnel.Config{Open: f.open, Request: tunnel.Request{Args: make([]byte, tunnel.MaxArgs+1)}}},
		{name: "where the first path fails", cfg: tunnel.Config{Open: func(context.Context) (tunnel.Conn, error) { return nil, refused }}, is: refused},
		{name: "a kind that is not served", cfg: tunnel.Config{Open: f.open, Request: tunnel.Request{Kind: "nosuch"}}, code: tunnel.CodeUnknownKind},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tunnel.Dial(t.Context(), tt.cfg)
			var told *tunnel.Error
			if err == nil || tt.is != nil && !errors.Is(err, tt.is) || tt.code != "" && (!errors.As(err, &told) || told.Code != tt.code) {
				t.Errorf("error %v", err)
			}
		})
	}
	t.Run("after the context's end", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		near, _ := memPair(-1, -1, false)
		_, err := tunnel.Dial(ctx, tunnel.Config{Open: func(context.Context) (tunnel.Conn, error) { return near, nil }})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}

func TestTheDiallersContextEndsNothingLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFar(t, tunnel.ServerConfig{Handlers: only(echoHandler)})
		defer f.close(t)
		ctx, cancel := context.WithCancel(t.Context())
		c, err := tunnel.Dial(ctx, tunnel.Config{Open: f.open, Request: tunnel.Request{Kind: "raw"}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		cancel()
		synctest.Wait()
		_, _ = c.Write([]byte("hi"))
		if _, err := io.ReadFull(c, make([]byte, 2)); err != nil {
			t.Error(err)
		}
	})
}

func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFar(t, tunnel.ServerConfig{Handlers: only(func(ctx context.Context, _ json.RawMessage, c *tunnel.Channel) error {
			<-ctx.Done()
			return nil
		})})
		defer f.close(t)
		c := dial(t, f.open)
		defer c.Close()
		timedOut := func(what string, err error) {
			t.Helper()
			var timeout net.Error
			if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Errorf("%s: %v", what, err)
			}
		}
		start := time.Now()
		_ = c.SetReadDeadline(start.Add(3 * time.Second))
		_, err := c.Read(make([]byte, 1))
		timedOut("read", err)
		_ = c.SetWriteDeadline(time.Now().Add(2 * time.Second))
		n, err := c.Write(make([]byte, 64<<20)) // nobody reads
		timedOut("write", err)
		if n == 0 || n > 4<<20 {
			t.Errorf("%d bytes went into two windows of 1 MiB", n)
		}
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("took %s", took)
		}
		_ = c.SetDeadline(time.Now().Add(-1))
		_, err = c.Read(make([]byte, 1))
		timedOut("read later", err)
		_ = c.SetDeadline(time.Time{})
		go func() { _ = c.SetReadDeadline(time.Unix(1, 0)) }() // as programs do to interrupt
		_, err = c.Read(make([]byte, 1))
		timedOut("interrupted read", err)
	})
}

func TestCloseDelivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan int, 1)
		f := newFar(t, tunnel.ServerConfig{Handlers: only(func(_ context.Context, _ json.RawMessage, c *tunnel.Channel) error {
			b, err := io.ReadAll(c)
			got <- len(b)
			return err
		})})
		defer f.close(t)
		c := dial(t, f.open)
		_, _ = c.Write(make([]byte, 900_000))
		_ = f.conns[0].Close() // with most of it on the way
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if n := <-got; n != 900_000 {
			t.Errorf("%d bytes arrived", n)
		}
	})
}

func TestCloseGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFar(t, tunnel.ServerConfig{Handlers: only(func(ctx context.Context, _ json.RawMessage, c *tunnel.Channel) error {
			<-ctx.Done()
			return nil
		})})
		defer f.close(t)
		paths := 0
		c := dial(t, func(ctx context.Context) (tunnel.Conn, error) {
			if paths++; paths > 1 {
				return nil, errors.New("no way")
			}
			return f.open(ctx)
		})
		synctest.Wait()
		f.conns[0].swallow()
		_, _ = c.Write(make([]byte, 1000))
		start := time.Now()
		if err := c.Close(); err == nil || !strings.Contains(err.Error(), "1000 bytes") {
			t.Errorf("close: %v", err)
		}
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestAHandlersBytesWaitForADiallerThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFar(t, tunnel.ServerConfig{Handlers: only(func(_ context.Context, _ json.RawMessage, c *tunnel.Channel) error {
			_, _ = io.ReadFull(c, make([]byte, 1)) // the path is lost now
			_, _ = c.Write(make([]byte, 500_000))
			return &tunnel.Error{Code: "exit", Message: "3"}
		})})
		defer f.close(t)
		var mu sync.Mutex
		away := false
		c := dial(t, func(ctx context.Context) (tunnel.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			if away {
				return nil, errors.New("asleep")
			}
			return f.open(ctx)
		})
		_, _ = c.Write([]byte("x"))
		mu.Lock()
		away = true
		mu.Unlock()
		_ = f.conns[0].Close()
		<-time.After(10 * time.Minute)
		mu.Lock()
		away = false
		mu.Unlock()
		got, err := io.ReadAll(c)
		var told *tunnel.Error
		if len(got) != 500_000 || !errors.As(err, &told) || told.Code != "exit" {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		_ = c.Close()
	})
}

func TestASlowReaderHoldsNobodyElseUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFar(t, tunnel.ServerConfig{Handlers: map[string]tunnel.Handler{
			"raw":  echoHandler,
			"mute": func(ctx context.Context, _ json.RawMessage, _ *tunnel.Channel) error { <-ctx.Done(); return nil },
		}})
		defer f.close(t)
		slow, err := tunnel.Dial(t.Context(), tunnel.Config{Open: f.open, Request: tunnel.Request{Kind: "mute"}})
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = slow.Write(make([]byte, 16<<20)) }()
		synctest.Wait()
		fast := dial(t, f.open)
		_, _ = fast.Write([]byte("hi"))
		if _, err := io.ReadFull(fast, make([]byte, 2)); err != nil {
			t.Error(err)
		}
		_ = fast.Close()
		_ = slow.Close()
	})
}
