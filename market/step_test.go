package market_test

import (
	"testing"

	"pgregory.net/rapid"

	"haggle/market"
	"haggle/market/markettest"
)

// drawEvent draws any event, sensible or not.
func drawEvent(t *rapid.T, l market.Lease) market.Event {
	switch rapid.IntRange(0, 20).Draw(t, "event") {
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
		return market.Stop{Reason: market.ReasonRenter, Kill: rapid.Bool().Draw(t, "kill"), Keep: rapid.Bool().Draw(t, "keep")}
	case 10:
		return market.Restarted{}
	case 11:
		return market.Removed{}
	case 12:
		return market.Scrubbed{Cards: []market.CardWipe{{Bytes: 1}}}
	case 13:
		return market.Begin{}
	case 14, 15:
		return market.Resume{}
	case 16:
		add, ms := rapid.Int64Range(-5, 50_000).Draw(t, "more budget"), rapid.Int64Range(-5, 500_000).Draw(t, "more time")
		return market.Extend{Extension: l.Terms.Extend(l.ID, l.Extension, ms, market.Micro(add), markettest.Now)}
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
		terms.Upload = rapid.SampledFrom([]int64{0, 0, 5}).Draw(t, "upload")
		now := market.Instant{Mono: 1000, Wall: markettest.Now}
		l := market.NewLease(market.LeaseID{1}, terms, now, rapid.Bool().Draw(t, "early"))
		var observed, kept int64 // what an honest witness saw running, and kept, at most
		for range 80 {
			gap := rapid.SampledFrom([]int64{0, 1, 900, 1000, 1100, 30_000, 200_000}).Draw(t, "gap")
			now.Mono, now.Wall = now.Mono+gap, now.Wall+gap+rapid.Int64Range(-5, 5).Draw(t, "drift")
			if l.Job == market.JobRunning {
				observed += gap
			}
			if l.Job == market.JobPaused {
				kept += gap
			}
			e := drawEvent(t, l)
			next, actions, _ := market.Step(l, now, e)
			checkStep(t, l, next, actions)
			if next.Meter.BilledMs > observed {
				t.Fatalf("billed %d ms of %d that were observed", next.Meter.BilledMs, observed)
			}
			if next.Meter.KeptMs > kept {
				t.Fatalf("billed %d ms of a kept disk, of %d that it was kept", next.Meter.KeptMs, kept)
			}
			l = next
		}
	})
}

func checkStep(t *rapid.T, old, l market.Lease, actions []market.Action) {
	terms := l.Current()
	switch {
	case l.Total() > terms.Most():
		t.Fatalf("total %s is over the budget of %s", l.Total(), terms.Most())
	case l.Total() < old.Head.Total || l.Meter.KeptMs < old.Meter.KeptMs || l.PausedMs < old.PausedMs:
		t.Fatal("what was used, or the time of the pauses, fell")
	case terms.Budget < old.Current().Budget || terms.DurationMs < old.Current().DurationMs || terms.Deadline < old.Current().Deadline:
		t.Fatal("a limit of the terms fell")
	case (l.Job == market.JobStarting || l.Job == market.JobRunning) && l.Awaits():
		t.Fatal("a job started before all that it needs was sent")
	case l.Job == market.JobPaused && (l.Exit == nil || l.Gone || l.Keeping || l.Debt != market.DebtOpen):
		t.Fatal("a paused lease is over")
	case l.Attempt < old.Attempt || l.Disk < old.Disk || l.Disk > l.Attempt || l.Job == market.JobRunning && l.Disk != l.Attempt:
		t.Fatal("an attempt or its disk came back")
	case l.Attempt > old.Attempt && (old.Job != market.JobPaused || old.Holds()):
		t.Fatal("an attempt began before the one before had left its cards")
	case l.Meter.In > l.Meter.SeenIn || l.Meter.Out > l.Meter.SeenOut || l.Meter.In < old.Meter.In || l.Meter.Out < old.Meter.Out:
		t.Fatal("traffic was billed that was not seen, or the bill for it fell")
	case l.Wiping && l.Job != market.JobEnded && l.Job != market.JobPaused || old.Job == market.JobEnded && l.Wiping && !old.Wiping:
		t.Fatal("cards are wiped that a job may use, or again")
	case l.Touched && old.Holds() && !l.Holds() && len(l.Cards) == 0:
		t.Fatal("slots are free before the memory of their cards is overwritten")
	case l.Meter.BilledMs > terms.DurationMs || l.AttemptMs() < 0:
		t.Fatal("billed more than was leased")
	case old.Job == market.JobEnded && l.Job != market.JobEnded:
		t.Fatal("an ended job came back")
	case old.Head.KeptMs > l.Head.KeptMs || old.Head.Seq > l.Head.Seq || old.Head.BilledMs > l.Head.BilledMs || old.Head.Total > l.Head.Total:
		t.Fatal("the agreed head fell")
	case l.Draft != nil && (l.Draft.BilledMs > l.Meter.BilledMs || l.Draft.KeptMs > l.Meter.KeptMs):
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
		if err := market.CheckReceipt(l.ID, l.Terms.Extended(l.Extension), l.Head, p.Receipt, market.Unlimited); err != nil {
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
