package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"haggle/market"
	"haggle/market/markettest"
)

// The table that is measured: a million offers of as many rigs, asked with five clauses of which about one offer in five hundred holds.
const (
	tableOffers   = 1_000_000
	tableQuestion = "gpu_name=RTX_40* num_gpus>=2 gpu_ram>=24 dph<0.60 geolocation in [DE,NL]"
	tableBest     = 50
	tableChanges  = tableOffers / 100 // in a second
)

func tableFigures() []figure {
	held := &heldTable{}
	return []figure{
		{name: "query", unit: "offers/s", peer: "the aim of 500000 a core", aim: 1, atLeast: true, measure: held.query},
		{name: "query-columns", unit: "ns an offer", peer: "a loop over five columns", aim: 5, measure: held.columns},
		{name: "query-best", unit: "ms p99", peer: "the aim", aim: 1, measure: held.best},
		{name: "query-changes", unit: "ms of each second", peer: "the same changes without a view", aim: 1.5, measure: held.changes},
		{name: "offer-bytes", unit: "bytes an offer", peer: "the aim", aim: 1, measure: held.bytes},
		{name: "snapshot-verify", unit: "offers/s", peer: "bare ed25519 verify on all cores", aim: 0.8, atLeast: true, measure: snapshotVerified},
	}
}

// heldTable is the table, made by the first figure that needs it.
type heldTable struct {
	table *market.Table
	heap  uint64 // bytes that it takes
	fault error  // that kept it from being made; a second try would end as the first did
}

// fill makes the table.
func (h *heldTable) fill(ctx context.Context) error {
	if h.table != nil || h.fault != nil {
		return h.fault
	}
	before := liveHeap()
	table := market.NewTable(market.TableConfig{Offers: tableOffers})
	for from := 0; from < tableOffers; from += madeAtOnce {
		for _, m := range makeOffers(uint64(from), madeAtOnce, func(_ *rand.Rand, i int) int { return from + i }) {
			if !table.Put(m.raw, &m.offer, m.standing) {
				h.fault = errors.New("the table has no room for " + m.offer.Name)
				return h.fault
			}
		}
		if h.fault = ctx.Err(); h.fault != nil {
			return h.fault
		}
	}
	h.table, h.heap = table, liveHeap()-before
	return nil
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC() // what the first one found to be finalised goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// ask is the question about the table.
func (h *heldTable) ask() (market.TableQuery, error) {
	q, err := market.ParseQuery(tableQuestion)
	return market.TableQuery{
		Query: q, Now: markettest.Now + time.Minute.Milliseconds(), Limit: tableBest, Order: market.SortBest,
		Job: &market.JobShape{Slots: 1, DurationMs: time.Hour.Milliseconds()},
	}, err
}

// asked returns the shortest time that a whole answer took: clauses, order, and the best decoded.
func (h *heldTable) asked(ctx context.Context) (time.Duration, error) {
	if err := h.fill(ctx); err != nil {
		return 0, err
	}
	q, err := h.ask()
	if err != nil {
		return 0, err
	}
	least := time.Duration(1<<63 - 1)
	for range rounds {
		begun := time.Now()
		answer, err := h.table.Select(q)
		if err != nil || len(answer.Best) != tableBest || ctx.Err() != nil {
			return 0, errors.Join(err, ctx.Err(), errors.New("the question has too few answers"))
		}
		least = min(least, time.Since(begun))
	}
	return least, nil
}

func (h *heldTable) query(ctx context.Context) (ours, theirs float64, err error) {
	took, err := h.asked(ctx)
	return tableOffers / took.Seconds(), 500_000, err
}

// columns compares a question with the least that could answer it: five comparisons of a byte for each offer.
func (h *heldTable) columns(ctx context.Context) (ours, theirs float64, err error) {
	took, err := h.asked(ctx)
	if err != nil {
		return 0, 0, err
	}
	var columns [5][]byte
	random := rand.New(rand.NewPCG(1, 1))
	for i := range columns {
		columns[i] = make([]byte, tableOffers)
		for k := range columns[i] {
			columns[i][k] = byte(random.Uint32())
		}
	}
	least, found := time.Duration(1<<63-1), 0
	for range rounds {
		begun := time.Now()
		for k := range tableOffers {
			if columns[0][k] < 128 && columns[1][k] < 128 && columns[2][k] < 128 && columns[3][k] < 128 && columns[4][k] < 128 {
				found++
			}
		}
		least = min(least, time.Since(begun))
	}
	if found == 0 {
		return 0, 0, errors.New("the loop found nothing")
	}
	return float64(took.Nanoseconds()) / tableOffers, float64(least.Nanoseconds()) / tableOffers, nil
}

// best reads a standing answer between changes, as a screen does, and returns the time that all but one in a hundred reads take.
func (h *heldTable) best(ctx context.Context) (ours, theirs float64, err error) {
	const aim = 5 // ms
	view, err := h.watch(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer view.Stop()
	var times []time.Duration
	for i := range uint64(5) {
		changes := makeChanges(i)
		for len(changes) > 0 {
			h.put(changes[:tableChanges/100])
			changes = changes[tableChanges/100:]
			begun := time.Now()
			if len(view.Best()) != tableBest {
				return 0, 0, errors.New("the view shows too few")
			}
			times = append(times, time.Since(begun))
		}
		if ctx.Err() != nil {
			return 0, 0, ctx.Err()
		}
	}
	slices.Sort(times)
	return float64(times[len(times)*99/100].Microseconds()) / 1000, aim, nil
}

func (h *heldTable) watch(ctx context.Context) (*market.View, error) {
	if err := h.fill(ctx); err != nil {
		return nil, err
	}
	q, err := h.ask()
	if err != nil {
		return nil, err
	}
	return h.table.Watch(q)
}

func (h *heldTable) put(changes []made) {
	for i := range changes {
		h.table.Put(changes[i].raw, &changes[i].offer, changes[i].standing)
	}
}

// changes compares a second's changes with a view and without.
func (h *heldTable) changes(ctx context.Context) (ours, theirs float64, err error) {
	second := func(seed uint64) float64 {
		changes := makeChanges(seed)
		begun := time.Now()
		h.put(changes)
		return float64(time.Since(begun).Microseconds()) / 1000
	}
	ours, theirs = 1e12, 1e12
	for i := range uint64(3) {
		view, err := h.watch(ctx)
		if err != nil {
			return 0, 0, err
		}
		ours = min(ours, second(100+i))
		view.Stop()
		theirs = min(theirs, second(200+i))
	}
	return ours, theirs, nil
}

// bytes is all that the table takes: the sealed bytes, every column, and what the renter knows of each offer.
func (h *heldTable) bytes(ctx context.Context) (ours, theirs float64, err error) {
	const aim = 600
	err = h.fill(ctx)
	return float64(h.heap) / tableOffers, aim, err
}
