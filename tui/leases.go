package tui

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"haggle/internal/view"
	"haggle/market"
)

// States of a lease that its job does not have.
const (
	stateBidding = "bidding"
	stateRefused = "refused"
)

// phases are the states on the way to a running job, in their order.
var phases = []string{
	string(market.JobGranted), string(market.JobPreparing), string(market.JobStarting), string(market.JobRunning),
	string(market.JobStopping), string(market.JobPaused), string(market.JobEnded),
}

// rank orders the states of one attempt of a job, which never go back.
func rank(state string) int { return slices.Index(phases, state) }

// open reports whether a lease is not over.
func open(l view.Lease) bool { return l.State != string(market.JobEnded) && l.State != stateRefused }

// dryMark is how long a job had run without money when the rig said so.
type dryMark struct{ ms, at int64 }

type (
	// leasesMsg answers a question for all leases.
	leasesMsg struct {
		epoch  int
		leases []view.Lease
		err    error
	}
	// bidMsg is the outcome of a bid.
	bidMsg struct {
		lease view.Lease
		err   error
	}
	// stopMsg is the outcome of an order to stop.
	stopMsg struct {
		lease view.Lease
		err   error
	}
	// secondMsg moves the clocks of a page on which time passes.
	secondMsg struct{ turn int }
)

// leases is the page of the user's jobs. Its list also serves the receipts and the status bar.
type leases struct {
	*kit
	grid
	list    []view.Lease             // newest first
	began   map[string]map[int]int64 // by attempt: when the job came into each phase, as far as it was seen
	links   map[string][]string      // by lease: ports that are carried to this machine
	copies  map[string]view.Progress // by lease: how far a copy is
	dry     map[string]dryMark       // by bid: since when its job runs without money
	chosen  string                   // the bid of the chosen lease; it survives every refresh
	known   bool
	err     error
	bidding int // bids without an answer
	tail    tail
	whole   bool // the log takes the whole page
	ticking bool
	turn    int
}

func newLeases(k *kit) leases {
	return leases{kit: k, tail: tail{kit: k}, began: map[string]map[int]int64{}, links: map[string][]string{}, copies: map[string]view.Progress{}, dry: map[string]dryMark{}}
}

func (l *leases) load(epoch int) tea.Cmd {
	return l.ask(func(ctx context.Context) tea.Msg {
		list, err := l.Market.Leases(ctx, true)
		return leasesMsg{epoch, list, err}
	})
}

// take shows a whole list.
func (l *leases) take(m leasesMsg) {
	if l.err = m.err; m.err != nil {
		return
	}
	l.known = true
	l.list = slices.Clone(m.leases)
	for _, one := range m.leases {
		l.note(one)
	}
	l.find()
}

// change takes one lease as it is now. An older word that comes late changes nothing.
func (l *leases) change(one view.Lease) {
	l.note(one)
	at := slices.IndexFunc(l.list, func(old view.Lease) bool { return old.Bid == one.Bid })
	switch {
	case at < 0:
		at, _ = slices.BinarySearchFunc(l.list, one, func(a, b view.Lease) int { return int(min(1, max(-1, b.Created-a.Created))) })
		l.list = slices.Insert(l.list, at, one)
	case one.Attempt > l.list[at].Attempt, one.Attempt == l.list[at].Attempt && rank(one.State) >= rank(l.list[at].State):
		l.list[at] = one
	}
	l.find()
}

// note remembers when a job came into its phase.
func (l *leases) note(one view.Lease) {
	switch d, known := l.dry[one.Bid]; {
	case one.Pay == nil || one.Pay.DryMs <= 0:
		delete(l.dry, one.Bid)
	case !known || d.ms != one.Pay.DryMs:
		l.dry[one.Bid] = dryMark{one.Pay.DryMs, l.Clock().UnixMilli()}
	}
	if at := rank(one.State); at >= 0 {
		if l.began[attempt(one)] == nil {
			l.began[attempt(one)] = map[int]int64{}
		}
		l.began[attempt(one)][at] = one.Since
	}
}

// attempt names one start of a lease's job.
func attempt(one view.Lease) string { return one.Bid + "/" + strconv.Itoa(one.Attempt) }

// find puts the cursor on the chosen lease again.
func (l *leases) find() {
	at := slices.IndexFunc(l.list, func(one view.Lease) bool { return one.Bid == l.chosen })
	if at >= 0 {
		l.grid.to(at, len(l.list))
	}
	l.choose()
}

