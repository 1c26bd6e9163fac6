package market_test

import (
	"testing"

	"pgregory.net/rapid"

	"haggle/market"
	"haggle/market/markettest"
)

func TestTheCeilingIsWhatWasPaidAndTheCreditWithinTheBudget(t *testing.T) {
	tests := []struct {
		name         string
		budget, paid market.Micro
		credit       int64
		want         market.Micro
	}{
		{"nothing paid, no credit", 100, 0, 0, 0},
		{"paid", 100, 30, 0, 30},
		{"paid, and credit", 100, 30, 20, 50},
		{"more than the budget", 100, 90, 20, 100},
		{"credit above the budget", 100, 0, 1 << 62, 100},
		{"any credit", 100, 0, market.Unlimited, 100},
		{"a number that is a mistake", 1e15, 1 << 62, 5, 1e15},
		{"less than nothing", 100, -5, 20, 20},
	}
	for _, test := range tests {
		terms := markettest.Terms()
		terms.Budget, terms.Limits.Credit = test.budget, test.credit
		if got := terms.Ceiling(test.paid); got != test.want {
			t.Errorf("%s: %d", test.name, got)
		}
	}
}

// TestWhoPaysWhatIsAskedForIsNeverInterrupted plays a renter that pays each slice after a while: the job is never dry, what was
// sent is the sum of what was asked, and at no time is more at stake than one stretch and the rest of the one before.
func TestWhoPaysWhatIsAskedForIsNeverInterrupted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms := markettest.Terms()
		terms.Pay, terms.Limits.Credit = market.PayLab, rapid.SampledFrom([]int64{0, 1, 5_000, 50_000}).Draw(t, "credit")
		terms.DurationMs = rapid.Int64Range(1000, 8_000_000).Draw(t, "duration")
		terms.Budget = market.Micro(rapid.Int64Range(20_000, 5_000_000).Draw(t, "budget"))
		terms.Limits.UnsignedMs, terms.Deadline = 1e9, markettest.Now+1e9
		delay := rapid.Int64Range(0, 25).Draw(t, "delay")
		now := market.Instant{Mono: 1000, Wall: markettest.Now}
		l := market.NewLease(market.LeaseID{1}, terms, now, false)
		var sent, asked market.Micro
		owed := map[market.Slice]int64{} // ticks until it is paid
		step := func(e market.Event) {
			next, actions, err := market.Step(l, now, e)
			if err != nil {
				t.Fatal(err)
			}
			l = next
			for _, a := range actions {
				switch a := a.(type) {
				case market.AskPay:
					asked += a.Slice.Amount
					owed[a.Slice] = delay
				case market.Propose:
					l, _, _ = market.Step(l, now, market.Agreed{Receipt: a.Receipt, Hash: market.HashOf(a.Receipt.Body())})
				}
			}
		}
		step(market.Signed{})
		for tick := 0; l.Job != market.JobStopping && tick < 30_000; tick++ {
			now.Mono, now.Wall = now.Mono+market.MaxTickMs, now.Wall+market.MaxTickMs
			switch l.Job {
			case market.JobPreparing:
				if l.Funded() {
					step(market.Prepared{})
				}
			case market.JobStarting:
				step(market.Started{})
			}
			step(market.Tick{})
			for s, left := range owed {
				if owed[s] = left - 1; left <= 0 {
					delete(owed, s)
					sent += s.Amount
					step(market.Paid{Payment: market.Payment{Lease: l.ID, Seq: l.PaidSeq + 1, Amount: s.Amount, Total: l.Paid + s.Amount, Slice: s.Seq}})
				}
			}
			most := 2 * market.Micro(market.MostSliceMs/10_000*1000) // a second costs 100: two of the longest stretches
			switch risk := market.RiskOfRenter(sent, l.Total(), l.Total()); {
			case l.Dry() && l.Job == market.JobRunning:
				t.Fatalf("dry after %d ticks with %s of %s paid", tick, l.Paid, asked)
			case risk.Lose > most:
				t.Fatalf("the renter risks %s", risk.Lose)
			case l.RiskOfRig().Lose > market.Micro(terms.Limits.Credit):
				t.Fatalf("the rig risks %s", l.RiskOfRig().Lose)
			case l.Paid != sent || len(owed) > 1:
				t.Fatalf("paid %s of %s, %d slices out", l.Paid, sent, len(owed))
			}
		}
		if l.Reason != market.ReasonExpired && l.Reason != market.ReasonBudget {
			t.Fatalf("it ended with %s after %d ms", l.Reason, l.Meter.BilledMs)
		}
		if ceiling := l.Ceiling(); l.Paid > l.Current().Budget || l.Total() > ceiling {
			t.Fatalf("paid %s, total %s, budget %s", l.Paid, l.Total(), l.Current().Budget)
		}
	})
}

