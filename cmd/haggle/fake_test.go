package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"haggle/internal/api"
	"haggle/internal/config"
	"haggle/internal/view"
	"haggle/market"
	"haggle/market/markettest"
)

// fakeWiring is the program with a fake agent and a fake lab.
func fakeWiring() wiring {
	return wiring{
		runAgent: runFake,
		labUp: func(_ context.Context, r labRequest, progress io.Writer) (labStatus, error) {
			fmt.Fprintf(progress, "starting %d rigs\n", r.Rigs)
			return labStatus{Home: "/a lab", Network: "lab-x", Agent: true}, nil
		},
		labLook: func(context.Context, string) (labStatus, error) {
			return labStatus{Home: "/a lab", Network: "lab-x", Rigs: []labRig{{"rig-1", "/a lab/rig-1", 42, true}, {Name: "rig-2", Home: "/a lab/rig-2"}}}, nil
		},
		labDown: func(context.Context, string, io.Writer) error { return fmt.Errorf("rig-1 does not\nend") },
	}
}

// runFake serves a fake agent until it is told to end. Its home may hold files that change it: "broken" keeps it from
// starting, "version" gives it another version, "main" another network, "crashed" says that a job has ended it before.
func runFake(ctx context.Context, c config.Agent, version string, log *slog.Logger) error {
	has := func(name string) bool { _, err := os.Stat(filepath.Join(c.Paths.Home, name)); return err == nil }
	if has("broken") {
		return fmt.Errorf("the database is locked")
	}
	if has("version") {
		version = "0.0.9"
	}
	if err := os.WriteFile(c.Paths.Key, nil, 0o600); err != nil { // a home without a key is none to come back to
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := &fakeAgent{home: c.Paths.Home, end: cancel, job: &fakeJob{done: make(chan struct{})}, watched: make(chan struct{}, 1)}
	if has("crashed") {
		a.begin([]string{"count"})
	}
	return api.NewAgentServer(api.Config{Socket: c.Paths.Socket, Version: version, Log: log}, a).Run(ctx)
}

// fakeAgent keeps one job. What it does is in the job's first argument:
// count writes three lines and ends; hang waits to be stopped; crash ends the agent in mid-log; lost never runs; open ends
// without a final receipt; fill fills its disk and fails; taken is in its notice, for the rig's owner takes the card back; slices is
// paid ahead and has been through everything that paying can bring; ahead waits for a person to pay.
type fakeAgent struct {
	home    string
	end     func()
	doors   sync.Mutex
	lives   sync.WaitGroup // the life of the job before must not become that of the next
	telling sync.Mutex     // held while a change is made and told
	mu      sync.Mutex
	job     *fakeJob
	access  fakeAccess
	known   bool
	money   fakeMoney
	watched chan struct{}       // full once a watcher has come and has seen the present state
	watcher bool                // one has come
	streams map[fakeStream]bool // what happens goes to each of them,
	untold  []view.Lease        // or is kept for the first one
	pings   int                 // that were answered
	saved   []view.SavedQuery
	asked   string // a dash for each time that offers were asked for
}

type fakeJob struct {
	lease view.Lease
	args  []string
	done  chan struct{}
	once  sync.Once
}

func leaseID() string {
	return market.SealTerms(markettest.Network, markettest.Rig(), markettest.Terms()).ID().String()
}

func (a *fakeAgent) begin(args []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known = true
	a.watcher = false
	select {
	case <-a.watched: // by a watcher of the job before
	default:
	}
	a.job.args = args
	a.job.lease = view.Lease{
		ID: leaseID(), Rig: "rig-1", RigKey: market.KeyOf(markettest.Rig()).String(), Model: "RTX_4090", Slots: 1, Image: "lab", Args: args,
		State: "granted", Debt: "open", Price: view.MoneyOf(360_000, "USD"), Budget: view.MoneyOf(1_000_000, "USD"), Simulated: true,
		Created: time.Now().UnixMilli(), Since: time.Now().UnixMilli(), Spent: view.MoneyOf(0, "USD"), Signed: view.MoneyOf(0, "USD"),
	}
}

// forget drops what was told of the job before and nobody has read.
func (a *fakeAgent) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.untold = nil
}

// state moves the job on and tells it.
func (a *fakeAgent) state(change func(*view.Lease)) {
	a.telling.Lock()
	defer a.telling.Unlock()
	a.mu.Lock()
	change(&a.job.lease)
	l := a.job.lease
	if len(a.streams) == 0 {
		a.untold = append(a.untold, l)
	}
	streams := slices.Collect(maps.Keys(a.streams))
	a.mu.Unlock()
	for _, stream := range streams {
		select {
		case stream.in <- l:
		case <-stream.gone:
		}
	}
	if l.State == "ended" {
		a.job.once.Do(func() { close(a.job.done) })
	}
}

