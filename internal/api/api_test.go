package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haggle/internal/api"
	"haggle/internal/view"
	"haggle/market"
	"haggle/market/markettest"
)

// Both clients are what they are clients of.
var (
	_ api.Agent = (*api.AgentClient)(nil)
	_ api.Rig   = (*api.RigClient)(nil)
)

// step is one call of a client: what it returns, and what must have reached the other side.
type step struct {
	want string
	call func(ctx context.Context) (any, error)
	same any // nil where there is no answer
}

func of[T any](v T, err error) (any, error) { return v, err }

func only(err error) (any, error) { return nil, err }

func TestEveryOperationOfAnAgentArrivesAndComesBack(t *testing.T) {
	f := &fakeAgent{}
	c, _ := serveAgent(t, f)
	bid := view.BidRequest{Query: "dph<1", Image: "lab", Args: []string{"train", "a b"}, Env: []string{"A=1"}, GPUs: 2, DurationMs: 1, BudgetMicro: 1 << 50, Currency: "USD", UnattendedMs: 3}
	bid.Secrets, bid.Collect = []view.Secret{{Name: "token", Value: make([]byte, 48<<10)}}, []view.Collect{{Remote: "out", Local: "/home/out"}}
	bid.Checkpoint = &view.Checkpoint{Dir: "/work/ckpt", EveryMs: 9, To: []string{"renter"}}
	text, _ := json.Marshal(bid)
	files := view.CopyRequest{Push: true, From: "/a", To: "b", Delete: true, Ignore: true}
	status, _ := new(fakeAgent).Status(t.Context())
	peers, _ := new(fakeAgent).Peers(t.Context())
	run(t, f.seen, []step{
		{"status", func(ctx context.Context) (any, error) { return of(c.Status(ctx)) }, status},
		{"bid " + string(text), func(ctx context.Context) (any, error) { return of(c.Bid(ctx, bid)) }, lease("cafe", "granted")},
		{"leases true", func(ctx context.Context) (any, error) { return of(c.Leases(ctx, true)) }, []view.Lease{lease("cafe", "running")}},
		{"lease abc", func(ctx context.Context) (any, error) { return of(c.Lease(ctx, "abc")) }, lease("abc", "running")},
		{"stop abc true", func(ctx context.Context) (any, error) { return of(c.Stop(ctx, "abc", true)) }, lease("abc", "stopping")},
		{"keep a-name", func(ctx context.Context) (any, error) { return of(c.Keep(ctx, "a-name")) }, lease("a-name", "stopping")},
		{"resume abc", func(ctx context.Context) (any, error) { return of(c.Resume(ctx, "abc")) }, lease("abc", "preparing")},
		{"remove abc", func(ctx context.Context) (any, error) { return of(c.Remove(ctx, "abc")) }, lease("abc", "ended")},
		{"extend abc {DurationMs:5 BudgetMicro:6}", func(ctx context.Context) (any, error) {
			return of(c.Extend(ctx, "abc", view.ExtendRequest{DurationMs: 5, BudgetMicro: 6}))
		}, lease("abc", "running")},
		{"name abc {Name:trial Labels:[a b]}", func(ctx context.Context) (any, error) {
			return of(c.Rename(ctx, "abc", view.NameRequest{Name: "trial", Labels: []string{"a", "b"}}))
		}, lease("abc", "running")},
		{"checkpoints abc", func(ctx context.Context) (any, error) { return of(c.Checkpoints(ctx, "abc")) }, []view.CheckpointInfo{}},
		{"checkpoint abc", func(ctx context.Context) (any, error) { return of(c.CheckpointNow(ctx, "abc")) }, view.CheckpointInfo{Seq: 4, Where: "renter"}},
		{fmt.Sprintf("copy abc %+v", files), func(ctx context.Context) (any, error) { return of(c.Copy(ctx, "abc", files, nil)) }, view.CopyReport{Files: 1, Digest: "d"}},
		{"receipts abc", func(ctx context.Context) (any, error) { return of(c.Receipts(ctx, "abc")) }, []view.Receipt{}},
		{"evidence abc", func(ctx context.Context) (any, error) { return of(c.Evidence(ctx, "abc")) }, []byte{0, 1, 0xff}},
		{"peers", func(ctx context.Context) (any, error) { return of(c.Peers(ctx)) }, peers},
		{"ping abc", func(ctx context.Context) (any, error) { return of(c.Ping(ctx, "abc")) }, view.Ping{Key: "12D3KooWfake", Path: "punched", RTTMs: 31.5, Addr: "/ip4/192.0.2.7/udp/4701/quic-v1"}},
		{"log abc 5 true", func(ctx context.Context) (any, error) {
			r, err := c.Log(ctx, "abc", 5, true)
			if err != nil {
				return nil, err
			}
			defer r.Close()
			return of(io.ReadAll(r))
		}, []byte("bytes")},
		{"shutdown true", func(ctx context.Context) (any, error) { return only(c.Shutdown(ctx, true)) }, nil},
	})
	if c.ServerVersion() != "1.2.3" {
		t.Errorf("the server's version is %q", c.ServerVersion())
	}
}

