package tui_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// errOff is what a client says of an agent that is not there.
var errOff = errors.New("the program is not running")

// fakeMarket is an agent in memory. It matches, sorts and prices as the real one does, with the market's own rules; leases
// go on when a test says so.
type fakeMarket struct {
	fakePurse
	mu sync.Mutex
	fakeChoice
	offers                 []market.Offer
	leases                 []view.Lease // newest first
	receipts               map[string][]view.Receipt
	logs                   map[string]*fakeLog
	peers                  []view.Peer
	status                 view.AgentStatus
	reason                 string
	err                    error // every question fails with it
	askErr                 error // every question but that for the status fails with it
	slow                   bool  // nothing but the status is answered
	offersErr, receiptsErr error
	bidErr                 error
	bids                   []view.BidRequest
	stops, orders          []string
	copies                 []view.CopyRequest
	copied                 chan struct{} // closed: copies end
	watchers               []chan view.Lease
	asked                  int           // questions for offers
	hold                   chan struct{} // where it is set, answers wait for it
}

func newFakeMarket() *fakeMarket {
	return &fakeMarket{
		copied:   make(chan struct{}),
		receipts: map[string][]view.Receipt{}, logs: map[string]*fakeLog{},
		status: view.AgentStatus{
			Version: "0.1.0", PID: 4711, Home: "~/.local/share/haggle", Uptime: 3725,
			Network: view.Network{
				Name: "lab-k3f9", Key: key("agent"), Addrs: []string{"/ip4/127.0.0.1/udp/40123/quic-v1"}, Ready: true, Peers: 3, Table: 3,
			},
		},
	}
}

