package market_test

import (
	"testing"

	"pgregory.net/rapid"

	"haggle/market"
	"haggle/market/markettest"
)

// drawEvent draws any event, sensible or not.
func drawEvent(t *rapid.T, l market.Lease) market.Event {
	switch rapid.IntRange(0, 15).Draw(t, "event") {
	case 0:
		return market.Signed{}
	case 1:
		return market.Prepared{}
	case 2:
		return market.Started{}
	case 3:
		return market.Failed{Reason: market.ReasonStart}
	case 4:
		return market.Exited{Code: 1, RanMs: rapid.Int64Range(0, 1e6).Draw(t, "ran"), OOM: rapid.Bool().Draw(t, "oom"), Out: rapid.Int64Range(0, 1e12).Draw(t, "last")}
	case 5:
		return market.Contact{Away: rapid.Bool().Draw(t, "away")}
	case 6, 7:
		if l.Draft != nil {
			return market.Agreed{Receipt: *l.Draft, Hash: market.HashOf(l.Draft.Body())}
		}
		return market.Agreed{Receipt: market.Receipt{Seq: rapid.Uint32().Draw(t, "seq")}}
	case 8:
		return market.Rejected{}
	case 9:
		return market.Stop{Reason: market.ReasonRenter, Kill: rapid.Bool().Draw(t, "kill")}
	case 10:
		return market.Restarted{}
	case 11:
		return market.Removed{}
	case 12:
		return market.Scrubbed{Cards: []market.CardWipe{{Bytes: 1}}}
	}
	return market.Tick{In: rapid.Int64Range(0, 1e12).Draw(t, "in"), Out: rapid.Int64Range(0, 1e12).Draw(t, "out")}
}

// TestStepKeepsItsPromises plays random lives on random clocks and checks what Step promises after every event. The
// renter's own check must accept every receipt that is proposed: an honest rig is never refused.
func TestStepKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms := markettest.Terms()
		terms.Budget = market.Micro(rapid.Int64Range(1, 100_000).Draw(t, "budget"))
		terms.Prices.In = market.Rate(rapid.Int64Range(0, 100_000).Draw(t, "price in"))
		terms.Prices.Out = market.Rate(rapid.Int64Range(0, 100_000).Draw(t, "price out"))
		terms.Prices.Disk = market.Rate(rapid.Int64Range(0, 100_000).Draw(t, "disk price"))
		if rapid.Bool().Draw(t, "limited credit") {
			terms.Limits.Credit = rapid.Int64Range(0, 100_000).Draw(t, "credit")
		}
		now := market.Instant{Mono: 1000, Wall: markettest.Now}
		l := market.NewLease(market.LeaseID{1}, terms, now, rapid.Bool().Draw(t, "early"))
		var observed int64 // what an honest witness saw running at most
		for range 60 {
			gap := rapid.SampledFrom([]int64{0, 1, 900, 1000, 1100, 30_000, 200_000}).Draw(t, "gap")
			now.Mono, now.Wall = now.Mono+gap, now.Wall+gap+rapid.Int64Range(-5, 5).Draw(t, "drift")
			if l.Job == market.JobRunning {
				observed += gap
			}
			e := drawEvent(t, l)
			next, actions, _ := market.Step(l, now, e)
			checkStep(t, l, next, actions)
			if next.Meter.BilledMs > observed {
				t.Fatalf("billed %d ms of %d that were observed", next.Meter.BilledMs, observed)
			}
			l = next
		}
	})
}

func checkStep(t *rapid.T, old, l market.Lease, actions []market.Action) {
	switch {
	case l.Total() > l.Terms.Most():
		t.Fatalf("total %s is over the budget of %s", l.Total(), l.Terms.Most())
	case l.Meter.In > l.Meter.SeenIn || l.Meter.Out > l.Meter.SeenOut || l.Meter.In < old.Meter.In || l.Meter.Out < old.Meter.Out:
		t.Fatal("traffic was billed that was not seen, or the bill for it fell")
	case l.Wiping && l.Job != market.JobEnded || old.Job == market.JobEnded && l.Wiping && !old.Wiping:
		t.Fatal("cards are wiped that a job may use, or again")
	case l.Touched && old.Holds() && !l.Holds() && len(l.Cards) == 0:
		t.Fatal("slots are free before the memory of their cards is overwritten")
	case l.Meter.BilledMs > l.Terms.DurationMs:
		t.Fatal("billed more than was leased")
	case old.Job == market.JobEnded && l.Job != market.JobEnded:
		t.Fatal("an ended job came back")
	case old.Head.Seq > l.Head.Seq || old.Head.BilledMs > l.Head.BilledMs || old.Head.Total > l.Head.Total:
		t.Fatal("the agreed head fell")
	case l.Draft != nil && l.Draft.BilledMs > l.Meter.BilledMs:
		t.Fatal("the meter fell below its own draft")
	case old.Draft != nil && l.Draft != nil && l.Draft.Seq == old.Draft.Seq && market.HashOf(l.Draft.Body()) != market.HashOf(old.Draft.Body()):
		t.Fatal("a draft changed")
	case l.Job == market.JobEnded && l.Exit == nil:
		t.Fatal("a job ended without an exit")
	}
	for _, a := range actions {
		p, ok := a.(market.Propose)
		if !ok {
			continue
		}
		if err := market.CheckReceipt(l.ID, l.Terms, l.Head, p.Receipt, market.Unlimited); err != nil {
			t.Fatalf("an honest receipt is refused: %v", err)
		}
	}
}

func FuzzStep(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		now := market.Instant{Mono: 1, Wall: markettest.Now}
		l := market.NewLease(market.LeaseID{1}, markettest.Terms(), now, rapid.Bool().Draw(t, "early"))
		for range 40 {
			gap := rapid.Int64Range(0, 1<<40).Draw(t, "gap")
			now.Mono, now.Wall = now.Mono+gap, now.Wall+gap
			next, actions, _ := market.Step(l, now, drawEvent(t, l))
			checkStep(t, l, next, actions)
			l = next
		}
	}))
}

func TestAStateIsReadAsItWasKept(t *testing.T) {
	l := market.NewLease(market.LeaseID{1}, markettest.Terms(), market.Instant{Wall: markettest.Now}, false)
	for _, e := range []market.Event{market.Signed{}, market.Prepared{}, market.Started{}, market.Exited{Code: 3}} {
		l, _, _ = market.Step(l, market.Instant{Mono: 10, Wall: markettest.Now + 10}, e)
	}
	var back market.Lease
	if err := market.DecodeState(market.EncodeState(l), &back); err != nil {
		t.Fatal(err)
	}
	if string(market.EncodeState(back)) != string(market.EncodeState(l)) {
		t.Error("the state changed on its way")
	}
}