func TestEveryOperationOfARigArrivesAndComesBack(t *testing.T) {
	f := &fakeRig{}
	config := newConfig(t)
	serve(t, api.NewRigServer(config, f))
	c := api.DialRig(config.Socket)
	t.Cleanup(c.Close)
	status, _ := new(fakeRig).Status(t.Context())
	status.Leases, status.Images = []view.Lease{}, []string{}
	cards, _ := new(fakeRig).Cards(t.Context())
	trusted, _ := new(fakeRig).TrustedOwners(t.Context())
	takeback, _ := new(fakeRig).Takeback(t.Context(), "", true)
	ada := market.KeyOf(markettest.Private("ada"))
	name, unlimited := "Ada", int64(-1)
	prices := market.Prices{Currency: "EUR", Slot: 360_000, Out: 9}
	run(t, f.seen, []step{
		{"status", func(ctx context.Context) (any, error) { return of(c.Status(ctx)) }, status},
		{"cards", func(ctx context.Context) (any, error) { return of(c.Cards(ctx)) }, cards},
		{"leases false", func(ctx context.Context) (any, error) { return of(c.Leases(ctx, false)) }, []view.Lease{lease("cafe", "running")}},
		{fmt.Sprintf("prices %+v", prices), func(ctx context.Context) (any, error) { return only(c.SetPrices(ctx, prices)) }, nil},
		{"pause", func(ctx context.Context) (any, error) { return only(c.Pause(ctx)) }, nil},
		{"resume", func(ctx context.Context) (any, error) { return only(c.Resume(ctx)) }, nil},
		{"drain true", func(ctx context.Context) (any, error) { return only(c.Drain(ctx, true)) }, nil},
		{"trusted", func(ctx context.Context) (any, error) { return of(c.TrustedOwners(ctx)) }, trusted},
		{"trust " + ada.String() + ` {"name":"Ada","credit_micro":-1}`, func(ctx context.Context) (any, error) {
			return only(c.Trust(ctx, ada, view.Trust{Name: &name, CreditMicro: &unlimited}))
		}, nil},
		{"distrust " + ada.String(), func(ctx context.Context) (any, error) { return only(c.Distrust(ctx, ada)) }, nil},
		{"takeback GPU-1/ö? true", func(ctx context.Context) (any, error) { return of(c.Takeback(ctx, "GPU-1/ö?", true)) }, takeback},
		{"giveback 1", func(ctx context.Context) (any, error) { return only(c.Giveback(ctx, "1")) }, nil},
		{"shutdown", func(ctx context.Context) (any, error) { return only(c.Shutdown(ctx)) }, nil},
	})
	v, err := c.Version(t.Context())
	if want := (api.Version{Program: "haggled", Version: "1.2.3"}); err != nil || v != want {
		t.Errorf("version is %+v, %v", v, err)
	}
}

func run(t *testing.T, calls func() []string, steps []step) {
	t.Helper()
	for _, s := range steps {
		got, err := s.call(t.Context())
		if err != nil {
			t.Errorf("%s: %v", s.want, err)
			continue
		}
		if diff := cmp.Diff([]string{s.want}, calls()); diff != "" {
			t.Errorf("%s arrived differently:\n%s", s.want, diff)
		}
		if diff := cmp.Diff(s.same, got); diff != "" {
			t.Errorf("%s came back differently:\n%s", s.want, diff)
		}
	}
}

func TestAKeyThatIsNoneNeverReachesTheRig(t *testing.T) {
	f := &fakeRig{}
	config := newConfig(t)
	serve(t, api.NewRigServer(config, f))
	for _, method := range []string{"PUT", "DELETE"} {
		r, err := plain(t, config.Socket).Do(request(t.Context(), t, method, "/v1/trusted/nobody", `{"name":"x"}`))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		var p view.Problem
		if err := json.NewDecoder(r.Body).Decode(&p); err != nil || r.StatusCode != 400 || p.Code != string(market.CodeBadKey) {
			t.Errorf("%s: status %d, %+v, %v", method, r.StatusCode, p, err)
		}
	}
	if calls := f.seen(); len(calls) > 0 {
		t.Errorf("the rig heard %q", calls)
	}
}