// wait holds an answer back while a test wants to look at what is shown before it.
func (f *fakeMarket) wait(ctx context.Context) error {
	f.mu.Lock()
	hold, err := f.hold, f.err
	if err == nil {
		err = f.askErr
	}
	if f.slow {
		hold = make(chan struct{})
	}
	f.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

func (f *fakeMarket) Offers(ctx context.Context, q view.OfferQuery) (view.OfferList, error) {
	if err := f.wait(ctx); err != nil {
		return view.OfferList{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked++; f.offersErr != nil {
		return view.OfferList{}, f.offersErr
	}
	query, err := market.ParseQuery(q.Query)
	if err != nil {
		return view.OfferList{}, err
	}
	all := f.rows(q.Job)
	var rows []market.Ranked
	for _, r := range all {
		if m, ok := query.MatchRow(r); ok && len(m.Slots) >= q.Job.GPUs {
			ranked, _ := market.RankedRow(r, m)
			rows = append(rows, ranked)
		}
	}
	if err := market.Rank(rows, q.Sort); err != nil {
		return view.OfferList{}, err
	}
	list := view.OfferList{Known: len(f.offers), Matches: len(rows), About: max(f.about, len(f.offers)), Reading: f.about > 0, Rigs: len(f.offers), Reason: f.reason}
	if q.Limit > 0 {
		rows = rows[:min(len(rows), q.Limit)]
	}
	for _, r := range rows {
		list.Offers = append(list.Offers, view.OfferOfRow(r.Row(), hashOf(*r.Offer), r.Match.Slots, false))
	}
	if q.Facets != "" {
		if list.Facets, err = query.Facets(all, strings.Split(q.Facets, ","), 12); err != nil {
			return view.OfferList{}, err
		}
	}
	if q.Explain {
		told := query.ExplainRows(all)
		list.Funnel = &view.Funnel{Known: told.Offers}
		for _, s := range told.Steps {
			list.Funnel.Steps = append(list.Funnel.Steps, view.FunnelStep{Clause: s.Clause, Left: s.Left})
		}
		if miss := told.Nearest; miss != nil {
			list.Funnel.Nearest = f.offers[miss.Offer].Name + " misses " + miss.Missed[0].Clause
		}
	}
	return list, nil
}

// Bid grants a lease as long as cards are free and the image is there.
func (f *fakeMarket) Bid(ctx context.Context, b view.BidRequest) (view.Lease, error) {
	if err := f.wait(ctx); err != nil {
		return view.Lease{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bids = append(f.bids, b)
	if f.bidErr != nil {
		return view.Lease{}, f.bidErr
	}
	for i := range f.offers {
		o := &f.offers[i]
		if hashOf(*o).String() != b.Offer {
			continue
		}
		free := o.Free()
		if len(free) < b.GPUs {
			return view.Lease{}, market.NewError(market.CodeSlotTaken, "free", strconv.Itoa(len(free)), "wanted", strconv.Itoa(b.GPUs))
		}
		l := lease(len(f.leases)+1, o.Name, string(market.JobGranted), b.BudgetMicro)
		l.Model, l.Slots, l.Image, l.Args, l.Simulated, l.Duration = o.Slots[0].Model, b.GPUs, b.Image, b.Args, o.Simulated, b.DurationMs
		f.leases = slices.Insert(f.leases, 0, l)
		f.tell(l)
		return l, nil
	}
	return view.Lease{}, market.NewError(market.CodeOfferUnknown, "offer", b.Offer[:8])
}

// change changes a lease and tells it to everyone who watches.
func (f *fakeMarket) change(id string, by func(*view.Lease)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.leases {
		if f.leases[i].ID == id {
			before := f.leases[i].State
			by(&f.leases[i])
			if f.leases[i].State != before {
				f.leases[i].Since = time.Now().UnixMilli()
			}
			f.tell(f.leases[i])
		}
	}
}

func (f *fakeMarket) tell(l view.Lease) {
	for _, w := range f.watchers {
		w <- l
	}
}

func (f *fakeMarket) Leases(ctx context.Context, all bool) ([]view.Lease, error) {
	if err := f.wait(ctx); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.leases), nil
}

func (f *fakeMarket) Stop(ctx context.Context, id string, kill bool) (view.Lease, error) {
	if err := f.wait(ctx); err != nil {
		return view.Lease{}, err
	}
	f.mu.Lock()
	f.stops = append(f.stops, id)
	f.mu.Unlock()
	f.change(id, func(l *view.Lease) { l.State = string(market.JobStopping) })
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.leases {
		if l.ID == id {
			return l, nil
		}
	}
	return view.Lease{}, market.NewError(market.CodeLeaseUnknown, "lease", id)
}

func (f *fakeMarket) Watch(ctx context.Context) <-chan view.Lease {
	in, out := make(chan view.Lease, 1000), make(chan view.Lease)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watchers = append(f.watchers, in)
	go func() {
		defer close(out)
		for {
			select {
			case l, ok := <-in:
				if !ok {
					return
				}
				select {
				case out <- l:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// leave ends the agent: its streams break off and nobody answers.
func (f *fakeMarket) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.watchers {
		close(w)
	}
	f.watchers, f.err = nil, errOff
}

func (f *fakeMarket) back() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = nil
}

func (f *fakeMarket) Receipts(ctx context.Context, id string) ([]view.Receipt, error) {
	if err := f.wait(ctx); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.receiptsErr != nil {
		return nil, f.receiptsErr
	}
	if len(f.receipts[id]) == 0 {
		return nil, market.NewError(market.CodeNoReceipts)
	}
	return f.receipts[id], nil
}

func (f *fakeMarket) Evidence(ctx context.Context, id string) ([]byte, error) {
	return []byte("evidence of " + id), f.wait(ctx)
}

func (f *fakeMarket) Status(ctx context.Context) (view.AgentStatus, error) {
	f.mu.Lock()
	hold, err := f.hold, f.err
	f.mu.Unlock()
	if hold != nil {
		<-ctx.Done()
		err = ctx.Err()
	}
	return f.status, err
}

func (f *fakeMarket) Peers(ctx context.Context) ([]view.Peer, error) {
	err := f.wait(ctx)
	return f.peers, err
}

func (f *fakeMarket) Log(ctx context.Context, id string, offset int64, follow bool) (io.ReadCloser, error) {
	if err := f.wait(ctx); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.logs[id]
	if l == nil {
		return nil, market.NewError(market.CodeNoLog)
	}
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { _ = w.CloseWithError(ctx.Err()) })
	go l.copyTo(ctx, w)
	return r, nil
}
