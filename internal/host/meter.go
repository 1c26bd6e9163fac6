package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"haggle/market"
	"haggle/nvml"
	"haggle/runtime"
)

// gauge adds up what one leased card did, as evidence beside the bill. It counts what was read and never guesses: a
// stretch without readings adds nothing, and what was never read stays unknown.
type gauge struct {
	card market.Hash
	use  market.SlotUse
	last *nvml.Sample // nil before the first reading in this process
}

// newGauge goes on from what earlier receipts or the stored state said of the slot.
func newGauge(s market.GrantedSlot, before []market.SlotUse) *gauge {
	g := &gauge{card: s.Card, use: market.SlotUse{Index: s.Index}}
	for _, u := range before {
		if u.Index == s.Index {
			g.use = u
		}
	}
	return g
}

// add takes a reading, and reports whether it is a new one. The same reading twice adds nothing.
func (g *gauge) add(s nvml.Sample) bool {
	if g.last == nil {
		g.last = &s
		raise(&g.use.PeakMemory, s.MemUsedBytes)
		return false
	}
	passed := s.At - g.last.At
	if passed <= 0 {
		return false
	}
	if util, ok := s.UtilPermille.Get(); ok {
		ms := min(passed, time.Duration(market.MaxTickMs)*time.Millisecond).Milliseconds()
		grow(&g.use.UtilPermilleMs, int64(util)*ms)
	}
	rise(&g.use.EnergyMJ, g.last.EnergyMilliJoule, s.EnergyMilliJoule)
	rise(&g.use.ECCUncorrected, g.last.ECCUncorrected, s.ECCUncorrected)
	raise(&g.use.PeakMemory, s.MemUsedBytes)
	g.last = &s
	return true
}

// grow adds to an optional sum. It makes a new number: the old one may stand in a receipt.
func grow(sum **int64, by int64) {
	n := by
	if *sum != nil {
		n += **sum
	}
	*sum = &n
}

// rise adds how much a counter has grown. A counter that fell was reset.
func rise(sum **int64, before, now nvml.Opt[int64]) {
	was, ok1 := before.Get()
	is, ok2 := now.Get()
	if ok1 && ok2 && is >= was {
		grow(sum, is-was)
	}
}

// raise keeps the greatest value.
func raise(peak **int64, now nvml.Opt[int64]) {
	if v, ok := now.Get(); ok && (*peak == nil || v > **peak) {
		*peak = &v
	}
}

// use reads the lease's cards and returns what they did so far, and whether each of them was read anew.
func (l *lease) use() ([]market.SlotUse, bool) {
	if l.state.Job != market.JobRunning {
		return nil, false
	}
	anew := true
	uses := make([]market.SlotUse, 0, len(l.gauges))
	for _, g := range l.gauges {
		s, xid, ok := l.d.rack.reading(g.card)
		anew = ok && g.add(s) && anew
		if xid != nil {
			g.use.LastXid = xid
		}
		uses = append(uses, g.use)
	}
	return uses, anew
}

// usage asks the engine what a job uses; nil where the figures are lost or the engine does not count.
func (d *Daemon) usage(ctx context.Context, r Record) (*runtime.Usage, error) {
	u, err := d.cfg.Runtime.Usage(ctx, jobName(r.Lease))
	switch {
	case errors.Is(err, runtime.ErrNotFound) || errors.Is(err, runtime.ErrUnsupported):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("ask what job uses: %w", err)
	}
	return &u, nil
}

// counted turns an engine's counter into a number of the market.
func counted(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// readings tells what the leased cards do now, while the job runs.
func (l *lease) readings() []market.CardUse {
	if l.state.Job != market.JobRunning {
		return nil
	}
	var list []market.CardUse
	for _, g := range l.gauges {
		if s, _, ok := l.d.rack.reading(g.card); ok {
			list = append(list, market.CardUse{
				Index: g.use.Index, UtilPermille: number(s.UtilPermille), MemoryBytes: number(s.MemUsedBytes),
				PowerMW: number(s.PowerMilliWatt), TempC: number(s.TemperatureC),
			})
		}
	}
	return list
}

// load makes simulated cards busy while the job runs.
func (l *lease) load(busy bool) {
	for _, g := range l.gauges {
		g.last = nil // what the card did before belongs to nobody
		if busy {
			l.d.rack.begin(g.card)
		}
		if err := l.d.rack.setLoad(g.card, busy); err != nil {
			l.d.log.Warn("load of a simulated card", slog.String("lease", l.id.Short()), slog.Any("err", err))
		}
	}
}
