//go:build linux

package remote_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"haggle/runtime"
	"haggle/runtime/remote"
)

// entered serves an engine with a running job "a" and returns its client and its end.
func entered(t *testing.T, limits remote.Limits) (e *engine, c *remote.Client, socket string, end func()) {
	t.Helper()
	e, socket = newEngine(t), socketPath(t)
	end = serve(t, remote.Config{Socket: socket, Runtime: e, Limits: limits})
	c = dial(t, socket)
	if err := errors.Join(c.Create(within(t), e.spec("a", "stubborn")), c.Start(within(t), "a")); err != nil {
		t.Fatal(err)
	}
	return e, c, socket, end
}

// echo sends text over a path and wants it back.
func echo(c runtime.Conn, text string) error {
	if _, err := io.WriteString(c, text); err != nil {
		return err
	}
	back := make([]byte, len(text))
	if _, err := io.ReadFull(c, back); err != nil {
		return err
	}
	if string(back) != text {
		return errors.New("another text comes back")
	}
	return nil
}

const upgrade = "POST /v1/jobs/a/enter HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: haggle-path\r\n"

func TestNothingIsReadIntoWhatFollowsAnUpgrade(t *testing.T) {
	_, _, socket, _ := entered(t, remote.Limits{})
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	// What comes before the answer belongs to the path already, and another request is bytes like all others.
	garbage := "GET /v1/jobs HTTP/1.1\r\nHost: h\r\n\r\n" + strings.Repeat("\x00\xff", 3000)
	const answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: haggle-path\r\n\r\n"
	if _, err := io.WriteString(conn, upgrade+"\r\n"+garbage); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(answer)+len(garbage))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != answer+garbage {
		t.Errorf("%.200q: %v", got, err)
	}
	if err := conn.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(conn); err != nil || len(rest) > 0 {
		t.Errorf("behind the end come %q: %v", rest, err)
	}
}

func TestAPathIsAskedForInOneWayOnly(t *testing.T) {
	_, _, socket, _ := entered(t, remote.Limits{})
	for name, message := range map[string]string{
		"without an upgrade":   post("/v1/jobs/a/enter", ""),
		"another upgrade":      strings.Replace(upgrade, "haggle-path", "websocket", 1) + "\r\n",
		"with a body":          upgrade + "Content-Length: 1\r\n\r\nx",
		"with a body in parts": upgrade + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"another method":       strings.Replace(upgrade, "POST", "GET", 1) + "\r\n",
		"of a path":            strings.Replace(upgrade, "/a/", "/..%2f..%2fetc/", 1) + "\r\n",
		"of nobody":            strings.Replace(upgrade, "/a/", "/nobody/", 1) + "\r\n",
	} {
		if status, body := raw(t, socket, message); status == http.StatusSwitchingProtocols || status == http.StatusOK || status == 0 {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
}

func TestPathsAreBoundedByThemselves(t *testing.T) {
	_, c, _, _ := entered(t, remote.Limits{Connections: 8})
	var open []runtime.Conn
	refused := 0
	for range 2000 {
		p, err := c.Enter(within(t), "a")
		switch {
		case err == nil:
			open = append(open, p)
		case errors.Is(err, runtime.ErrUnavailable):
			refused++
		default:
			t.Fatal(err)
		}
	}
	if len(open) != 1024 || refused != 976 {
		t.Errorf("%d are open, %d were refused", len(open), refused)
	}
	if _, err := c.Status(within(t), "a"); err != nil {
		t.Errorf("a call beside them: %v", err)
	}
	for _, p := range []runtime.Conn{open[0], open[len(open)-1]} {
		if err := echo(p, "hello"); err != nil {
			t.Error(err)
		}
	}
	for _, p := range open {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	await(t, "room for all of them again", func() bool {
		var again []runtime.Conn
		for range 1024 {
			p, err := c.Enter(within(t), "a")
			if err != nil {
				break
			}
			again = append(again, p)
		}
		for _, p := range again {
			_ = p.Close()
		}
		return len(again) == 1024
	})
}

func TestAClientThatNeverReadsHoldsUpNobody(t *testing.T) {
	e, c, _, end := entered(t, remote.Limits{})
	const enough, tooMuch = 256 << 10, 4 << 20 // of bytes that wait for a reader
	var sent atomic.Int64
	stuck := make(chan struct{})
	e.Door = func(_ string, c runtime.Conn) {
		defer close(stuck)
		for block := make([]byte, 64<<10); sent.Load() < tooMuch; {
			if _, err := c.Write(block); err != nil {
				return
			}
			sent.Add(int64(len(block)))
		}
	}
	if _, err := c.Enter(within(t), "a"); err != nil {
		t.Fatal(err)
	}
	await(t, "the path is filled", func() bool { return sent.Load() >= enough })
	if _, err := c.Status(within(t), "a"); err != nil {
		t.Errorf("a call beside it: %v", err)
	}
	end() // which fails the test if the helper does not end
	<-stuck
	if n := sent.Load(); n >= tooMuch {
		t.Errorf("%d bytes wait for a client that never reads", n)
	}
}

func TestAPathOutlivesTheCallThatOpenedIt(t *testing.T) {
	_, c, _, end := entered(t, remote.Limits{})
	ctx, cancel := context.WithCancel(within(t))
	p, err := c.Enter(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := echo(p, "hello"); err != nil {
		t.Error(err)
	}
	end()
	if n, err := p.Read(make([]byte, 1)); err == nil {
		t.Errorf("without a helper the path gives %d bytes", n)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestAPathEndsWithItsClient(t *testing.T) {
	_, _, socket, _ := entered(t, remote.Limits{})
	c := remote.Dial(t.Context(), socket)
	p, err := c.Enter(within(t), "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := p.Read(make([]byte, 1)); err == nil {
		t.Errorf("it gives %d bytes", n)
	}
}

func TestAnEnterThatItsCallerGaveUpEndsInTheEngine(t *testing.T) {
	e, c, _, _ := entered(t, remote.Limits{Paths: 1})
	asked, given := make(chan struct{}), make(chan struct{})
	e.enter = func(ctx context.Context) (runtime.Conn, error) {
		close(asked)
		<-ctx.Done()
		close(given)
		return nil, ctx.Err()
	}
	ctx, cancel := context.WithCancel(within(t))
	go func() { <-asked; cancel() }()
	if _, err := c.Enter(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	select {
	case <-given:
	case <-within(t).Done():
		t.Fatal("the engine goes on")
	}
	e.enter = nil
	await(t, "its place among the paths", func() bool {
		p, err := c.Enter(within(t), "a")
		return err == nil && p.Close() == nil
	})
}
