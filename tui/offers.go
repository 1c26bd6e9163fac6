package tui

import (
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"haggle/internal/view"
	"haggle/market"
)

// sorts are the orders that the user can choose; the agent sorts.
var sorts = []struct{ by, word string }{
	{market.SortBest, "best first"},
	{market.SortPrice, "my job's price"},
	{"start_time", "start"},
	{"dph", "price/h"},
	{"gpu_ram-", "memory"},
	{"num_gpus-", "free"},
	{"gpu_name", "card"},
	{"rig", "rig"},
}

// Bounds of what is asked for.
const (
	firstRows = 500              // of a list that is asked for; four times as many when the user comes to its end
	lookAgain = 40 * time.Second // a rig's word about the chosen offer that is older is asked for again
	lookPause = 200 * time.Millisecond
)

// lookMsg is the end of a pause on a row: who passes over rows does not call all of their rigs.
type lookMsg struct{ hash string }

// shelf is a list of offers with what it takes to find a row again. It is made in a command, for it costs as much as the
// list is long, and never changed.
type shelf struct {
	view.OfferList
	byHash, byRig                  map[string]int
	simulated, unisolated, trusted bool // some of them are
	rigWidth                       int  // columns of the longest name of a rig
	totalWidth                     int  // of the longest price of the job
}

func newShelf(list view.OfferList) shelf {
	s := shelf{OfferList: list, byHash: make(map[string]int, len(list.Offers)), byRig: make(map[string]int, len(list.Offers))}
	for i := len(list.Offers) - 1; i >= 0; i-- {
		o := &list.Offers[i]
		s.byHash[o.Hash], s.byRig[o.RigKey] = i, i
		s.simulated = s.simulated || o.Simulated
		s.unisolated = s.unisolated || unisolated(*o)
		s.trusted = s.trusted || trustedOnly(*o)
		s.rigWidth = max(s.rigWidth, span(rigName(o)))
		if o.Total != nil {
			s.totalWidth = max(s.totalWidth, span(money(*o.Total)))
		}
	}
	return s
}

// unisolated reports whether jobs of an offer run as plain processes.
func unisolated(o view.Offer) bool { return o.Isolation == "none" }

// trustedOnly reports whether an offer takes bids only from owners that the rig's owner trusts.
func trustedOnly(o view.Offer) bool { return o.Bidders == market.BiddersTrusted }

// find returns the row of an offer, or of what its rig offers now: a rig renews its offer every few minutes, and the
// user's choice must survive that.
func (s shelf) find(o view.Offer) (int, bool) {
	if i, ok := s.byHash[o.Hash]; ok {
		return i, true
	}
	i, ok := s.byRig[o.RigKey]
	return i, ok
}

// offersMsg answers a question for offers.
type offersMsg struct {
	epoch int
	asked view.OfferQuery
	shelf shelf
	err   error
}

// offerMsg answers a question for the details of one offer.
type offerMsg struct {
	asked view.Offer
	job   view.JobShape
	at    time.Time // of the answer
	offer view.Offer
	past  *view.History // with its rig's owner; nil where it is not known
	err   error
}

// offers is the market's page: what there is, a filter, and one offer in detail.
type offers struct {
	*kit
	grid
	filter   filter
	shelf    shelf
	chosen   view.Offer    // stays chosen over refreshes; empty before the first list
	detail   view.Offer    // what is known of it
	looked   look          // of the detail
	job      view.JobShape // my job, for which all is priced
	limit    int           // rows that are asked for at most
	past     *view.History // with the rig's owner of the detail; nil where it is not known
	sort     int
	reversed bool
	known    bool // a list has come
	picked   bool // the user chose a row; until then the best one is the chosen one
	err      error
	asking   bool            // a question for offers is under way
	asked    view.OfferQuery // the last one
	pending  bool            // it is out of date already
	fetching bool            // a question for details is under way
	lookErr  error           // why there was no answer
	whole    bool            // the details take the whole page
	scroll   int
}

// look is when and for what the details of an offer were had.
type look struct {
	hash string // that was asked for; the rig may have renewed it
	job  view.JobShape
	at   time.Time
}

func newOffers(k *kit) offers {
	d := k.Defaults
	return offers{
		kit: k, filter: newFilter(k), limit: firstRows, job: view.JobShape{GPUs: d.GPUs, DurationMs: d.Duration.Milliseconds(), Image: d.Image},
	}
}

// want returns what the list should be.
func (o *offers) want() view.OfferQuery {
	by := sorts[o.sort].by
	if o.reversed {
		if bare, found := strings.CutSuffix(by, "-"); found {
			by = bare
		} else {
			by += "-"
		}
	}
	return view.OfferQuery{Query: o.filter.query, Sort: by, Explain: true, Limit: o.limit, Job: o.job}
}

