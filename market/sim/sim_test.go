package sim_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"

	"haggle/market/sim"
)

// What is played; `make soak` plays more.
var (
	seeds = flag.Uint64("seeds", 2000, "lives that are played")
	first = flag.Uint64("first", 1, "the seed of the first")
)

// progressEvery is how many lives pass between two words of progress.
const progressEvery = 10_000

// TestEveryLifeKeepsItsPromises plays many lives with faults of all kinds, in two halves beside each other.
func TestEveryLifeKeepsItsPromises(t *testing.T) {
	for half := range uint64(2) {
		t.Run(fmt.Sprintf("half %d", half+1), func(t *testing.T) {
			t.Parallel()
			var sum sim.Stats
			var ends []string
			for n := half; n < *seeds; n += 2 {
				r := sim.Run(*first+n, sim.Options{})
				if r.Fault != "" {
					t.Fatal(r)
				}
				sum = add(sum, r.Stats)
				if !slices.Contains(ends, r.Stats.End) {
					ends = append(ends, r.Stats.End)
				}
				if n/2%progressEvery == progressEvery-1 {
					t.Logf("%d lives: %+v", n/2+1, sum)
				}
			}
			t.Logf("%+v, ends %v", sum, ends)
			if *seeds >= 2000 && (min(sum.Crashes, sum.Restores, sum.Breaks, sum.Receipts, sum.Payments) < 100 || len(ends) < 8) {
				t.Errorf("the lives are too much alike: %+v, ends %v", sum, ends)
			}
		})
	}
}

func add(sum, s sim.Stats) sim.Stats {
	sum.Events, sum.Writes, sum.Crashes, sum.Restores = sum.Events+s.Events, sum.Writes+s.Writes, sum.Crashes+s.Crashes, sum.Restores+s.Restores
	sum.Breaks, sum.Receipts, sum.Payments = sum.Breaks+s.Breaks, sum.Receipts+s.Receipts, sum.Payments+s.Payments
	sum.MostUnsigned, sum.MostUnattended = max(sum.MostUnsigned, s.MostUnsigned), max(sum.MostUnattended, s.MostUnattended)
	sum.Healed, sum.BilledMs = max(sum.Healed, s.Healed), sum.BilledMs+s.BilledMs
	return sum
}

func TestASeedPlaysTheSameLifeAgain(t *testing.T) {
	for seed := range uint64(20) {
		a, b := sim.Run(seed, sim.Options{Trace: true}), sim.Run(seed, sim.Options{Trace: true})
		if !slices.Equal(a.Trace, b.Trace) || a.Stats != b.Stats {
			t.Errorf("seed %d: two lives", seed)
		}
	}
}

func TestALifeWithoutFaultsLosesNothing(t *testing.T) {
	for seed := uint64(1); seed <= 50; seed++ {
		r := sim.Run(seed, sim.Options{Calm: true})
		if r.Fault != "" || r.Stats.Crashes+r.Stats.Restores+r.Stats.Breaks > 0 || r.Stats.Void {
			t.Fatal(r, r.Stats)
		}
	}
}
