package market_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"haggle/market"
	"haggle/market/markettest"
)

// watch is a renter's clocks beside its measure.
type watch struct {
	now  market.Instant
	boot market.Nonce
	m    market.Measure
}

// signs begins a watch whose renter signs at this moment.
func signs(boot byte) *watch {
	w := &watch{now: market.Instant{Mono: 50_000, Wall: markettest.Now}, boot: market.Nonce{boot}}
	w.m = w.m.Begin(w.boot, w.now)
	return w
}

// pass lets both clocks run.
func (w *watch) pass(d time.Duration) {
	w.now.Mono, w.now.Wall = w.now.Mono+d.Milliseconds(), w.now.Wall+d.Milliseconds()
}

// hear passes the time and then the rig's word.
func (w *watch) hear(d time.Duration, s market.JobState) bool {
	w.pass(d)
	var began bool
	w.m, began = w.m.Hear(market.StatusMessage{State: s}, w.now)
	return began
}

// wakes is a renter's program that begins again after a time, in the same boot of its machine or in another.
func (w *watch) wakes(d time.Duration, head market.Head, sameBoot bool) {
	w.pass(d)
	if !sameBoot {
		w.boot, w.now.Mono = market.Nonce{w.boot[0] + 1}, 7
	}
	w.m = w.m.Wake(w.boot, w.now, markettest.Terms(), head)
}

// miss is a probe without an answer, and a word of the rig behind it.
func (w *watch) miss() {
	sent := w.now
	w.hear(15*time.Second, market.JobRunning)
	w.m = w.m.Probe(false, sent)
}

func TestARenterMeasuresHowLongAJobCanHaveRun(t *testing.T) {
	const minute = time.Minute
	billed := func(ms int64) market.Head { return market.Head{Seq: 1, BilledMs: ms} }
	start := func(w *watch) {
		w.hear(minute, market.JobPreparing)
		w.hear(0, market.JobStarting)
		w.hear(time.Second, market.JobRunning)
	}
	tests := []struct {
		name string
		do   func(w *watch)
		ran  time.Duration
	}{
		{"from the signature, while nothing was heard", func(w *watch) { w.pass(minute) }, minute},
		{"from the word before the start, which may have been late", func(w *watch) { start(w); w.pass(minute) }, minute + 31*time.Second},
		{"but never from before the signature", func(w *watch) {
			w.hear(time.Second, market.JobStarting)
			w.hear(time.Second, market.JobRunning)
			w.pass(minute)
		}, minute + 2*time.Second},
		{"what another connection said does not count", func(w *watch) {
			w.hear(minute, market.JobPreparing)
			w.m = w.m.Lost()
			w.hear(minute, market.JobRunning)
		}, 2 * minute},
		{"a start is seen once", func(w *watch) { start(w); w.hear(minute, market.JobStarting); w.hear(minute, market.JobRunning) }, 2*minute + 31*time.Second},
		{"not between two words of a pause", func(w *watch) {
			start(w)
			w.hear(minute, market.JobPaused)
			w.hear(minute, market.JobPaused)
			w.hear(minute, market.JobPaused)
		}, minute + 31*time.Second},
		{"a pause that nobody watched may have been none", func(w *watch) {
			start(w)
			w.hear(minute, market.JobPaused)
			w.m = w.m.Lost()
			w.hear(minute, market.JobPaused)
		}, 2*minute + 31*time.Second},
		{"after a restart of the program", func(w *watch) { start(w); w.wakes(time.Hour, market.Head{}, true) }, time.Hour + 31*time.Second},
		{"after another boot, as long as it may run unattended", func(w *watch) { start(w); w.wakes(100*time.Hour, market.Head{}, false) }, 13*minute + 31*time.Second},
		{"after a short boot by the wall clock, as well as clocks agree", func(w *watch) { start(w); w.wakes(7*minute, market.Head{}, false) }, 9*minute + 31*time.Second},
		{"after a boot with a store that was put back, by the wall clock", func(w *watch) {
			start(w)
			w.m = w.m.PutBack()
			w.wakes(100*time.Hour, market.Head{}, false)
		}, 100*time.Hour + 2*minute + 31*time.Second},
		{"a shorter one than a receipt's time is no less", func(w *watch) { start(w); w.wakes(30*time.Second, market.Head{}, false) }, 3*minute + 31*time.Second},
		{"after a boot that set the clock back", func(w *watch) { start(w); w.wakes(-24*time.Hour, market.Head{}, false) }, 13*minute + 31*time.Second},
		{"what was signed was true", func(w *watch) { start(w); w.wakes(time.Second, billed(3_600_000), true) }, time.Hour + 3*minute},
		{"what was signed a while after the last word was measured all the same", func(w *watch) {
			start(w)
			w.pass(minute)
			w.m = w.m.Signed(billed(60_000), markettest.Terms(), w.now)
		}, minute + 31*time.Second},
		{"but what the tolerance let pass is no measure", func(w *watch) { start(w); w.wakes(time.Second, billed(34_010), true) }, 32 * time.Second},
		{"the wall clock is no clock", func(w *watch) { start(w); w.now.Wall += 24 * 3_600_000 }, 31 * time.Second},
		{"one lost probe says nothing", func(w *watch) {
			start(w)
			w.miss()
			w.m = w.m.Probe(true, w.now)
			w.miss()
		}, 30*time.Second + 31*time.Second},
		{"not between the first and the last of a row of lost probes, but for a reading of the clock", func(w *watch) {
			start(w)
			for range 4 {
				w.miss()
			}
			w.m = w.m.Probe(true, w.now)
			w.pass(minute)
		}, minute + 15*time.Second + 2*time.Second + 31*time.Second},
		{"lost probes on a network that is silent are none", func(w *watch) {
			start(w)
			for range 4 {
				w.pass(15 * time.Second)
				w.m = w.m.Probe(false, w.now)
			}
		}, minute + 31*time.Second},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			w := signs(1)
			c.do(w)
			if got := w.m.Seen(w.now).RanMs; got != c.ran.Milliseconds() {
				t.Errorf("ran %d ms, want %d", got, c.ran.Milliseconds())
			}
		})
	}
}

