package sim_test

import (
	"testing"

	"haggle/market/sim"
)

// TestAnHonestSideLosesNoMoreThanItsLimits lets one side cheat. What the honest one can lose is bounded in every life, and in some
// of them the cheat is proved.
func TestAnHonestSideLosesNoMoreThanItsLimits(t *testing.T) {
	for _, cheat := range sim.Cheats() {
		t.Run(string(cheat), func(t *testing.T) {
			t.Parallel()
			var sum sim.Stats
			for seed := uint64(1); seed <= 100; seed++ {
				r := sim.Run(seed, sim.Options{Cheat: cheat})
				if r.Fault != "" {
					t.Fatal(r)
				}
				sum.Frauds += r.Stats.Frauds
				sum.Receipts += r.Stats.Receipts
				sum.Refusals += r.Stats.Refusals
			}
			if (cheat == sim.CheatFork || cheat == sim.CheatDouble) != (sum.Frauds > 0) {
				t.Errorf("%d lives prove a fraud", sum.Frauds)
			}
			t.Logf("%d receipts, %d refusals, %d frauds proved", sum.Receipts, sum.Refusals, sum.Frauds)
		})
	}
}
