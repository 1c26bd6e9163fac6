package market_test

import (
	"testing"

	"haggle/market"
	"haggle/market/markettest"
)

// TestAJobIsIdleOnlyWhereEveryCardIsKnownToBe plays two cards for two minutes with a bound of 100 permille over a minute.
func TestAJobIsIdleOnlyWhereEveryCardIsKnownToBe(t *testing.T) {
	unknown := int64(-1)
	tests := []struct {
		name        string
		first, next int64 // permille of each card's use, or unknown
		read        bool
		idle        bool
	}{
		{"both idle", 0, 99, true, true},
		{"one at the bound", 0, 100, true, false},
		{"one busy", 900, 0, true, false},
		{"one unknown", 0, unknown, true, false},
		{"not read anew", 0, 0, false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			terms := markettest.Terms()
			terms.Slots = []market.GrantedSlot{{Index: 0}, {Index: 4}}
			terms.Idle = &market.IdleStop{Permille: 100, ForMs: 60_000}
			l := after(t, terms, market.Signed{}, market.Prepared{}, market.Started{})
			now := market.Instant{Mono: 4000, Wall: markettest.Now + 4000}
			sums := [2]int64{}
			for range 120 {
				now.Mono, now.Wall = now.Mono+1000, now.Wall+1000
				tick := market.Tick{Read: test.read}
				for i, permille := range []int64{test.first, test.next} {
					sums[i] += permille * 1000
					sum := sums[i]
					use := market.SlotUse{Index: terms.Slots[i].Index, UtilPermilleMs: &sum}
					if permille == unknown {
						use.UtilPermilleMs = nil
					}
					tick.Slots = append(tick.Slots, use)
				}
				l, _, _ = market.Step(l, now, tick)
			}
			if idle := l.Reason == market.ReasonIdle; idle != test.idle {
				t.Errorf("%s, %s, idle for %d ms", l.Job, l.Reason, l.IdleMs)
			}
		})
	}
}