func TestAMachineWithoutABootClockCountsTheLargerOfBothClocks(t *testing.T) {
	w := &watch{now: market.Instant{Mono: 5, Wall: markettest.Now}}
	w.m = w.m.Begin(w.boot, w.now)
	w.pass(time.Minute)
	w.now.Wall += 3_600_000 // it slept: only the wall clock knows
	if got := w.m.Seen(w.now).RanMs; got != 3_660_000 {
		t.Errorf("ran %d ms", got)
	}
}

func TestNobodyWhoWatchedBelievesAll(t *testing.T) {
	var m market.Measure
	now := market.Instant{Mono: 9, Wall: markettest.Now}
	m, _ = m.Hear(market.StatusMessage{State: market.JobRunning}, now)
	m = m.Wake(market.Nonce{1}, now, markettest.Terms(), market.Head{BilledMs: 5}).Probe(false, now).Signed(market.Head{BilledMs: 9}, markettest.Terms(), now).Lost()
	if s := m.Seen(now); s.RanMs != market.Unlimited || s.SinceMs != market.Unlimited || !m.IsZero() {
		t.Errorf("%+v", s)
	}
}

// TestAMeasureNeverRefusesAnHonestRig plays a job and its words, which come in order and up to ten seconds late, over
// connections that break and restarts of the renter's program. The measure never falls short of the truth by more than the
// tolerance, and never goes beyond the time since the signature.
func TestAMeasureNeverRefusesAnHonestRig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := signs(1)
		var ran, passed, arrived int64
		var head market.Head
		state := market.JobPreparing
		type word struct {
			state   market.JobState
			attempt uint32
			at      int64
		}
		var coming []word
		attempt := uint32(0)
		say := func() {
			at := max(arrived, passed+rapid.SampledFrom([]int64{0, 10, 500, 9_000}).Draw(t, "delay"))
			coming, arrived = append(coming, word{state, attempt, at}), at
		}
		say()
		advance := func(ms int64) {
			for end := passed + ms; passed < end; {
				step := min(end-passed, 500)
				for len(coming) > 0 && coming[0].at <= passed {
					w.m, _ = w.m.Hear(market.StatusMessage{State: coming[0].state, Attempt: coming[0].attempt}, w.now)
					coming = coming[1:]
				}
				if state == market.JobRunning {
					ran += step
				}
				passed += step
				w.pass(time.Duration(step) * time.Millisecond)
			}
		}
		for range 30 {
			switch rapid.IntRange(0, 6).Draw(t, "event") {
			case 0:
				w.m, coming, arrived = w.m.Lost(), nil, passed
				say()
			case 1:
				gap := rapid.Int64Range(0, 170_000).Draw(t, "down")
				coming, arrived = nil, 0
				if state == market.JobRunning {
					ran += gap
				}
				passed += gap
				w.wakes(time.Duration(gap)*time.Millisecond, head, rapid.Bool().Draw(t, "same boot"))
				say()
			case 2, 3:
				next := map[market.JobState]market.JobState{
					market.JobPreparing: market.JobRunning, market.JobRunning: market.JobPaused, market.JobPaused: market.JobPreparing,
				}
				if state == market.JobPaused {
					attempt++
				}
				state = next[state]
				say()
			default:
				say()
			}
			advance(rapid.Int64Range(0, 60_000).Draw(t, "pass"))
			seen := w.m.Seen(w.now)
			if seen.RanMs+seen.RanMs/1000+2000 < ran {
				t.Fatalf("the job ran %d ms, and the renter believes %d", ran, seen.RanMs)
			}
			if seen.SinceMs > passed+30*300_000 || seen.RanMs > seen.SinceMs {
				t.Fatalf("%d ms have passed, and the renter believes %+v", passed, seen)
			}
			head.BilledMs = ran
		}
	})
}
