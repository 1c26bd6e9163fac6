package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"haggle/internal/api"
	"haggle/internal/tunnel"
	"haggle/internal/view"
	"haggle/market"
)

// fakeAgent answers with what it was given and notes every call.
type fakeAgent struct {
	mu      sync.Mutex
	calls   []string
	err     error
	log     func(ctx context.Context) io.ReadCloser
	changes chan view.Lease
	left    chan struct{} // closed when a Watch's context ended
	tunnel  tunnel.Conn   // what Tunnel returns
	copying func(ctx context.Context, progress func(view.Progress)) error
}

func (f *fakeAgent) note(format string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, fmt.Sprintf(format, args...))
	return f.err
}

// seen returns the calls since the last time it was asked.
func (f *fakeAgent) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := f.calls
	f.calls = nil
	return calls
}

func lease(id, state string) view.Lease {
	exit := int64(7)
	return view.Lease{
		ID: id, State: state, Rig: "rig-1", Model: "RTX_4090", Slots: 1, Args: []string{"train"}, Exit: &exit, Simulated: true,
		Price: view.MoneyOf(360_000, "USD"), Spent: view.MoneyOf(4100, "USD"), In: 7, Out: 8, DiskMB: 9, DiskUsed: 10, EndsBy: 11,
		Outcome: &view.Outcome{At: 5, DiskAt: 5, Cards: []market.CardWipe{{Index: 1, Bytes: 24 << 30}, {Index: 2, Why: "it is in use"}}},
	}
}

func offer(id string) view.Offer {
	return view.Offer{ID: id, Rig: "rig-1", Images: []string{"lab"}, Price: view.MoneyOf(360_000, "USD"), Simulated: true}
}

func (f *fakeAgent) Status(context.Context) (view.AgentStatus, error) {
	return view.AgentStatus{Version: "1.2.3", PID: 4, Network: view.Network{Name: "lab-x", Addrs: []string{"/ip4/127.0.0.1"}}}, f.note("status")
}

func (f *fakeAgent) Bid(ctx context.Context, b view.BidRequest) (view.Lease, error) {
	if b.Image == "slow" {
		<-ctx.Done()
		close(f.left)
		return view.Lease{}, ctx.Err()
	}
	text, _ := json.Marshal(b)
	return lease("cafe", "granted"), f.note("bid %s", text)
}

func (f *fakeAgent) Leases(_ context.Context, all bool) ([]view.Lease, error) {
	return []view.Lease{lease("cafe", "running")}, f.note("leases %t", all)
}

func (f *fakeAgent) Lease(_ context.Context, id string) (view.Lease, error) {
	return lease(id, "running"), f.note("lease %s", id)
}

func (f *fakeAgent) Stop(_ context.Context, id string, kill bool) (view.Lease, error) {
	return lease(id, "stopping"), f.note("stop %s %t", id, kill)
}

func (f *fakeAgent) Log(ctx context.Context, id string, offset int64, follow bool) (io.ReadCloser, error) {
	if err := f.note("log %s %d %t", id, offset, follow); err != nil {
		return nil, err
	}
	if f.log != nil {
		return f.log(ctx), nil
	}
	return io.NopCloser(strings.NewReader("bytes")), nil
}

func (f *fakeAgent) Receipts(_ context.Context, id string) ([]view.Receipt, error) {
	return nil, f.note("receipts %s", id)
}

func (f *fakeAgent) Evidence(_ context.Context, id string) ([]byte, error) {
	return []byte{0, 1, 0xff}, f.note("evidence %s", id)
}

func (f *fakeAgent) Peers(context.Context) ([]view.Peer, error) {
	return []view.Peer{{Key: "12D3", Agent: "haggled/1", Addrs: []string{}, LatencyMs: 0.5, Direction: "out"}}, f.note("peers")
}

func (f *fakeAgent) Watch(ctx context.Context) <-chan view.Lease {
	context.AfterFunc(ctx, func() { close(f.left) })
	return f.changes
}

func (f *fakeAgent) Tunnel(_ context.Context, id string) (tunnel.Conn, error) {
	if err := f.note("tunnel %s", id); err != nil {
		return nil, err
	}
	return f.tunnel, nil
}

func (f *fakeAgent) Copy(ctx context.Context, id string, r view.CopyRequest, progress func(view.Progress)) (view.CopyReport, error) {
	if f.copying != nil {
		return view.CopyReport{}, f.copying(ctx, progress)
	}
	return view.CopyReport{Files: 1, Digest: "d"}, f.note("copy %s %+v", id, r)
}