// live plays the job's life.
func (a *fakeAgent) live() {
	for _, s := range []string{"preparing", "starting", "running"} {
		a.state(func(l *view.Lease) { l.State = s })
	}
	switch a.job.args[0] {
	case "hang":
		return
	case "lost":
		a.state(func(l *view.Lease) { l.State, l.Reason, l.Debt = "ended", "prepare", "final" })
		return
	case "collect":
		a.collect()
		return
	case "open":
		a.over("completed", 0, "open")
		a.mark("open")
		return
	case "crash":
		return
	case "fill":
		a.state(func(l *view.Lease) {
			l.DiskFull, l.DiskUsed, l.DiskMB, l.Egress, l.In, l.Out = true, 9_990_000_000, 10_000, true, 1_234_567_890, 42
		})
		a.over("disk_full", 1, "final")
		return
	case "slices":
		a.slices()
		return
	case "ahead":
		a.ahead()
		a.mark("ahead")
		return
	case "taken":
		a.state(func(l *view.Lease) { l.State, l.Reason, l.EndsBy = "stopping", "takeback", markettest.Now })
		a.mark("taken")
		return
	}
	code := int64(0)
	if i := slices.Index(a.job.args, "--exit"); i >= 0 {
		code, _ = strconv.ParseInt(a.job.args[i+1], 10, 64)
	}
	a.over("completed", code, "final")
}

