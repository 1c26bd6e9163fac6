package tunnel_test

import (
	"bytes"
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"haggle/internal/tunnel"
)

// blob is a connection that brings fixed bytes and takes all.
type blob struct{ io.Reader }

func (blob) Write(p []byte) (int, error) { return len(p), nil }
func (blob) CloseWrite() error           { return nil }
func (blob) Close() error                { return nil }

// FuzzServer plays bytes to a server as one path: it must neither fall nor hang.
func FuzzServer(f *testing.F) {
	f.Add(hello(1, ""))
	f.Add(bytes.Join([][]byte{hello(1, ""), frame(1, []byte("hello")), ack(5, 1<<20), frame(3, nil), ack(6, 1<<20), frame(4, nil)}, nil))
	f.Add(bytes.Join([][]byte{hello(1, ""), frame(5, []byte(`{"code":"gone"}`))}, nil))
	f.Add(bytes.Join([][]byte{hello(1, ""), frame(3, []byte(`{"code":"failed","message":"x"}`))}, nil))
	f.Add(hello(1, `,"resume":true`))
	f.Fuzz(func(t *testing.T, text []byte) { synctest.Test(t, func(t *testing.T) { playServer(t, text) }) })
}

func playServer(t *testing.T, text []byte) {
	s, err := tunnel.NewServer(tunnel.ServerConfig{Handlers: only(echoHandler), Patience: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Serve(t.Context(), blob{bytes.NewReader(text)})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// FuzzDialler plays bytes to a dialler as one path.
func FuzzDialler(f *testing.F) {
	ok := greeting(`{"received":0,"limit":1000}`)
	f.Add(ok)
	f.Add(bytes.Join([][]byte{ok, frame(1, []byte("hello")), ack(2, 1<<20), frame(3, nil), frame(4, nil)}, nil))
	f.Add(greeting(`{"error":{"code":"refused","message":"no"}}`))
	f.Fuzz(func(t *testing.T, text []byte) { synctest.Test(t, func(t *testing.T) { playDialler(t, text) }) })
}

func playDialler(t *testing.T, text []byte) {
	opened := false
	c, err := tunnel.Dial(t.Context(), tunnel.Config{Request: tunnel.Request{Kind: "raw"}, Open: func(context.Context) (tunnel.Conn, error) {
		if opened {
			return nil, &tunnel.Error{Code: tunnel.CodeGone}
		}
		opened = true
		return blob{bytes.NewReader(text)}, nil
	}})
	if err != nil {
		return
	}
	_, _ = c.Write([]byte("hi"))
	got, _ := io.ReadAll(c)
	if len(got) > len(text) {
		t.Errorf("%d bytes came from %d", len(got), len(text))
	}
	_ = c.Close()
}