// load asks for the list. One question is under way at a time; what is wanted meanwhile is asked for after it.
func (o *offers) load(epoch int) tea.Cmd {
	if o.asking {
		o.pending = true
		return nil
	}
	q := o.want()
	o.asking, o.pending, o.asked = true, false, q
	return o.ask(func(ctx context.Context) tea.Msg {
		list, err := o.Market.Offers(ctx, q)
		return offersMsg{epoch, q, newShelf(list), err}
	})
}

// take shows a list. The chosen offer stays chosen wherever it stands now.
func (o *offers) take(m offersMsg) {
	o.asking, o.err = false, m.err
	if m.err != nil {
		return
	}
	o.known, o.shelf = true, m.shelf
	if !o.picked {
		o.grid.at = 0
	}
	if at, ok := o.shelf.find(o.chosen); ok && o.picked {
		o.grid.to(at, len(o.shelf.Offers))
	}
	o.choose()
}

// choose makes the row under the cursor the chosen one.
func (o *offers) choose() {
	n := len(o.shelf.Offers)
	o.grid.to(o.grid.at, n)
	if n == 0 {
		o.chosen = view.Offer{}
		return
	}
	o.chosen = o.shelf.Offers[o.grid.at]
}

// more asks for more rows where the user stands at the end of those that came.
func (o *offers) more() (stale bool) {
	n := len(o.shelf.Offers)
	if n == 0 || o.grid.at < n-1 || n < o.limit || o.shelf.Matches <= n {
		return false
	}
	o.limit *= 4
	return true
}

// current reports whether the details are of the chosen offer and my job, and still fresh.
func (o *offers) current() bool {
	same := o.chosen.Hash == o.looked.hash || o.chosen.Hash == o.detail.Hash
	return same && o.looked.job == o.job && o.Clock().Sub(o.looked.at) < lookAgain
}

// inspect has the rig of the chosen offer asked again, unless its word is fresh or asked for.
func (o *offers) inspect() tea.Cmd {
	c, job := o.chosen, o.job
	if o.fetching || c.Hash == "" || o.current() {
		return nil
	}
	o.fetching = true
	return o.ask(func(ctx context.Context) tea.Msg {
		d, err := o.Market.LookAt(ctx, c.Hash, job)
		m := offerMsg{asked: c, job: job, at: o.Clock(), offer: d, err: err}
		if err == nil && d.Owner != "" {
			if h, err := o.Market.History(ctx, d.Owner); err == nil { // an agent that cannot tell leaves the line out
				m.past = &h
			}
		}
		return m
	})
}

// learn takes details. It reports whether to ask again, for the choice moved on meanwhile, and whether the rig has another offer now
// than the list shows.
func (o *offers) learn(m offerMsg) (again, renewed bool) {
	o.fetching = false
	o.lookErr = m.err
	if m.err == nil {
		o.detail, o.past, o.looked = m.offer, m.past, look{m.asked.Hash, m.job, m.at}
	}
	return m.asked.Hash != o.chosen.Hash || m.job != o.job, m.err == nil && m.offer.Hash != m.asked.Hash
}

// about returns the chosen offer, with details as far as they are known.
func (o *offers) about() view.Offer {
	if o.chosen.Hash != "" && o.detail.RigKey == o.chosen.RigKey && o.detail.SlotDetail != nil {
		d := o.chosen
		d.SlotDetail, d.Host, d.Rules = o.detail.SlotDetail, o.detail.Host, o.detail.Rules
		if o.detail.Hash == d.Hash && o.looked.job == o.job { // the rig's own word, and what I saw when I asked for it
			d.Source, d.AgeS, d.Sources, d.RTTMs, d.Residency, d.Total, d.StartS, d.Why = o.detail.Source, o.detail.AgeS, o.detail.Sources,
				o.detail.RTTMs, o.detail.Residency, o.detail.Total, o.detail.StartS, o.detail.Why
		}
		return d
	}
	return o.chosen
}

// do carries out what a key asks for. stale says that the list must be loaded anew.
func (o *offers) do(a act) (handled, stale bool) {
	n := len(o.shelf.Offers)
	by, moved := o.grid.step(a, n)
	switch {
	case moved && o.whole:
		o.scroll = max(0, o.scroll+by)
	case moved:
		o.grid.move(by, n)
		o.choose()
		o.picked = true
		return true, o.more()
	case a == actDetail && !o.whole:
		o.picked, o.whole, o.scroll = true, true, 0
	case a == actBack && o.whole:
		o.whole = false
	case a == actBack:
		return true, o.filter.clear()
	case a == actSort:
		o.sort, o.reversed = (o.sort+1)%len(sorts), false
		return true, true
	case a == actReverse:
		o.reversed = !o.reversed
		return true, true
	case a == actFilter:
		o.filter.begin()
	default:
		return false, false
	}
	return true, false
}
