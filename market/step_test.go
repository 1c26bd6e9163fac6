package market_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"haggle/market"
	"haggle/market/markettest"
)

// drawEvent draws any event, sensible or not.
func drawEvent(t *rapid.T, l market.Lease) market.Event {
	switch rapid.IntRange(0, 24).Draw(t, "event") {
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
		return market.Restarted{DownMs: rapid.Int64Range(-5, 500_000).Draw(t, "down")}
	case 17:
		return market.Unseen{}
	case 18, 19:
		more := market.Micro(rapid.Int64Range(1, 20_000).Draw(t, "paid"))
		if l.Slice != nil {
			more = rapid.SampledFrom([]market.Micro{more, l.Slice.Amount, l.Slice.Amount - 1}).Draw(t, "slice")
		}
		return market.Paid{Payment: market.Payment{Lease: l.ID, Seq: l.PaidSeq + 1, Amount: more, Total: l.Paid + more}}
	case 20:
		use := rapid.Int64Range(0, 1e6).Draw(t, "use")
		return market.Tick{Slots: []market.SlotUse{{UtilPermilleMs: &use}}, Read: true}
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
		if rapid.Bool().Draw(t, "paid ahead") {
			terms.Pay, terms.Limits.Credit = market.PayLab, rapid.SampledFrom([]int64{0, 0, 1000, market.Unlimited}).Draw(t, "credit beside it")
		}
		if rapid.Bool().Draw(t, "ends idle") {
			terms.Idle = &market.IdleStop{Permille: 100, ForMs: 60_000}
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
			checkMoney(t, l, next, actions)
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
	case l.Total() > l.Ceiling():
		t.Fatalf("total %s is over the ceiling of %s, %s paid", l.Total(), l.Ceiling(), l.Paid)
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

// checkMoney checks what Step promises of paying and of time that is not billed.
func checkMoney(t *rapid.T, old, l market.Lease, actions []market.Action) {
	unbilled := int64(0)
	for _, g := range l.Gaps {
		switch g.Reason {
		case market.UnbilledFault, market.UnbilledDown, market.UnbilledStalled, market.UnbilledUnpaid:
			unbilled += g.Ms
		}
	}
	for _, was := range old.Gaps {
		if i := slices.IndexFunc(l.Gaps, func(g market.Unbilled) bool { return g.Reason == was.Reason }); i < 0 || l.Gaps[i].Ms < was.Ms {
			t.Fatalf("time that is not billed fell: %v to %v", old.Gaps, l.Gaps)
		}
	}
	risk := l.RiskOfRig()
	switch {
	case unbilled != l.Meter.UnbilledMs:
		t.Fatalf("%d ms are not billed, and %v says why", l.Meter.UnbilledMs, l.Gaps)
	case l.Paid < old.Paid || l.PaidSeq < old.PaidSeq || l.Slices < old.Slices:
		t.Fatal("what was paid or asked for fell")
	case old.Slice != nil && l.Slice != nil && *old.Slice != *l.Slice:
		t.Fatal("a slice changed")
	case old.Slice != nil && l.Slice == nil && l.Paid < old.Need && l.PaidSeq == old.PaidSeq:
		t.Fatal("a slice is gone, and no money came")
	case l.Slice != nil && (l.Need > l.Current().Budget || l.Paid >= l.Need || l.Slice.Amount <= 0):
		t.Fatalf("slice of %s up to %s, budget %s, paid %s", l.Slice.Amount, l.Need, l.Current().Budget, l.Paid)
	case l.Terms.PaysAhead() && risk.Lose > market.Micro(l.Terms.Limits.Credit), risk.Lose > l.Current().Budget:
		t.Fatalf("the rig risks %s", risk.Lose)
	case l.Job == market.JobStarting && old.Job != market.JobStarting && !l.Funded():
		t.Fatal("a job started before its first stretch was paid")
	case l.IdleMs > 0 && l.Terms.Idle == nil || l.DryMs > 0 && !l.Terms.PaysAhead():
		t.Fatal("what nobody asked for is counted")
	}
	for _, a := range actions {
		if ask, ok := a.(market.AskPay); ok && (l.Slice == nil || *l.Slice != ask.Slice || ask.Slice.Seq != l.Slices) {
			t.Fatal("a slice is asked for that is not outstanding")
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
