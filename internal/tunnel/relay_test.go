package tunnel_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"haggle/internal/tunnel"
)

func TestRelay(t *testing.T) {
	// A renter's end a, relayed from b to c, and the far end d.
	run := func(t *testing.T, f func(t *testing.T, a, d *memConn, cancel func(), ended <-chan error)) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			a, b := memPair(-1, -1, false)
			c, d := memPair(-1, -1, false)
			ended := make(chan error, 1)
			go func() { ended <- tunnel.Relay(ctx, b, c) }()
			f(t, a, d, cancel, ended)
		})
	}
	t.Run("an end in one direction leaves the other open", func(t *testing.T) {
		run(t, func(t *testing.T, a, d *memConn, _ func(), ended <-chan error) {
			want := bytes.Repeat([]byte("abc"), 100_000)
			go func() { _, _ = a.Write(want); _ = a.CloseWrite() }()
			if got, err := io.ReadAll(d); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%d bytes, %v", len(got), err)
			}
			go func() { _, _ = d.Write(want); _ = d.CloseWrite() }()
			if got, err := io.ReadAll(a); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("back: %d bytes, %v", len(got), err)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("the context's end closes both", func(t *testing.T) {
		run(t, func(t *testing.T, a, d *memConn, cancel func(), ended <-chan error) {
			synctest.Wait()
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			for _, end := range []*memConn{a, d} {
				if _, err := end.Read(make([]byte, 1)); err == nil {
					t.Error("an end is open")
				}
			}
		})
	})
	t.Run("a broken side closes the other", func(t *testing.T) {
		run(t, func(t *testing.T, a, d *memConn, _ func(), ended <-chan error) {
			a.out.mu.Lock()
			a.breakBoth()
			a.out.mu.Unlock()
			if err := <-ended; !errors.Is(err, errCut) {
				t.Error(err)
			}
			if _, err := d.Read(make([]byte, 1)); err == nil {
				t.Error("the far end is open")
			}
		})
	})
}
