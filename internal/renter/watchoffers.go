package renter

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// Times of a watch.
const (
	watchRefresh = 10 * time.Second       // between two questions to the network on behalf of a watcher
	watchPause   = 250 * time.Millisecond // offers come in bursts: one look takes a whole burst
)

// watched names an offer for as long as its rig renews it.
type watched struct {
	rig market.Key
	id  string
}

// WatchOffers tells the offers that match a query now, each once with OfferHere, and then every change among them until ctx ends or Run
// returns, which closes the channel. A slow reader misses steps in between, never the last one. It returns at once; a query that makes no
// sense is refused.
func (a *Agent) WatchOffers(ctx context.Context, ask view.OfferQuery) (<-chan view.OfferChange, error) {
	q, err := a.question(ctx, ask)
	if err != nil {
		return nil, err
	}
	w := &offerWatch{a: a, q: q, job: shapeOf(ask.Job), sort: ask.Sort, out: make(chan view.OfferChange), last: map[watched]view.Offer{}}
	go w.run(ctx)
	return w.out, nil
}

// offerWatch is one watcher's. Its goroutine owns it.
type offerWatch struct {
	a     *Agent
	q     market.Query
	job   *market.JobShape
	sort  string
	out   chan view.OfferChange
	last  map[watched]view.Offer // as the watcher knows them
	begun bool
}

func (w *offerWatch) run(ctx context.Context) {
	defer close(w.out)
	refresh := time.NewTicker(watchRefresh)
	defer refresh.Stop()
	for fresh := true; ; {
		news := w.a.index.Changed() // before the look: nothing is missed in between
		if !w.look(ctx, fresh) {
			return
		}
		select {
		case <-news:
			fresh = false
		case <-refresh.C:
			fresh = true
		case <-w.a.stopped:
			return
		case <-ctx.Done():
			return
		}
		if !rest(ctx, watchPause) {
			return
		}
	}
}

// look compares what matches now with what the watcher knows. It reports whether the watch goes on.
func (w *offerWatch) look(ctx context.Context, fresh bool) bool {
	now, err := w.matches(ctx, fresh)
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		w.a.cfg.Log.Debug("a watch waits for offers", "err", err)
		return true // the network may come back
	}
	for _, key := range now.order {
		if !w.tell(ctx, key, now.offers[key]) {
			return false
		}
	}
	gone := slices.SortedFunc(maps.Keys(w.last), func(x, y watched) int { return cmp.Compare(w.last[x].Hash, w.last[y].Hash) })
	for _, key := range gone {
		if _, still := now.offers[key]; still {
			continue
		}
		if !w.send(ctx, view.OfferChange{Change: view.OfferGone, Offer: w.last[key]}) {
			return false
		}
		delete(w.last, key)
	}
	w.begun = true
	return true
}

// tell tells what is different about an offer.
func (w *offerWatch) tell(ctx context.Context, key watched, o view.Offer) bool {
	change := view.OfferChange{Offer: o}
	was, known := w.last[key]
	switch {
	case !known && !w.begun:
		change.Change = view.OfferHere
	case !known:
		change.Change = view.OfferNew
	default:
		change.Change = difference(was, o)
	}
	if known && was.Total != nil && o.Total != nil && *was.Total != *o.Total {
		change.Was = was.Total
	}
	if change.Change != "" && !w.send(ctx, change) {
		return false
	}
	w.last[key] = o
	return true
}

// difference names what changed of an offer; "" for nothing that matters.
func difference(was, now view.Offer) string {
	if was.Total != nil && now.Total != nil && was.Total.Currency == now.Total.Currency {
		switch cmp.Compare(now.Total.Micro, was.Total.Micro) {
		case -1:
			return view.OfferCheaper
		case 1:
			return view.OfferDearer
		}
	}
	switch cmp.Compare(now.Free, was.Free) {
	case -1:
		return view.OfferTaken
	case 1:
		return view.OfferFreed
	}
	return ""
}

func (w *offerWatch) send(ctx context.Context, change view.OfferChange) bool {
	change.AtMs = w.a.cfg.Clock().UnixMilli()
	select {
	case w.out <- change:
		return true
	case <-ctx.Done():
	case <-w.a.stopped:
	}
	return false
}

// matching is what matches at one moment.
type matching struct {
	offers map[watched]view.Offer
	order  []watched
}

// matches finds what matches now; fresh asks the network, too.
func (w *offerWatch) matches(ctx context.Context, fresh bool) (matching, error) {
	m := matching{offers: map[watched]view.Offer{}}
	var f found
	var err error
	if fresh {
		f, err = w.a.search(ctx, w.q, w.job)
	} else {
		f, err = w.a.held(ctx, w.job)
	}
	if err != nil {
		return m, err
	}
	rows, _, err := f.best(w.q, w.job.Slots, w.sort, 0)
	if err != nil {
		return m, err
	}
	for _, r := range rows {
		key := watched{r.Offer.Rig, r.Offer.ID}
		m.offers[key] = view.OfferOfRow(r.Row(), r.known.Hash, r.Match.Slots, false)
		m.order = append(m.order, key)
	}
	return m, nil
}
