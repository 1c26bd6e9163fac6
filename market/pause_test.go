package market_test

import (
	"slices"
	"testing"

	"haggle/market"
	"haggle/market/markettest"
)

// after plays events a second apart and returns the lease that they lead to.
func after(t *testing.T, terms market.Terms, events ...market.Event) market.Lease {
	t.Helper()
	now := market.Instant{Mono: 1000, Wall: markettest.Now}
	l := market.NewLease(market.LeaseID{1}, terms, now, false)
	for _, e := range events {
		now.Mono, now.Wall = now.Mono+1000, now.Wall+1000
		next, _, err := market.Step(l, now, e)
		if err != nil {
			t.Fatal(err)
		}
		l = next
	}
	return l
}

func TestARestartedShellDoesOnlyWhatALeaseStillNeeds(t *testing.T) {
	sends := markettest.Terms()
	sends.Upload = 5
	keep := market.Stop{Reason: market.ReasonRenter, Keep: true}
	run := []market.Event{market.Signed{}, market.Prepared{}, market.Started{}}
	paused := append(slices.Clone(run), keep, market.Exited{})
	for name, c := range map[string]struct {
		terms  market.Terms
		events []market.Event
		want   []string
		holds  bool
	}{
		"it is being made":            {sends, []market.Event{market.Signed{}}, []string{"prepare"}, true},
		"it waits for the renter":     {sends, []market.Event{market.Signed{}, market.Prepared{}}, nil, true},
		"it is to be started":         {sends, []market.Event{market.Signed{}, market.Prepared{}, market.Begin{}}, []string{"start"}, true},
		"it is paused, cards unwiped": {markettest.Terms(), paused, []string{"scrub", "propose #1 interval billed 1000ms total 0.0001"}, true},
		"it is paused":                {markettest.Terms(), append(slices.Clone(paused), market.Scrubbed{}), []string{"propose #1 interval billed 1000ms total 0.0001"}, false},
		"it is resumed": {markettest.Terms(), append(slices.Clone(paused), market.Scrubbed{}, market.Resume{}), []string{
			"prepare", "propose #1 interval billed 1000ms total 0.0001",
		}, true},
	} {
		l := after(t, c.terms, c.events...)
		var got []string
		for _, a := range market.Pending(l) {
			got = append(got, a.String())
		}
		if !slices.Equal(got, c.want) || l.Holds() != c.holds || l.Closed() {
			t.Errorf("%s: %q, holds %t", name, got, l.Holds())
		}
	}
}

func TestALeaseIsNotStartedWithoutEnd(t *testing.T) {
	l := after(t, markettest.Terms(), market.Signed{}, market.Prepared{}, market.Started{},
		market.Stop{Reason: market.ReasonRenter, Keep: true}, market.Exited{}, market.Scrubbed{})
	now := market.Instant{Mono: 10_000, Wall: markettest.Now + 10_000}
	starts := 0
	for ; starts < 1000; starts++ {
		next, _, err := market.Step(l, now, market.Resume{})
		if err != nil {
			if market.CodeOf(err) != market.CodeUnsupported {
				t.Error(err)
			}
			break
		}
		if l, _, err = market.Step(next, now, market.Failed{Reason: market.ReasonPrepare}); err != nil {
			t.Fatal(err)
		}
	}
	if starts != 100 || l.Disk != 0 || l.Job != market.JobPaused {
		t.Errorf("%d starts, disk of attempt %d, %s", starts, l.Disk, l.Job)
	}
}