func (f *fakeAgent) Keep(_ context.Context, id string) (view.Lease, error) {
	return lease(id, "stopping"), f.note("keep %s", id)
}

func (f *fakeAgent) Resume(_ context.Context, id string) (view.Lease, error) {
	return lease(id, "preparing"), f.note("resume %s", id)
}

func (f *fakeAgent) Remove(_ context.Context, id string) (view.Lease, error) {
	return lease(id, "ended"), f.note("remove %s", id)
}

func (f *fakeAgent) Extend(_ context.Context, id string, r view.ExtendRequest) (view.Lease, error) {
	return lease(id, "running"), f.note("extend %s %+v", id, r)
}

func (f *fakeAgent) Rename(_ context.Context, id string, r view.NameRequest) (view.Lease, error) {
	return lease(id, "running"), f.note("name %s %+v", id, r)
}

func (f *fakeAgent) Checkpoints(_ context.Context, id string) ([]view.CheckpointInfo, error) {
	return nil, f.note("checkpoints %s", id)
}

func (f *fakeAgent) CheckpointNow(_ context.Context, id string) (view.CheckpointInfo, error) {
	return view.CheckpointInfo{Seq: 4, Where: "renter"}, f.note("checkpoint %s", id)
}

func (f *fakeAgent) Shutdown(_ context.Context, force bool) error {
	return f.note("shutdown %t", force)
}

// fakeRig is fakeAgent's counterpart.
type fakeRig struct{ fakeAgent }

func (f *fakeRig) Status(context.Context) (view.RigStatus, error) {
	return view.RigStatus{Name: "rig-1", Network: view.Network{Addrs: []string{}}, Prices: market.Prices{Currency: "USD", Slot: 5}}, f.note("status")
}

func (f *fakeRig) Cards(context.Context) ([]view.Card, error) {
	util := int64(97)
	return []view.Card{{Slot: 1, UUID: "SIM-1", UtilPercent: &util, Simulated: true}}, f.note("cards")
}

func (f *fakeRig) SetPrices(_ context.Context, p market.Prices) error { return f.note("prices %+v", p) }
func (f *fakeRig) Pause(context.Context) error                        { return f.note("pause") }
func (f *fakeRig) Resume(context.Context) error                       { return f.note("resume") }
func (f *fakeRig) Drain(_ context.Context, now bool) error            { return f.note("drain %t", now) }

func (f *fakeRig) TrustedOwners(context.Context) ([]view.Owner, error) {
	return []view.Owner{{Key: "12D3", Name: "Ada", Since: 5, Owes: view.MoneyOf(9, "USD")}}, f.note("trusted")
}

func (f *fakeRig) Trust(_ context.Context, owner market.Key, t view.Trust) error {
	text, _ := json.Marshal(t)
	return f.note("trust %s %s", owner, text)
}

func (f *fakeRig) Distrust(_ context.Context, owner market.Key) error {
	return f.note("distrust %s", owner)
}

func (f *fakeRig) Takeback(_ context.Context, card string, dryRun bool) (view.Takeback, error) {
	return view.Takeback{
		Slot: 1, UUID: "GPU-1", Model: "RTX_4090", Lease: "cafe", Slots: []int{0, 1}, NoticeMs: 120_000, Penalty: view.MoneyOf(7, "USD"),
	}, f.note("takeback %s %t", card, dryRun)
}

func (f *fakeRig) Giveback(_ context.Context, card string) error { return f.note("giveback %s", card) }

func (f *fakeRig) Shutdown(context.Context) error { return f.note("shutdown") }

// newConfig returns a socket in a fresh, short folder.
func newConfig(t *testing.T) api.Config {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "hg") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return api.Config{Socket: filepath.Join(dir, "run", "s"), Version: "1.2.3", Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
}

// serve runs a server until the test ends and wants it to end well. stop ends it before.
func serve(t *testing.T, s *api.Server) (stop context.CancelFunc) {
	t.Helper()
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return cancel
}

func serveAgent(t *testing.T, f *fakeAgent) (*api.AgentClient, api.Config) {
	t.Helper()
	if f.left == nil {
		f.left = make(chan struct{})
	}
	c := newConfig(t)
	serve(t, api.NewAgentServer(c, f))
	client := api.DialAgent(c.Socket)
	t.Cleanup(client.Close)
	return client, c
}

// plain returns an HTTP client for the socket, for requests that our own client would not send.
func plain(t *testing.T, socket string) *http.Client {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