func TestErrorsKeepTheirCodeAndHaveAStatusByClass(t *testing.T) {
	for code, status := range map[market.Code]int{
		market.CodeLeaseUnknown: 404, market.CodeSlotTaken: 409, market.CodeBadQuery: 400, market.CodeNoPeers: 502,
		market.CodeBudgetTooSmall: 402, market.CodeStartFailed: 409, market.CodeClockSkew: 500, "from_the_future": 409,
	} {
		t.Run(string(code), func(t *testing.T) {
			sent := market.NewError(code, "lease", "ca\x1bfe", "free", "1", "wanted", "2")
			f := &fakeAgent{err: fmt.Errorf("inside: %w", sent)}
			c, config := serveAgent(t, f)
			_, err := c.Lease(t.Context(), "cafe")
			if !errors.Is(err, sent) || market.Public(err).Arg("lease") != "ca\x1bfe" {
				t.Errorf("came back as %#v", err)
			}
			r, err := plain(t, config.Socket).Do(request(t.Context(), t, "GET", "/v1/leases/cafe", ""))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Body.Close()
			var p view.Problem
			if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
				t.Fatal(err)
			}
			if r.StatusCode != status || r.Header.Get("Content-Type") != "application/problem+json" || p.Message != market.Explain(sent).Message {
				t.Errorf("status %d, want %d; %q; %+v", r.StatusCode, status, r.Header.Get("Content-Type"), p)
			}
		})
	}
}

func TestAnErrorThatIsNotTheMarketsTellsNothing(t *testing.T) {
	f := &fakeAgent{err: errors.New("open /secret/path")}
	c, _ := serveAgent(t, f)
	_, err := c.Status(t.Context())
	if market.CodeOf(err) != market.CodeInternal || strings.Contains(err.Error(), "secret") {
		t.Errorf("the error is %v", err)
	}
}

func TestTheListOfOperationsIsTheGoldenOne(t *testing.T) {
	agent, rig := newConfig(t), newConfig(t)
	got := append(operations(t, api.NewAgentServer(agent, &fakeAgent{}), agent.Socket),
		operations(t, api.NewRigServer(rig, &fakeRig{}), rig.Socket)...)
	want, err := os.ReadFile("testdata/operations.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), strings.Join(got, "\n")+"\n"); diff != "" {
		t.Errorf("the API changed: change testdata/operations.txt with it if that is meant\n%s", diff)
	}
}

func operations(t *testing.T, server *api.Server, socket string) []string {
	t.Helper()
	serve(t, server)
	r, err := plain(t, socket).Do(request(t.Context(), t, "GET", "/v1/openapi.json", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var doc struct {
		OpenAPI string
		Info    struct{ Title string }
		Paths   map[string]map[string]struct {
			OperationID string
			Responses   map[string]any
		}
		Components struct{ Schemas map[string]any }
	}
	if err := json.NewDecoder(r.Body).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	if doc.OpenAPI != "3.1.0" || doc.Components.Schemas["ErrorModel"] != nil || doc.Components.Schemas["Problem"] == nil {
		t.Errorf("the description is %q with schemas %v", doc.OpenAPI, doc.Components.Schemas)
	}
	var list []string
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if op.Responses["default"] == nil {
				t.Errorf("%s does not say what its errors look like", op.OperationID)
			}
			list = append(list, fmt.Sprintf("%s: %-4s %s %s", doc.Info.Title, strings.ToUpper(method), path, op.OperationID))
		}
	}
	slices.Sort(list)
	return list
}

func TestAClientWithoutAServerSaysSo(t *testing.T) {
	c := api.DialAgent(newConfig(t).Socket)
	if _, err := c.Status(t.Context()); !errors.Is(err, api.ErrNotRunning) {
		t.Errorf("the error is %v", err)
	}
	for range c.Watch(t.Context()) {
		t.Error("there is nothing to watch")
	}
}

func TestAServerThatIsNotOursIsNoMarketError(t *testing.T) {
	config := newConfig(t)
	if err := os.MkdirAll(config.Socket[:strings.LastIndex(config.Socket, "/")], 0o700); err != nil {
		t.Fatal(err)
	}
	l := listenUnix(t, config.Socket)
	other := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) })}
	go func() { _ = other.Serve(l) }()
	t.Cleanup(func() { other.Close() })
	_, err := api.DialAgent(config.Socket).Status(t.Context())
	if err == nil || market.CodeOf(err) != market.CodeInternal || !strings.Contains(err.Error(), "302") {
		t.Errorf("the error is %v", err)
	}
}