func TestWhatEachSideCanLoseIsWhatIsNotPaidAndWhatIsNotUsed(t *testing.T) {
	l := market.Lease{Terms: markettest.Terms(), Meter: market.Meter{BilledMs: 100_000}, AwayMs: 20_000, Paid: 4_000}
	if got := l.RiskOfRig(); got != (market.Risk{UnsignedMs: 80_000, UnattendedMs: 20_000, Unpaid: 6_000, Lose: 6_000}) {
		t.Errorf("the rig: %+v", got)
	}
	if l.Paid = 40_000; l.RiskOfRig().Lose != 0 {
		t.Error("a rig that was paid risks something")
	}
	if got := market.RiskOfRenter(40_000, 9_000, 10_000); got != (market.Risk{Lose: 31_000}) {
		t.Errorf("the renter: %+v", got)
	}
	if got := market.RiskOfRenter(0, 9_000, 10_000); got != (market.Risk{Unpaid: 10_000}) {
		t.Errorf("the renter that owes: %+v", got)
	}
}

// TestWhoPaysLessThanASliceBuysNoNewGrace plays a renter that pays a millionth whenever its grace is nearly over, and starts the job
// again whenever it may.
func TestWhoPaysLessThanASliceBuysNoNewGrace(t *testing.T) {
	terms := markettest.Terms()
	terms.Pay, terms.Limits.Credit, terms.Limits.UnsignedMs, terms.DurationMs = market.PayLab, 0, 1e9, 8*3_600_000
	terms.Budget, terms.Deadline = 1e9, markettest.Now+1e9
	now := market.Instant{Mono: 1000, Wall: markettest.Now}
	l := market.NewLease(market.LeaseID{1}, terms, now, false)
	step := func(e market.Event) error {
		next, actions, err := market.Step(l, now, e)
		if err != nil {
			return err
		}
		l = next
		for _, a := range actions {
			if p, ok := a.(market.Propose); ok {
				l, _, _ = market.Step(l, now, market.Agreed{Receipt: p.Receipt, Hash: market.HashOf(p.Receipt.Body())})
			}
		}
		return nil
	}
	pay := func(amount market.Micro) {
		p := market.Payment{Lease: l.ID, Seq: l.PaidSeq + 1, Amount: amount, Total: l.Paid + amount}
		if err := step(market.Paid{Payment: p}); err != nil {
			t.Fatal(err)
		}
	}
	if err := step(market.Signed{}); err != nil {
		t.Fatal(err)
	}
	pay(l.Slice.Amount)
	var ran, resumed int64
	for range 12_000 {
		now.Mono, now.Wall = now.Mono+1000, now.Wall+1000
		switch l.Job {
		case market.JobPreparing:
			_ = step(market.Prepared{})
		case market.JobStarting:
			_ = step(market.Started{})
		case market.JobStopping:
			_ = step(market.Exited{})
			_ = step(market.Scrubbed{})
		case market.JobPaused:
			if pay(1); step(market.Resume{}) == nil {
				resumed++
			}
		case market.JobRunning:
			if ran += 1000; l.DryMs > market.DryGraceMs-5000 {
				pay(1)
			}
		}
		_ = step(market.Tick{})
	}
	if most := market.FirstSliceMs + market.DryGraceMs + 10_000; ran > most || resumed > 0 {
		t.Errorf("the job ran for %d s and was started again %d times, though only %s was paid", ran/1000, resumed, l.Paid)
	}
}
