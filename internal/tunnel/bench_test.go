package tunnel_test

import (
	"context"
	"encoding/json"
	"io"
	"syscall"
	"testing"

	"haggle/internal/tunnel"
)

// bulk moves blocks of 64 KiB one way.
func bulk(b *testing.B, w io.Writer, r io.Reader) {
	block := make([]byte, 64<<10)
	b.SetBytes(int64(len(block)))
	b.ReportAllocs()
	b.ResetTimer()
	start := cpu()
	done := make(chan error, 1)
	go func() {
		buf := make([]byte, 64<<10)
		left := int64(b.N) * int64(len(block))
		for left > 0 {
			n, err := r.Read(buf)
			left -= int64(n)
			if err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for range b.N {
		if _, err := w.Write(block); err != nil {
			b.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(cpu()-start)/float64(b.N), "cpu-ns/op")
}

// cpu is the time in ns that the process has worked: on a busy machine it tells more than the clock.
func cpu() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}

// echo sends 64 bytes there and back.
func echo(b *testing.B, c io.ReadWriter) {
	buf := make([]byte, 64)
	b.ReportAllocs()
	start := cpu()
	for range b.N {
		if _, err := c.Write(buf); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, buf); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpu()-start)/float64(b.N), "cpu-ns/op")
}

func echoing(c io.ReadWriter) {
	buf := make([]byte, 64<<10)
	for {
		n, err := c.Read(buf)
		if n > 0 {
			_, _ = c.Write(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// pair is a channel over a unix socket pair, and its other end.
func pair(tb testing.TB, window int) (*tunnel.Channel, *tunnel.Channel) {
	tb.Helper()
	ends := make(chan *tunnel.Channel, 1)
	server, err := tunnel.NewServer(tunnel.ServerConfig{Handlers: map[string]tunnel.Handler{
		"raw": func(ctx context.Context, _ json.RawMessage, c *tunnel.Channel) error {
			ends <- c
			<-ctx.Done()
			return nil
		},
	}})
	if err != nil {
		tb.Fatal(err)
	}
	open := func(ctx context.Context) (tunnel.Conn, error) {
		a, z := unixPair(tb)
		go func() { _ = server.Serve(context.WithoutCancel(ctx), z) }()
		return a, nil
	}
	c, err := tunnel.Dial(tb.Context(), tunnel.Config{Open: open, Request: tunnel.Request{Kind: "raw"}, Window: window})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := server.Close(); err != nil {
			tb.Error(err)
		}
		_ = c.Close()
	})
	return c, <-ends
}

func BenchmarkBulkBare(b *testing.B) {
	a, z := unixPair(b)
	bulk(b, a, z)
}

func BenchmarkBulkChannel(b *testing.B) {
	a, z := pair(b, 0)
	bulk(b, a, z)
}

func BenchmarkBulkNarrowChannel(b *testing.B) {
	a, z := pair(b, 256<<10)
	bulk(b, a, z)
}

func BenchmarkBulkBackChannel(b *testing.B) {
	a, z := pair(b, 0)
	bulk(b, z, a)
}

func BenchmarkEchoBare(b *testing.B) {
	a, z := unixPair(b)
	go echoing(z)
	echo(b, a)
}

func BenchmarkEchoChannel(b *testing.B) {
	a, z := pair(b, 0)
	go echoing(z)
	echo(b, a)
}

func BenchmarkBulkRelay(b *testing.B) {
	a, x := unixPair(b)
	y, z := unixPair(b)
	go func() { _ = tunnel.Relay(b.Context(), x, y) }()
	bulk(b, a, z)
}

// BenchmarkBulkForward is what a forwarded port does: a relay between a socket and a channel at either end.
func BenchmarkBulkForward(b *testing.B) {
	a, x := unixPair(b)
	y, z := unixPair(b)
	near, away := pair(b, 0)
	go func() { _ = tunnel.Relay(b.Context(), x, near) }()
	go func() { _ = tunnel.Relay(b.Context(), away, y) }()
	bulk(b, a, z)
}

// BenchmarkBulkForwardBare is the same with a bare path.
func BenchmarkBulkForwardBare(b *testing.B) {
	a, x := unixPair(b)
	y, z := unixPair(b)
	near, away := unixPair(b)
	go func() { _ = tunnel.Relay(b.Context(), x, near) }()
	go func() { _ = tunnel.Relay(b.Context(), away, y) }()
	bulk(b, a, z)
}