func (l *leases) choose() {
	l.grid.to(l.grid.at, len(l.list))
	l.chosen = ""
	if len(l.list) > 0 {
		l.chosen = l.list[l.grid.at].Bid
	}
}

// pick chooses a lease by its bid or id.
func (l *leases) pick(id string) {
	at := slices.IndexFunc(l.list, func(one view.Lease) bool { return one.Bid == id || one.ID != "" && one.ID == id })
	if at >= 0 {
		l.grid.to(at, len(l.list))
		l.choose()
	}
}

// current returns the chosen lease.
func (l *leases) current() (view.Lease, bool) {
	if len(l.list) == 0 {
		return view.Lease{}, false
	}
	return l.list[l.grid.at], true
}

// follow turns the log to the chosen lease, or away when it is not seen.
func (l *leases) follow(visible bool) tea.Cmd {
	one, ok := l.current()
	if !visible || !ok || one.ID == "" {
		return l.tail.follow("", 0)
	}
	if one.ID == l.tail.lease && l.tail.ended && l.tail.err != nil && one.State == string(market.JobRunning) {
		l.tail.forget() // it could not be read when it was asked for; now there is a job
	}
	return l.tail.follow(one.ID, one.Attempt)
}

// tick lets the page's clocks go, once a second and only while a job is under way on a page that is seen.
func (l *leases) tick(visible bool) tea.Cmd {
	going := visible && (l.bidding > 0 || slices.ContainsFunc(l.list, open))
	if !going || l.ticking {
		return nil
	}
	l.ticking = true
	l.turn++
	return l.after(time.Second, secondMsg{l.turn})
}

// do carries out what a key asks for.
func (l *leases) do(a act) (handled bool) {
	by, moved := l.grid.step(a, len(l.list))
	switch {
	case moved && l.whole:
		if a == actPageDown || a == actPageUp {
			by = max(-1, min(1, by)) * max(1, l.tail.shown-1)
		}
		l.tail.scroll(by, l.tail.shown)
	case moved:
		l.grid.move(by, len(l.list))
		l.choose()
	case a == actLog && !l.whole:
		_, l.whole = l.current()
		l.tail.back = 0
	case a == actBack && l.whole:
		l.whole = false
		l.tail.back = 0
	default:
		return false
	}
	return true
}

// stop makes the order to end a job.
func (l *leases) stop(id string, kill bool) tea.Cmd {
	return l.ask(func(ctx context.Context) tea.Msg {
		one, err := l.Market.Stop(ctx, id, kill)
		return stopMsg{one, err}
	})
}

// bid places a bid. Where the rig has renewed its offer since the user saw it, at no higher price, the new one is taken.
func (l *leases) bid(o order, seen view.Offer) tea.Cmd {
	l.bidding++
	return l.work(func(ctx context.Context) tea.Msg {
		one, err := l.Market.Bid(ctx, o.bid)
		if code := market.CodeOf(err); code == market.CodeOfferUnknown || code == market.CodeOfferExpired {
			list, again := l.Market.Offers(ctx, view.OfferQuery{Query: "rig_key=" + seen.RigKey})
			if again == nil && len(list.Offers) == 1 && noDearer(list.Offers[0], seen) {
				o.bid.Offer = list.Offers[0].Hash
				one, err = l.Market.Bid(ctx, o.bid)
			}
		}
		return bidMsg{one, err}
	})
}

// noDearer reports whether an offer costs at most what another one does.
func noDearer(now, seen view.Offer) bool {
	return now.Model == seen.Model && now.Price.Currency == seen.Price.Currency && now.Price.Micro <= seen.Price.Micro &&
		now.DiskPrice.Micro <= seen.DiskPrice.Micro && now.InPrice.Micro <= seen.InPrice.Micro && now.OutPrice.Micro <= seen.OutPrice.Micro
}

// sums adds up the open leases, one sum for each currency.
func (l *leases) sums() (count int, text string) {
	type sum struct{ spent, signed market.Micro }
	byCurrency := map[string]sum{}
	var order []string
	for _, one := range l.list {
		if !open(one) {
			continue
		}
		count++
		s, seen := byCurrency[one.Spent.Currency]
		if !seen {
			order = append(order, one.Spent.Currency)
		}
		byCurrency[one.Spent.Currency] = sum{s.spent + market.Micro(one.Spent.Micro), s.signed + market.Micro(one.Signed.Micro)}
	}
	slices.Sort(order)
	var parts []string
	for _, c := range order {
		s := byCurrency[c]
		parts = append(parts, "spent "+s.spent.String()+" "+clean(c)+", signed "+s.signed.String())
	}
	return count, strings.Join(parts, "; ")
}
