package api_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"haggle/internal/api"
	"haggle/internal/view"
	"haggle/market"
)

// pipeLog is a log that is written by hand; closed says that the server let go of it.
func pipeLog(t *testing.T) (*fakeAgent, *io.PipeWriter, <-chan struct{}) {
	t.Helper()
	r, w := io.Pipe()
	closed := make(chan struct{})
	return &fakeAgent{log: func(context.Context) io.ReadCloser { return &noting{r, closed} }}, w, closed
}

type noting struct {
	*io.PipeReader
	closed chan struct{}
}

func (n *noting) Close() error {
	select {
	case <-n.closed:
	default:
		close(n.closed)
	}
	return n.PipeReader.Close()
}

func TestALogIsFlushedAtOnce(t *testing.T) {
	f, w, _ := pipeLog(t)
	c, _ := serveAgent(t, f)
	r, err := c.Log(t.Context(), "cafe", 0, true) // returns before the first byte
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, part := range []string{"one", "two"} {
		if _, err := w.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 3)
		if _, err := io.ReadFull(r, got); err != nil || string(got) != part {
			t.Fatalf("read %q, %v", got, err)
		}
	}
	w.Close()
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
		t.Errorf("after the end: %q, %v", rest, err)
	}
}

func TestALogThatBreaksOffSaysWhy(t *testing.T) {
	f, w, _ := pipeLog(t)
	c, _ := serveAgent(t, f)
	r, err := c.Log(t.Context(), "cafe", 0, true)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		_, _ = w.Write([]byte("part"))
		w.CloseWithError(market.NewError(market.CodeNoLog, "lease", "c\nafé"))
	}()
	got, err := io.ReadAll(r)
	if string(got) != "part" || !errors.Is(err, market.NewError(market.CodeNoLog)) {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestALogWhoseServerEndsIsNotWhole(t *testing.T) {
	f, w, closed := pipeLog(t)
	config := newConfig(t)
	stop := serve(t, api.NewAgentServer(config, f))
	r, err := api.DialAgent(config.Socket).Log(t.Context(), "cafe", 0, true)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.Write([]byte("part")); err != nil {
		t.Fatal(err)
	}
	stop()
	if got, err := io.ReadAll(r); string(got) != "part" || !errors.Is(err, api.ErrLost) {
		t.Errorf("read %q, %v", got, err)
	}
	<-closed
}

func TestAClientThatLeavesFreesTheLog(t *testing.T) {
	f, _, closed := pipeLog(t)
	c, _ := serveAgent(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := c.Log(ctx, "cafe", 0, true)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cancel()
	<-closed
	if _, err := io.ReadAll(r); !errors.Is(err, context.Canceled) {
		t.Errorf("the reader ended with %v", err)
	}
}

func TestAClientThatLeavesCancelsItsRequest(t *testing.T) {
	f := &fakeAgent{left: make(chan struct{})}
	c, _ := serveAgent(t, f)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Bid(ctx, view.BidRequest{Image: "slow"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
	<-f.left
}

func TestAWatcherSeesThePresentAndThenEveryChange(t *testing.T) {
	f := &fakeAgent{changes: make(chan view.Lease), left: make(chan struct{})}
	c, _ := serveAgent(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	changes := c.WatchLease(ctx, "cafe")
	if l := <-changes; l.ID != "cafe" || l.State != "running" {
		t.Fatalf("first came %+v", l)
	}
	for _, l := range []view.Lease{lease("beef", "ended"), lease("cafe", "stopping"), lease("cafe", "ended")} {
		f.changes <- l
		if l.ID != "cafe" {
			continue // another lease is not told
		}
		if got := <-changes; got.ID != "cafe" || got.State != l.State {
			t.Fatalf("came %+v", got)
		}
	}
	cancel()
	<-f.left // the agent's Watch is told that nobody listens
	for range changes {
		t.Error("a change after the end")
	}
}

func TestAWatchOfAnUnknownLeaseEnds(t *testing.T) {
	f := &fakeAgent{left: make(chan struct{}), err: market.NewError(market.CodeLeaseUnknown, "lease", "x")}
	c, _ := serveAgent(t, f)
	for range c.WatchLease(t.Context(), "x") {
		t.Error("there is nothing to watch")
	}
}

func TestAnEventStreamBeats(t *testing.T) {
	f := &fakeAgent{changes: make(chan view.Lease), left: make(chan struct{})}
	config := newConfig(t)
	config.Heartbeat = time.Millisecond
	serve(t, api.NewAgentServer(config, f))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := plain(t, config.Socket).Do(request(ctx, t, "GET", "/v1/events?lease=cafe", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	want := "event: beat\ndata: {}\n\nevent: lease\n"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(r.Body, got); err != nil || string(got) != want {
		t.Fatalf("begins with %q, %v", got, err)
	}
	if err := skipTo(r.Body, "\n\nevent: beat\ndata: {}\n\nevent: beat\n"); err != nil {
		t.Error(err)
	}
}