// mark leaves a file that a script waits for. Without it the script ends, and says why.
func (a *fakeAgent) mark(name string) {
	if err := os.WriteFile(filepath.Join(a.home, name), []byte("yes"), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func (a *fakeAgent) over(reason string, code int64, debt string) {
	a.state(func(l *view.Lease) {
		l.State, l.Reason, l.Exit, l.Debt = "ended", reason, &code, debt
		l.BilledMs, l.Spent, l.Receipts = 41_000, view.MoneyOf(4100, "USD"), 2
		l.Signed = l.Spent
		if debt == "final" && reason != "renter" {
			l.Outcome = view.OutcomeOf(markettest.Outcome(market.LeaseID{}))
		}
		if reason == "disk_full" {
			l.Outcome = &view.Outcome{At: markettest.Now, Cards: []market.CardWipe{{Index: 0, Why: "the card\x1b is gone"}}}
		}
	})
}

func (a *fakeAgent) Status(context.Context) (view.AgentStatus, error) {
	network := "lab-x"
	if _, err := os.Stat(filepath.Join(a.home, "main")); err == nil {
		network = "main"
	}
	return view.AgentStatus{
		Version: "1", PID: 7, Home: a.home, Uptime: 90, Offers: 2, Leases: 1,
		Network: view.Network{
			Name: network, Key: "12D3KooWx", Addrs: []string{"/ip4/127.0.0.1/tcp/1"}, Reason: "no peer answers",
			Reach: reachOfFake(),
		},
		Methods: a.money.methods(), Alerts: a.money.alerts(),
	}, nil
}

func (a *fakeAgent) Bid(_ context.Context, b view.BidRequest) (view.Lease, error) {
	switch {
	case strings.Contains(b.Query, "bidders=trusted"):
		return view.Lease{}, market.NewError(market.CodeNotTrusted, "owner", market.KeyOf(markettest.Renter()).String())
	case b.Image != "lab" && b.ImageFile == "":
		return view.Lease{}, market.NewError(market.CodeImageUnknown, "image", b.Image, "images", "lab")
	case b.BudgetMicro > 0 && b.BudgetMicro < 6000:
		return view.Lease{}, market.NewError(market.CodeBudgetTooSmall, "budget", market.Micro(b.BudgetMicro).String(), "minute", "0.006")
	case b.GPUs > 2:
		return view.Lease{}, market.NewError(market.CodeTooFewSlots, "has", "2", "wanted", strconv.Itoa(b.GPUs))
	}
	if err := os.WriteFile(filepath.Join(a.home, "bid"), fmt.Appendf(nil, "%+v\n", b), 0o600); err != nil {
		return view.Lease{}, err
	}
	a.lives.Wait()
	a.forget()
	a.begin(append(b.Args, ""))
	a.mu.Lock()
	a.job.lease.Name, a.job.lease.Labels, a.job.lease.Ports, a.job.lease.Place = b.Name, b.Labels, b.Ports, b.Residency
	for _, c := range b.Collect {
		a.job.lease.Collects = append(a.job.lease.Collects, view.Collected{Remote: c.Remote, Local: c.Local})
	}
	l := a.job.lease
	a.mu.Unlock()
	a.lives.Go(a.live)
	return l, nil
}

func (a *fakeAgent) Leases(context.Context, bool) ([]view.Lease, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	exit := int64(0)
	old := view.Lease{
		ID: strings.Repeat("0", 64), Rig: "rig-2", Model: "H100", Slots: 2, State: "ended", Reason: "completed", Exit: &exit, Debt: "final",
		Spent: view.MoneyOf(1, "USD"), Signed: view.MoneyOf(1, "USD"), Receipts: 1, Created: 1, Since: 1, BilledMs: 3_600_000,
	}
	if !a.known {
		return []view.Lease{old}, nil
	}
	return []view.Lease{old, a.job.lease}, nil
}

func (a *fakeAgent) Lease(_ context.Context, id string) (view.Lease, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.known || id != a.job.lease.Name && !strings.HasPrefix(a.job.lease.ID, strings.TrimPrefix(id, "lease-")) {
		return view.Lease{}, market.NewError(market.CodeLeaseUnknown, "lease", id)
	}
	if a.watcher {
		a.watcher = false
		a.watched <- struct{}{}
	}
	return a.job.lease, nil
}

func (a *fakeAgent) Stop(ctx context.Context, id string, kill bool) (view.Lease, error) {
	l, err := a.Lease(ctx, id)
	if err != nil {
		return l, err
	}
	l.State = "stopping"
	a.lives.Go(func() { a.over("renter", 143, "final") })
	return l, nil
}

func (a *fakeAgent) Receipts(ctx context.Context, id string) ([]view.Receipt, error) {
	if _, err := a.Lease(ctx, id); err != nil {
		return nil, err
	}
	terms, lease := markettest.Terms(), market.SealTerms(markettest.Network, markettest.Rig(), markettest.Terms()).ID()
	var list []view.Receipt
	var head market.Head
	for i, kind := range []market.ReceiptKind{market.ReceiptInterval, market.ReceiptFinal} {
		r := markettest.Receipt(lease, head, int64(i+1)*20_500, kind)
		s := market.SealReceipt(markettest.Network, markettest.Rig(), r)
		if i == 0 {
			s = s.Sign(market.RoleRenter, markettest.Renter())
		}
		head = market.HeadOf(r, s.Hash())
		list = append(list, view.ReceiptOf(r, s, terms))
	}
	return list, nil
}

func (a *fakeAgent) Evidence(ctx context.Context, id string) ([]byte, error) {
	if _, err := a.Lease(ctx, id); err != nil {
		return nil, err
	}
	return markettest.Evidence().Encode(), nil
}

func (a *fakeAgent) Peers(context.Context) ([]view.Peer, error) {
	return []view.Peer{{Key: "12D3KooWx", Agent: "haggled/1\x07", Addrs: []string{"/ip4/127.0.0.1/tcp/1"}, LatencyMs: 0.42, Direction: "out"}}, nil
}

// fakeStream is a watcher's: it takes the next change once the one before was read, which the server does only after it has told the
// state as it was. So no watcher learns of the end before what led to it.
type fakeStream struct {
	in   chan view.Lease
	gone <-chan struct{}
}

// Watch gives each watcher all changes: the stream of one that has just gone must not take them from the next.
func (a *fakeAgent) Watch(ctx context.Context) <-chan view.Lease {
	out := make(chan view.Lease)
	stream := fakeStream{make(chan view.Lease), ctx.Done()}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watcher = len(a.watched) == 0
	backlog := a.untold
	a.untold = nil
	if a.streams == nil {
		a.streams = map[fakeStream]bool{}
	}
	a.streams[stream] = true
	go func() {
		defer close(out)
		defer func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			delete(a.streams, stream)
		}()
		for {
			var l view.Lease
			if len(backlog) > 0 {
				l, backlog = backlog[0], backlog[1:]
			} else {
				select {
				case l = <-stream.in:
				case <-ctx.Done():
					return
				}
			}
			select {
			case out <- l:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

func (a *fakeAgent) Shutdown(_ context.Context, force bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known && a.job.lease.State != "ended" && !force {
		return market.NewError(market.CodeBadState, "state", a.job.lease.State, "event", "ending the agent")
	}
	a.end()
	return nil
}
