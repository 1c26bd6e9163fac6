//go:build linux

package remote_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"haggle/runtime"
	"haggle/runtime/archive"
	"haggle/runtime/remote"
	"haggle/runtime/runtimetest"
)

// BenchmarkEnter tells what a path over the helper costs beside a bare socket to the same echo: a round trip of 64 bytes, and a
// stream there and back.
func BenchmarkEnter(b *testing.B) {
	for name, open := range map[string]func(b *testing.B) runtime.Conn{"remote": remotePath, "socket": socketPathOf} {
		b.Run("trip/"+name, func(b *testing.B) {
			c := open(b)
			text := make([]byte, 64)
			for b.Loop() {
				if _, err := c.Write(text); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(c, text); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("stream/"+name, func(b *testing.B) {
			c := open(b)
			block := make([]byte, 128<<10)
			b.SetBytes(int64(len(block)))
			b.ResetTimer()
			go func() {
				for range b.N {
					if _, err := c.Write(block); err != nil {
						return
					}
				}
			}()
			if _, err := io.CopyN(io.Discard, c, int64(b.N)*int64(len(block))); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func remotePath(b *testing.B) runtime.Conn {
	b.Helper()
	fake := runtimetest.NewFake(map[string]runtimetest.Program{"probe": runtimetest.Probe})
	var packed bytes.Buffer
	if _, err := archive.Write(&packed, archive.Image{Entrypoint: []string{"probe"}}); err != nil {
		b.Fatal(err)
	}
	img, err := fake.Import(b.Context(), "probe", &packed)
	if err == nil {
		err = fake.Create(b.Context(), runtime.Spec{ID: "a", Image: img.Digest, Args: []string{"stubborn"}})
	}
	if err != nil {
		b.Fatal(err)
	}
	socket := filepath.Join(shortDir(b), "s")
	s, err := remote.NewServer(remote.Config{Socket: socket, Runtime: fake})
	if err == nil {
		err = s.Listen(b.Context())
	}
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	client := remote.Dial(b.Context(), socket)
	c, err := client.Enter(b.Context(), "a")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_, _ = c.Close(), client.Close()
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
		fake.Shutdown()
	})
	return c
}

// socketPathOf is a socket whose other end echoes.
func socketPathOf(b *testing.B) runtime.Conn {
	b.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(shortDir(b), "s"), Net: "unix"})
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		conn, err := l.AcceptUnix()
		if err != nil {
			return
		}
		// As a Relay copies: with a buffer of its own size and nothing cleverer.
		_, _ = io.CopyBuffer(struct{ io.Writer }{conn}, struct{ io.Reader }{conn}, make([]byte, 128<<10))
		_ = conn.Close()
	}()
	c, err := net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _, _ = c.Close(), l.Close() })
	return c
}

func shortDir(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp("/tmp", "hgrem") //nolint:usetesting // a socket's path must be short
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
