package market_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"haggle/market"
	"haggle/market/markettest"
)

const dayMs = int64(24 * 3_600_000)

// facts returns a lease of the sample terms, named by a number.
func facts(n byte, change func(*market.LeaseFacts)) market.LeaseFacts {
	f := market.LeaseFacts{
		Lease: market.LeaseID{n}, Terms: markettest.PaidTerms(), Job: market.JobEnded, Debt: market.DebtFinal, Reason: market.ReasonCompleted,
		BilledMs: 3_600_000, Begun: markettest.Now, Ended: markettest.Now + 3_600_000,
	}
	change(&f)
	f.Signed = min(f.Used, max(f.Signed, 0))
	return f
}

func accountOf(t *testing.T, now int64, leases ...market.LeaseFacts) market.Account {
	t.Helper()
	l := market.NewLedger(market.RoleRig, now)
	for _, f := range leases {
		if err := l.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	accounts := l.Accounts()
	if len(accounts) != 1 || accounts[0].Owner != markettest.PaidTerms().RenterOwner {
		t.Fatalf("%d accounts", len(accounts))
	}
	return accounts[0]
}

func TestALedgerSaysWhoOwesWhat(t *testing.T) {
	open := func(f *market.LeaseFacts) {
		f.Job, f.Debt, f.Ended, f.Used, f.Paid = market.JobRunning, market.DebtOpen, 0, 20, 50
	}
	decided := market.Micro(30)
	tests := []struct {
		name   string
		leases []market.LeaseFacts
		want   market.Account // the sums
	}{
		{
			"paid in full",
			[]market.LeaseFacts{facts(1, func(f *market.LeaseFacts) { f.Used, f.Signed, f.Paid = 70, 70, 70 })},
			market.Account{Used: 70, Signed: 70, Paid: 70},
		},
		{
			"owed",
			[]market.LeaseFacts{facts(1, func(f *market.LeaseFacts) { f.Used, f.Signed = 70, 60 })},
			market.Account{Used: 70, Signed: 60, Owed: 70, Ageing: [4]market.Micro{70}, Oldest: markettest.Now + 3_600_000},
		},
		{
			"more was paid than was used",
			[]market.LeaseFacts{facts(1, func(f *market.LeaseFacts) { f.Used, f.Signed, f.Paid = 70, 70, 100 })},
			market.Account{Used: 70, Signed: 70, Paid: 100, Balance: 30},
		},
		{"what is left moves to the next lease, and is counted once", []market.LeaseFacts{
			facts(1, func(f *market.LeaseFacts) { f.Used, f.Paid = 70, 100 }), facts(2, func(f *market.LeaseFacts) { f.Used, f.Paid, f.FromBalance = 20, 30, 30 }),
		}, market.Account{Used: 90, Paid: 100, Balance: 10}},
		{"money of an open lease stays with it", []market.LeaseFacts{
			facts(1, func(f *market.LeaseFacts) { f.Used = 10 }), facts(2, open),
		}, market.Account{Used: 30, Paid: 50, Unspent: 30, Owed: 10, Ageing: [4]market.Micro{10}, Oldest: markettest.Now + 3_600_000}},
		{"a balance covers the oldest debt first", []market.LeaseFacts{
			facts(1, func(f *market.LeaseFacts) { f.Used = 10; f.Ended -= 100 * dayMs }), facts(2, func(f *market.LeaseFacts) { f.Used = 10 }),
			facts(3, func(f *market.LeaseFacts) { f.Used, f.Paid = 5, 17 }),
		}, market.Account{Used: 25, Paid: 17, Owed: 8, Ageing: [4]market.Micro{8}, Oldest: markettest.Now + 3_600_000}},
		{"of a disputed lease only what both signed", []market.LeaseFacts{
			facts(1, func(f *market.LeaseFacts) { f.Used, f.Signed, f.Debt = 70, 40, market.DebtDisputed }),
		}, market.Account{Used: 70, Signed: 40, Owed: 40, Disputed: 30, Ageing: [4]market.Micro{40}, Oldest: markettest.Now + 3_600_000}},
		{"the guarantor has decided", []market.LeaseFacts{
			facts(1, func(f *market.LeaseFacts) {
				f.Used, f.Signed, f.Debt, f.Decided = 70, 40, market.DebtDisputed, &decided
			}),
		}, market.Account{Used: 70, Signed: 40, Owed: 30, Ageing: [4]market.Micro{30}, Oldest: markettest.Now + 3_600_000}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := accountOf(t, markettest.Now+dayMs, test.leases...)
			got.Owner, got.Currency, got.Leases = market.Key{}, "", nil
			if !equalAccounts(got, test.want) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func equalAccounts(a, b market.Account) bool {
	type sums struct {
		used, signed, paid, unspent, owed, balance, disputed market.Micro
		ageing                                               [4]market.Micro
		oldest                                               int64
	}
	of := func(a market.Account) sums {
		return sums{a.Used, a.Signed, a.Paid, a.Unspent, a.Owed, a.Balance, a.Disputed, a.Ageing, a.Oldest}
	}
	return of(a) == of(b)
}

func TestDebtsAgeByTheEndOfTheirLease(t *testing.T) {
	at := func(n byte, days int64, used market.Micro) market.LeaseFacts {
		return facts(n, func(f *market.LeaseFacts) { f.Used, f.Ended = used, markettest.Now-days*dayMs })
	}
	a := accountOf(t, markettest.Now, at(1, 7, 1), at(2, 8, 2), at(3, 30, 4), at(4, 31, 8), at(5, 90, 16), at(6, 91, 32))
	if a.Ageing != [4]market.Micro{1, 6, 24, 32} || a.Oldest != markettest.Now-91*dayMs || a.Owed != 63 {
		t.Errorf("%+v", a)
	}
}

func TestALedgerNeverAddsCurrenciesAndTakesALeaseOnce(t *testing.T) {
	l := market.NewLedger(market.RoleRenter, markettest.Now)
	euro := facts(2, func(f *market.LeaseFacts) { f.Terms.Prices.Currency, f.Used = "EUR", 5 })
	for _, f := range []market.LeaseFacts{facts(1, func(f *market.LeaseFacts) { f.Used = 7 }), euro} {
		if err := l.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	if list := l.Accounts(); len(list) != 2 || list[0].Currency != "EUR" || list[0].Owed != 5 || list[1].Owed != 7 {
		t.Errorf("%+v", list)
	}
	if err := l.Add(euro); market.CodeOf(err) != market.CodeBadRecord {
		t.Errorf("a lease is taken twice: %v", err)
	}
	if err := l.Add(facts(3, func(f *market.LeaseFacts) { f.Used = math.MaxInt64 })); market.CodeOf(err) != market.CodeOverflow {
		t.Errorf("a sum that is too large: %v", err)
	}
	if a := l.Account(market.Key{9}, "USD"); a.Owed != 0 || a.Currency != "USD" {
		t.Errorf("an account that is not there: %+v", a)
	}
}

func TestALedgerAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := markettest.Now + 200*dayMs
		l := market.NewLedger(market.RoleRig, now)
		var paid market.Micro
		for n := range rapid.IntRange(0, 8).Draw(t, "leases") {
			amount := func(name string) market.Micro { return market.Micro(rapid.Int64Range(0, 100).Draw(t, name)) }
			f := facts(byte(n+1), func(f *market.LeaseFacts) {
				f.Used, f.Paid = amount("used"), amount("paid")
				f.FromBalance = min(f.Paid, amount("moved"))
				f.Signed = min(f.Used, amount("signed"))
				f.Ended = markettest.Now + rapid.Int64Range(0, 200*dayMs).Draw(t, "ended")
				if rapid.Bool().Draw(t, "open") {
					f.Job, f.Debt, f.Ended = market.JobRunning, market.DebtOpen, 0
				} else if rapid.Bool().Draw(t, "disputed") {
					f.Debt = market.DebtDisputed
				}
			})
			if err := l.Add(f); err != nil {
				t.Fatal(err)
			}
			paid += f.Paid - f.FromBalance
		}
		for _, a := range l.Accounts() {
			aged, due := a.Ageing[0]+a.Ageing[1]+a.Ageing[2]+a.Ageing[3], market.Micro(0)
			for _, f := range a.Leases {
				due += f.Due()
			}
			switch {
			case a.Owed > 0 && a.Balance > 0, a.Owed < 0, a.Balance < 0:
				t.Fatalf("owed %s and a balance of %s", a.Owed, a.Balance)
			case a.Owed != aged:
				t.Fatalf("owed %s, by age %s", a.Owed, aged)
			case a.Paid != paid || due+a.Unspent-a.Paid != a.Owed-a.Balance:
				t.Fatalf("due %s, unspent %s, paid %s, owed %s, balance %s", due, a.Unspent, a.Paid, a.Owed, a.Balance)
			}
		}
	})
}

func TestAHistoryCountsAndNeverRates(t *testing.T) {
	end := func(n byte, reason market.Reason) market.LeaseFacts {
		return facts(n, func(f *market.LeaseFacts) { f.Reason, f.Used, f.Paid, f.StartMs = reason, 5, 5, int64(n)*1000 })
	}
	leases := []market.LeaseFacts{
		end(1, market.ReasonCompleted), end(2, market.ReasonBudget), end(3, market.ReasonTakeback), end(4, market.ReasonRenter),
		end(5, market.ReasonLost), end(6, market.ReasonFault), end(7, market.ReasonLost), end(8, market.ReasonUnpaid),
		facts(9, func(f *market.LeaseFacts) { f.Job, f.Ended, f.Begun = market.JobRunning, 0, f.Begun-5 }),
		facts(10, func(f *market.LeaseFacts) { f.Debt = market.DebtDisputed }),
		facts(11, func(f *market.LeaseFacts) { f.BilledMs, f.Reason = 0, market.ReasonPrepare }),
		facts(12, func(f *market.LeaseFacts) { f.BilledMs, f.Reason = 0, market.ReasonRenter }),
	}
	h := market.HistoryOf(leases)
	switch {
	case h.Leases != 12 || h.Completed != 2 || h.EndedByRig != 1 || h.EndedByRenter != 1 || h.Unpaid != 1 || h.Disputed != 1 || h.Void != 2:
		t.Errorf("%+v", h)
	case !slices.Equal(h.Faults, []market.Fault{{Reason: market.ReasonLost, Count: 2}, {Reason: market.ReasonFault, Count: 1}, {Reason: market.ReasonPrepare, Count: 1}}):
		t.Errorf("faults %+v", h.Faults)
	case h.StartMs != 4000 || h.FirstSeen != markettest.Now-5 || h.SlotMs != 10*3_600_000:
		t.Errorf("start %d, first seen %d, %d slot-ms", h.StartMs, h.FirstSeen, h.SlotMs)
	case !slices.Equal(h.Paid, []market.Sum{{Currency: "USD", Amount: 40}}):
		t.Errorf("paid %+v", h.Paid)
	}
	if h := market.HistoryOf(nil); h.Leases != 0 || h.FirstSeen != 0 || h.StartMs != 0 {
		t.Errorf("nothing is %+v", h)
	}
}

func TestABillIsWrittenOutByTheUnit(t *testing.T) {
	p := market.Prices{Currency: "USD", Slot: 360_000, Disk: 100, Out: 10_000}
	lines, err := p.Lines(market.Usage{SlotMs: 3_600_000, DiskMBMs: 25_000 * 3_600_000, InBytes: 5, OutBytes: 1_500_000_000})
	want := []market.Line{
		{What: "slots", Quantity: "1.00 slot-hour", Rate: 360_000, Amount: 360_000},
		{What: "disk", Quantity: "25.00 GB-hours", Rate: 100, Amount: 2500},
		{What: "traffic out", Quantity: "1.50 GB", Rate: 10_000, Amount: 15_000},
	}
	if err != nil || !slices.Equal(lines, want) {
		t.Errorf("%v %+v", err, lines)
	}
}
