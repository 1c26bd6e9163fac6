package api_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haggle/internal/api"
	"haggle/internal/tunnel"
	"haggle/internal/view"
	"haggle/market"
)

// socketPair returns both ends of a connection that can be closed by halves.
func socketPair(t *testing.T) (tunnel.Conn, tunnel.Conn) {
	t.Helper()
	path := newConfig(t).Socket
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	l := listenUnix(t, path)
	got := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			got <- c
		}
		close(got)
	}()
	a, err := new(net.Dialer).DialContext(t.Context(), "unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b := <-got
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return a.(*net.UnixConn), b.(*net.UnixConn)
}

func TestATunnelCarriesBytesBothWaysAndClosesByHalves(t *testing.T) {
	here, job := socketPair(t)
	f := &fakeAgent{tunnel: here}
	c, _ := serveAgent(t, f)
	conn, err := c.Tunnel(t.Context(), "cafe")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	data := strings.Repeat("bytes", 100_000)
	go func() {
		_, _ = io.WriteString(conn, data)
		_ = conn.CloseWrite()
	}()
	if got, err := io.ReadAll(job); err != nil || string(got) != data {
		t.Errorf("%d bytes arrived, %v", len(got), err)
	}
	go func() {
		_, _ = io.WriteString(job, "answer")
		_ = job.Close()
	}()
	if got, err := io.ReadAll(conn); err != nil || string(got) != "answer" {
		t.Errorf("%q came back, %v", got, err)
	}
}

func TestATunnelThatIsRefusedSaysWhy(t *testing.T) {
	f := &fakeAgent{err: market.NewError(market.CodeNoDoor, "state", "granted")}
	c, _ := serveAgent(t, f)
	if _, err := c.Tunnel(t.Context(), "cafe"); !errors.Is(err, f.err) {
		t.Errorf("the error is %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Tunnel(ctx, "cafe"); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if _, err := api.DialAgent(newConfig(t).Socket).Tunnel(t.Context(), "cafe"); !errors.Is(err, api.ErrNotRunning) {
		t.Errorf("without an agent the error is %v", err)
	}
}

func TestBytesThatComeWithTheRequestOfATunnelAreNotLost(t *testing.T) {
	here, job := socketPair(t)
	_, config := serveAgent(t, &fakeAgent{tunnel: here})
	conn, err := new(net.Dialer).DialContext(t.Context(), "unix", config.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = io.WriteString(conn, "GET /v1/leases/cafe/tunnel HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: haggle-tunnel\r\n\r\nearly")
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(job, got); err != nil || string(got) != "early" {
		t.Errorf("%q arrived, %v", got, err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols || answer.Header.Get("Haggle-Version") != "1.2.3" {
		t.Errorf("the answer is %+v, %v", answer, err)
	}
}

func TestTheEndOfTheServerEndsItsTunnels(t *testing.T) {
	here, job := socketPair(t)
	config := newConfig(t)
	stop := serve(t, api.NewAgentServer(config, &fakeAgent{tunnel: here}))
	conn, err := api.DialAgent(config.Socket).Tunnel(t.Context(), "cafe")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stop()
	if _, err := io.ReadAll(job); err != nil {
		t.Errorf("the job's end: %v", err)
	}
	if n, _ := io.Copy(io.Discard, conn); n != 0 {
		t.Errorf("%d bytes came at the end", n)
	}
}

func TestTooManyTunnelsAreRefused(t *testing.T) {
	here, _ := socketPair(t) // one for all: nothing comes from it
	f := &fakeAgent{tunnel: here}
	c, _ := serveAgent(t, f)
	for range 256 {
		conn, err := c.Tunnel(t.Context(), "cafe")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	_, err := c.Tunnel(t.Context(), "cafe")
	if market.CodeOf(err) != market.CodeTooManyTunnels {
		t.Errorf("the error is %v", err)
	}
}

func TestACopyTellsItsProgressAndItsEnd(t *testing.T) {
	f := &fakeAgent{copying: func(_ context.Context, progress func(view.Progress)) error {
		progress(view.Progress{Files: 2, FilesDone: 1, Current: "a\nb"})
		return market.NewError(market.CodeFileNoSpace, "path", "a")
	}}
	c, _ := serveAgent(t, f)
	var told []view.Progress
	_, err := c.Copy(t.Context(), "cafe", view.CopyRequest{From: "a", To: "/b"}, func(p view.Progress) { told = append(told, p) })
	if market.CodeOf(err) != market.CodeFileNoSpace || market.Public(err).Arg("path") != "a" || len(told) != 1 || told[0].Current != "a\nb" {
		t.Errorf("%v after %+v", err, told)
	}
}

func TestACopyThatFailsAtOnceHasItsStatus(t *testing.T) {
	f := &fakeAgent{copying: func(context.Context, func(view.Progress)) error {
		return market.NewError(market.CodeLeaseUnknown, "lease", "cafe")
	}}
	_, config := serveAgent(t, f)
	r := request(t.Context(), t, "POST", "/v1/leases/cafe/copy", `{"push":true,"from":"/a","to":"b"}`)
	r.Header.Set("Content-Type", "application/json")
	answer, err := plain(t, config.Socket).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusNotFound || answer.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("status %d, %s", answer.StatusCode, answer.Header.Get("Content-Type"))
	}
}

func TestTheEndOfARequestEndsItsCopy(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	f := &fakeAgent{copying: func(ctx context.Context, progress func(view.Progress)) error {
		progress(view.Progress{})
		close(begun)
		<-ctx.Done()
		close(ended)
		return ctx.Err()
	}}
	c, _ := serveAgent(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	if _, err := c.Copy(ctx, "cafe", view.CopyRequest{From: "a", To: "/b"}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	<-ended
}
