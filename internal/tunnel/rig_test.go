package tunnel_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"

	"haggle/internal/tunnel"
)

// unixPair is a connected pair of unix sockets.
func unixPair(tb testing.TB) (*net.UnixConn, *net.UnixConn) {
	tb.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		tb.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "pair")
		conn, err := net.FileConn(f)
		_ = f.Close()
		if err != nil {
			tb.Fatal(err)
		}
		ends[i] = conn.(*net.UnixConn)
		tb.Cleanup(func() { _ = conn.Close() })
	}
	return ends[0], ends[1]
}

var errCut = errors.New("the path was cut")

// wire is one direction of a connection in memory. A whole connection shares one lock.
type wire struct {
	mu    *sync.Mutex
	cond  *sync.Cond
	buf   []byte
	ended bool
	cut   *bool // of both directions
	left  int   // bytes until the cut; negative: none
	lossy bool  // a cut loses what is on the way
	hole  bool  // takes everything, brings nothing
}

type memConn struct{ in, out *wire }

// memPair is a connection in memory; after cutA bytes from the first end or cutB from the second it breaks.
func memPair(cutA, cutB int, lossy bool) (a, b *memConn) {
	mu, cut := new(sync.Mutex), new(bool)
	cond := sync.NewCond(mu)
	one := &wire{mu: mu, cond: cond, cut: cut, left: cutA, lossy: lossy}
	two := &wire{mu: mu, cond: cond, cut: cut, left: cutB, lossy: lossy}
	return &memConn{in: two, out: one}, &memConn{in: one, out: two}
}

func (c *memConn) Read(p []byte) (int, error) {
	w := c.in
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.buf) == 0 {
		switch {
		case *w.cut:
			return 0, errCut
		case w.ended && !w.hole:
			return 0, io.EOF
		}
		w.cond.Wait()
	}
	n := copy(p, w.buf)
	w.buf = w.buf[n:]
	w.cond.Broadcast()
	return n, nil
}

func (c *memConn) Write(p []byte) (n int, err error) {
	w := c.out
	w.mu.Lock()
	defer w.mu.Unlock()
	for n < len(p) {
		switch {
		case *w.cut, w.ended:
			return n, errCut
		case w.hole:
			return len(p), nil
		case len(w.buf) >= 64<<10:
			w.cond.Wait()
			continue
		}
		k := min(len(p)-n, 64<<10-len(w.buf))
		if w.left >= 0 {
			k = min(k, w.left)
			w.left -= k
		}
		w.buf = append(w.buf, p[n:n+k]...)
		n += k
		if w.left == 0 {
			c.breakBoth()
		}
		w.cond.Broadcast()
	}
	return n, nil
}

func (c *memConn) breakBoth() {
	*c.out.cut = true
	if c.out.lossy {
		c.in.buf, c.out.buf = nil, nil
	}
	c.out.cond.Broadcast()
}

// swallow makes the connection a black hole, both ways.
func (c *memConn) swallow() {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	c.in.hole, c.out.hole = true, true
	c.in.buf, c.out.buf = nil, nil
}

func (c *memConn) CloseWrite() error {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	c.out.ended = true
	c.out.cond.Broadcast()
	return nil
}

func (c *memConn) Close() error {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if !c.out.hole {
		c.out.ended = true
		c.in.ended = true
		c.in.buf = nil
	}
	if c.in.hole { // the near end knows of its close, the far one does not
		*c.in.cut = true
	}
	c.out.cond.Broadcast()
	return nil
}

// far is a server and an opener of paths to it.
type far struct {
	*tunnel.Server

	mu      sync.Mutex
	conns   []*memConn
	serving int
	idle    *sync.Cond
}

func newFar(tb testing.TB, cfg tunnel.ServerConfig) *far {
	tb.Helper()
	s, err := tunnel.NewServer(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	f := &far{Server: s}
	f.idle = sync.NewCond(&f.mu)
	return f
}

// serve serves a path in the background.
func (f *far) serve(ctx context.Context, conn tunnel.Conn) {
	f.count(1)
	go func() {
		defer f.count(-1)
		_ = f.Serve(context.WithoutCancel(ctx), conn)
	}()
}

// open is an Opener over unbroken connections in memory.
func (f *far) open(ctx context.Context) (tunnel.Conn, error) {
	near, away := memPair(-1, -1, false)
	f.mu.Lock()
	f.conns = append(f.conns, near)
	f.mu.Unlock()
	f.serve(ctx, away)
	return near, nil
}

// close ends the server and waits for all paths.
func (f *far) close(tb testing.TB) {
	tb.Helper()
	if err := f.Close(); err != nil {
		tb.Error(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.serving > 0 {
		f.idle.Wait()
	}
}

func (f *far) count(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.serving += n
	f.idle.Broadcast()
}

// only makes handlers of one.
func only(h tunnel.Handler) map[string]tunnel.Handler { return map[string]tunnel.Handler{"raw": h} }

func dial(tb testing.TB, open tunnel.Opener) *tunnel.Channel {
	tb.Helper()
	return dialWindow(tb, open, 0)
}

func dialWindow(tb testing.TB, open tunnel.Opener, window int) *tunnel.Channel {
	tb.Helper()
	c, err := tunnel.Dial(tb.Context(), tunnel.Config{Open: open, Request: tunnel.Request{Kind: "raw"}, Window: window})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// echoHandler sends back what comes, and its end.
func echoHandler(_ context.Context, _ json.RawMessage, c *tunnel.Channel) error {
	_, err := io.Copy(c, c)
	return err
}
