package tunnel_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"haggle/internal/tunnel"
)

// greeting is the bytes of a greeting with this JSON.
func greeting(text string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte("hgt\x01"), uint32(len(text))), text...)
}

func hello(id int, rest string) []byte {
	return greeting(fmt.Sprintf(`{"id":"%032x","try":1,"request":{"kind":"raw"},"window":65536,"limit":65536%s}`, id, rest))
}

// frame is the bytes of a frame.
func frame(kind byte, payload []byte) []byte {
	n := len(payload)
	return append([]byte{kind, byte(n >> 16), byte(n >> 8), byte(n)}, payload...)
}

func ack(received, limit uint64) []byte {
	return frame(2, binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, received), limit))
}

// say opens a path, writes all, and returns what comes until the path's end as text.
func (f *far) say(t *testing.T, parts ...[]byte) string {
	t.Helper()
	near, away := memPair(-1, -1, false)
	f.serve(t.Context(), away)
	for _, part := range parts {
		_, _ = near.Write(part)
	}
	got, _ := io.ReadAll(near)
	return string(got)
}

func TestHostileDiallers(t *testing.T) {
	mute := func(ctx context.Context, _ json.RawMessage, _ *tunnel.Channel) error { <-ctx.Done(); return nil }
	block := make([]byte, 64<<10)
	for _, tt := range []struct {
		name  string
		parts [][]byte
		want  string // in what comes back
	}{
		{"another protocol", [][]byte{[]byte("GET / HTTP/1.1\r\n\r\n")}, "does not speak"},
		{"another version", [][]byte{[]byte("hgt\x02\x00\x00\x00\x02{}")}, "version 2"},
		{"a long greeting", [][]byte{[]byte("hgt\x01\xff\xff\xff\xff")}, "longer than"},
		{"no JSON", [][]byte{greeting("{")}, "bad_request"},
		{"a short id", [][]byte{greeting(`{"id":"00","try":1}`)}, "16 bytes"},
		{"no attempt", [][]byte{greeting(fmt.Sprintf(`{"id":"%032x"}`, 1))}, "from one"},
		{"long arguments", [][]byte{greeting(fmt.Sprintf(`{"id":"%032x","try":1,"request":{"kind":"raw","args":"%s"}}`, 1, strings.Repeat("x", tunnel.MaxArgs)))}, "too long"},
		{"an unknown kind", [][]byte{greeting(fmt.Sprintf(`{"id":"%032x","try":1,"request":{"kind":"x"}}`, 1))}, "unknown_kind"},
		{"a channel that has received before", [][]byte{hello(1, `,"received":5`)}, "received nothing"},
		{"an unknown channel", [][]byte{hello(1, `,"resume":true`)}, "gone"},
		{"a stream without regard to the window", [][]byte{hello(1, ""), frame(1, block), frame(1, block)}, "window"},
		{"an ack for bytes never sent", [][]byte{hello(1, ""), ack(1, 1)}, "not sent"},
		{"an ack at the end of all numbers", [][]byte{hello(1, ""), ack(1<<64-1, 1<<64-1)}, "not sent"},
		{"a frame of an unknown kind", [][]byte{hello(1, ""), frame(9, nil)}, "kind 9"},
		{"an empty frame of data", [][]byte{hello(1, ""), frame(1, nil)}, "kind 1"},
		{"a frame that is too long", [][]byte{hello(1, ""), {1, 0xff, 0xff, 0xff}}, "kind 1"},
		{"a short ack", [][]byte{hello(1, ""), frame(2, make([]byte, 8))}, "kind 2"},
		{"a stop before the end", [][]byte{hello(1, ""), frame(4, nil)}, "out of turn"},
		{"two ends", [][]byte{hello(1, ""), frame(3, nil), frame(3, nil)}, "second end"},
		{"data after the end", [][]byte{hello(1, ""), frame(3, nil), frame(1, []byte("x"))}, "after the end"},
		{"a reason that is no JSON", [][]byte{hello(1, ""), frame(3, []byte("x"))}, "no JSON"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFar(t, tunnel.ServerConfig{Handlers: only(mute)})
				defer f.close(t)
				got := f.say(t, tt.parts...)
				if !strings.Contains(got, tt.want) {
					t.Errorf("answer %q", got)
				}
			})
		})
	}
}

func TestResumesAtNoOffsetThatIsNotHeld(t *testing.T) {
	for _, tt := range []struct {
		name     string
		try      int
		received int
		want     string
	}{
		{"in the past", 2, 0, "no longer held"},
		{"in the future", 2, 101, "never sent"},
		{"with an old attempt", 1, 50, "newer path"},
		{"where it is", 2, 50, `"received":0`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFar(t, tunnel.ServerConfig{Handlers: only(func(ctx context.Context, _ json.RawMessage, c *tunnel.Channel) error {
					_, err := c.Write(make([]byte, 100))
					<-ctx.Done()
					return err
				})})
				defer f.close(t)
				first, away := memPair(-1, -1, false)
				f.serve(t.Context(), away)
				_, _ = first.Write(hello(1, ""))
				synctest.Wait()
				_, _ = first.Write(ack(50, 65536))
				synctest.Wait()
				second, away := memPair(-1, -1, false)
				f.serve(t.Context(), away)
				_, _ = second.Write(greeting(fmt.Sprintf(`{"id":"%032x","resume":true,"try":%d,"received":%d}`, 1, tt.try, tt.received)))
				got, _ := io.ReadAll(second)
				if !strings.Contains(string(got), tt.want) {
					t.Errorf("answer %q", got)
				}
			})
		})
	}
}

func TestAHugeWindowIsCutToOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written atomic.Int64
		f := newFar(t, tunnel.ServerConfig{Handlers: only(func(_ context.Context, _ json.RawMessage, c *tunnel.Channel) error {
			for {
				n, err := c.Write(make([]byte, 1<<20))
				written.Add(int64(n))
				if err != nil {
					return err
				}
			}
		})})
		defer f.close(t)
		near, away := memPair(-1, -1, false)
		f.serve(t.Context(), away)
		_, _ = near.Write(greeting(fmt.Sprintf(
			`{"id":"%032x","try":1,"request":{"kind":"raw"},"window":18446744073709551615,"limit":18446744073709551615}`, 1)))
		go func() { _, _ = io.Copy(io.Discard, near) }() // and never an ack
		synctest.Wait()
		if n := written.Load(); n > tunnel.MaxWindow {
			t.Errorf("%d bytes are held", n)
		}
	})
}

func TestTenThousandChannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int64
		f := newFar(t, tunnel.ServerConfig{Handlers: only(func(ctx context.Context, _ json.RawMessage, _ *tunnel.Channel) error {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			<-ctx.Done()
			return nil
		})})
		defer f.close(t)
		kept := dial(t, f.open)
		for i := range 10_000 {
			near, away := memPair(-1, -1, false)
			f.serve(t.Context(), away)
			_, _ = near.Write(hello(i, ""))
			_ = near.CloseWrite()
			if i%10 == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		if n := most.Load(); n > 128 {
			t.Errorf("%d handlers ran at once", n)
		}
		if n := running.Load(); n != 64 {
			t.Errorf("%d handlers run", n)
		}
		_, _ = kept.Write([]byte("x")) // one with a path is never dropped
		_ = kept.SetReadDeadline(time.Now().Add(time.Second))
		var told *tunnel.Error
		if _, err := kept.Read(make([]byte, 1)); errors.As(err, &told) {
			t.Error(err)
		}
		_ = kept.Close()
	})
}

func TestRefusesAnotherChannelWhereAllHavePaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFar(t, tunnel.ServerConfig{Handlers: only(echoHandler), MaxChannels: 2})
		defer f.close(t)
		one, two := dial(t, f.open), dial(t, f.open)
		_, err := tunnel.Dial(t.Context(), tunnel.Config{Open: f.open, Request: tunnel.Request{Kind: "raw"}})
		var told *tunnel.Error
		if !errors.As(err, &told) || told.Code != tunnel.CodeTooMany {
			t.Errorf("error %v", err)
		}
		_ = one.Close()
		synctest.Wait()
		three := dial(t, f.open)
		_ = two.Close()
		_ = three.Close()
	})
}

func TestASlowGreetingIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFar(t, tunnel.ServerConfig{Handlers: only(echoHandler)})
		defer f.close(t)
		near, away := memPair(-1, -1, false)
		f.serve(t.Context(), away)
		start := time.Now()
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			for _, b := range hello(1, "") {
				<-time.After(time.Second)
				if _, err := near.Write([]byte{b}); err != nil {
					return
				}
			}
		}()
		_, _ = io.ReadAll(near)
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("took %s", took)
		}
		<-gone
	})
}

// TestHostileServers plays a server's bytes to a dialler.
func TestHostileServers(t *testing.T) {
	ok := greeting(`{"received":0,"limit":1000}`)
	for _, tt := range []struct {
		name string
		text [][]byte
		want string
	}{
		{"silence", nil, "no answer came in time"},
		{"another protocol", [][]byte{[]byte("SSH-2.0-x\r\n")}, "does not speak"},
		{"an answer ahead of the stream", [][]byte{greeting(`{"received":7}`)}, "never sent"},
		{"a refusal with a long text", [][]byte{greeting(`{"error":{"code":"refused","message":"` + strings.Repeat("no", 9000) + `"}}`)}, "nono"},
		{"a stream without regard to the window", [][]byte{ok, frame(1, make([]byte, 65536)), frame(1, make([]byte, 65536))}, "window"},
		{"an ack ahead of the stream", [][]byte{ok, ack(9, 0)}, "not sent"},
		{"a reset without a reason", [][]byte{ok, frame(5, nil)}, "ended the channel"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, away := memPair(-1, -1, false)
				defer away.Close()
				go func() {
					for _, part := range tt.text {
						_, _ = away.Write(part)
					}
				}()
				go func() { _, _ = io.Copy(io.Discard, away) }()
				opened := false
				c, err := tunnel.Dial(t.Context(), tunnel.Config{Window: 65536, Request: tunnel.Request{Kind: "raw"}, Open: func(context.Context) (tunnel.Conn, error) {
					if opened {
						return nil, &tunnel.Error{Code: tunnel.CodeGone, Message: "a second path was asked for"}
					}
					opened = true
					return near, nil
				}})
				if err == nil {
					_, err = io.ReadAll(c)
					_ = c.Close()
				}
				if err == nil || !strings.Contains(err.Error(), tt.want) || len(err.Error()) > 2000 {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}
