package main

import (
	"context"
	"fmt"
	"os"

	"haggle/internal/view"
	"haggle/market"
	"haggle/market/markettest"
)

// fakeMoney is what the fake agent says of money: 0.36 are owed to one rig's owner, whatever happens.
type fakeMoney struct {
	budget   view.Budget
	deputies []view.Deputy
	said     []market.Dispute // of the one lease's bill
}

// methods and alerts are there once a budget is set.
func (f *fakeMoney) methods() []string {
	if f.budget.Day == nil {
		return nil
	}
	return []string{"lab", "hand"}
}

func (f *fakeMoney) alerts() []view.Alert {
	if f.budget.Day == nil {
		return nil
	}
	return []view.Alert{{Scope: "day", Percent: 80, At: markettest.Now, Text: "80 % of the day budget in USD are spent"}}
}

// pay is how the fake's lease is paid.
func paidAhead(l *view.Lease) {
	l.Pay = &view.Pay{Method: "hand", Paid: usd(60_000), Sent: usd(60_000), Balance: usd(12_000), Payments: 1}
	l.Risk = &view.Risk{
		Unsigned: view.TimeLimit{NowMs: 9_000, MostMs: 180_000}, Unattended: view.TimeLimit{MostMs: 600_000},
		Credit: view.MoneyLimit{Now: usd(0), Most: usd(0)}, Lose: usd(20_000),
	}
	l.Spent, l.Signed, l.Receipts, l.BilledMs, l.Duration = usd(48_000), usd(40_000), 8, 480_000, 3_600_000
}

func sliceOf(state, text, why string) *view.PayAsked {
	return &view.PayAsked{
		Slice: 2, Amount: usd(120_000), ForMs: 1_200_000, AskedAt: markettest.Now, State: state, Text: text, Why: why, Settles: "hand", Deadline: markettest.Now + 60_000,
	}
}

// slices plays what can happen to the money of a lease.
func (a *fakeAgent) slices() {
	waiting := sliceOf("waiting", "Send 0.12 USD\x1b[2J to Ada.", "")
	waiting.QR = "pay:ada?a=0.12"
	<-a.watched // what came before is one state for who comes later
	for _, asked := range []*view.PayAsked{
		sliceOf("pending", "", ""), waiting, sliceOf("held", "", "of the day budget of 5.00, 0.05 are left"), sliceOf("failed", "", "the bank is\x1b closed"), sliceOf("sent", "", ""),
	} {
		a.state(func(l *view.Lease) {
			if l.Pay == nil {
				paidAhead(l)
				l.Alerts = []view.Alert{{Scope: "lease", Lease: l.ID, Percent: 50, At: markettest.Now, Text: "50 % of the budget of lease x are used"}}
			}
			pay := *l.Pay
			pay.Asked = asked
			l.Pay = &pay
		})
	}
	a.state(func(l *view.Lease) {
		pay := *l.Pay
		pay.DryMs = 15_000
		l.Pay = &pay
	})
	a.state(func(l *view.Lease) {
		l.Pay = &view.Pay{Method: "hand", Paid: usd(180_000), Sent: usd(180_000), Balance: usd(175_900), Payments: 2}
	})
	a.over("completed", 0, "final")
}

// ahead is a lease that waits for a person's money, with all that can be known of it.
func (a *fakeAgent) ahead() {
	a.state(func(l *view.Lease) {
		paidAhead(l)
		l.Pay.Asked, l.Pay.DryMs = sliceOf("waiting", "Send 0.12 USD to Ada.", ""), 15_000
		l.Idle = &market.IdleStop{Permille: 55, ForMs: 600_000}
		l.Unbilled = []view.Unbilled{{Reason: market.UnbilledFault, Ms: 3000}, {Reason: market.UnbilledPull, Ms: 41_000}, {Reason: market.UnbilledStart}}
		l.Seen, l.Deputies, l.SignedBy = "at most 8m4s", []string{"12D3KooWdeputy"}, "deputy"
		l.Alerts = []view.Alert{{Scope: "lease", Lease: l.ID, Percent: 50, At: markettest.Now, Text: "50 % of the budget of lease x are used"}}
	})
}

func usd(micro market.Micro) view.Money { return view.MoneyOf(micro, "USD") }

func (a *fakeAgent) Ledger(context.Context) (view.Ledger, error) {
	zero := usd(0)
	return view.Ledger{Side: "renter", Entries: []view.LedgerEntry{{
		Owner: market.KeyOf(markettest.Rig()).String(), Name: "rig-1", Currency: "USD", Used: usd(360_000), Signed: usd(360_000), Paid: zero,
		Owed: usd(360_000), Balance: zero, Unspent: zero, Disputed: zero, Guaranteed: zero, OldestMs: markettest.Now,
		Credit: view.MoneyLimit{Now: usd(360_000), Most: usd(5_000_000)}, Ageing: []view.Money{usd(360_000), zero, zero, zero},
		Leases: []view.LedgerLease{{
			Lease: leaseID(), Model: "RTX_4090", State: "ended", Debt: "final", Begun: markettest.Now - 3_600_000, Ended: markettest.Now,
			Signed: usd(360_000), Used: usd(360_000), Paid: zero,
		}},
	}}}, nil
}

func (a *fakeAgent) Invoice(_ context.Context, owner, currency string) (view.Invoice, error) {
	if owner != market.KeyOf(markettest.Rig()).String() {
		return view.Invoice{}, market.NewError(market.CodeOwnerUnknown, "owner", owner)
	}
	return view.Invoice{
		Payee: owner, Payer: market.KeyOf(markettest.Renter()).String(), Currency: "USD", At: markettest.Now, Payments: []view.PaymentLine{},
		Lines: []view.InvoiceLine{{
			Lease: leaseID(), What: "slots", Quantity: "1.00 slot-hour", Rate: usd(360_000), Amount: usd(360_000), Receipt: 61,
			Begun: markettest.Now - 3_600_000, Ended: markettest.Now,
		}},
		Total: usd(360_000), Paid: usd(0), Due: usd(360_000), Balance: usd(0),
	}, nil
}

func (a *fakeAgent) History(_ context.Context, owner string) (view.History, error) {
	if owner != market.KeyOf(markettest.Rig()).String() {
		return view.History{Owner: owner, Hours: "0.00", Paid: []view.Money{}}, nil
	}
	return view.History{
		Owner: owner, Leases: 3, Hours: "4.20", Paid: []view.Money{usd(1_200_000)}, Completed: 1, EndedByRig: 1, StartMs: 4200, Shown: 41,
		Faults: []view.Tally{{Name: "card_fault", Count: 1}}, FirstSeen: markettest.Now - 3_600_000,
	}, nil
}

func (a *fakeAgent) Backup(_ context.Context, path string) (view.Backup, error) {
	if _, err := os.Stat(path); err == nil {
		return view.Backup{}, market.NewError(market.CodeBackupExists, "path", path)
	}
	return view.Backup{Path: path, Bytes: 4, At: markettest.Now}, os.WriteFile(path, []byte("copy"), 0o600)
}

func (a *fakeAgent) PayLease(ctx context.Context, id string, r view.PayRequest) (view.Lease, error) {
	l, err := a.Lease(ctx, id)
	if err != nil {
		return view.Lease{}, err
	}
	switch {
	case l.Pay == nil:
		return view.Lease{}, market.NewError(market.CodeNothingOwed, "what", "paid", "lease", l.ID[:8])
	case r.Method == "broken":
		return view.Lease{}, market.NewError(market.CodePayFailed, "method", r.Method, "why", "no money")
	case r.AmountMicro > 5_000_000:
		return view.Lease{}, market.NewError(market.CodeOverCap, "amount", market.Micro(r.AmountMicro).String(), "left", "5.00", "span", "day", "cap", "5.00")
	}
	amount := market.Micro(r.AmountMicro)
	if amount == 0 {
		amount = 120_000
	}
	if l.Pay.Asked == nil {
		pay := *l.Pay
		pay.Asked = sliceOf("pending", "", "")
		l.Pay = &pay
	}
	a.lives.Go(func() {
		a.state(func(l *view.Lease) {
			paid, n := market.Micro(l.Pay.Paid.Micro)+amount, l.Pay.Payments+1
			l.Pay = &view.Pay{Method: "hand", Paid: usd(paid), Sent: usd(paid), Balance: usd(paid - 48_000), Payments: n}
			if r.Method == "held" {
				l.Pay.Payments, l.Pay.Asked = n-1, sliceOf("held", "", "of the day budget of 5.00, 0.05 are left")
			}
		})
	})
	return l, nil
}

func (a *fakeAgent) Budgets(context.Context) ([]view.Budget, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.money.budget.Currency == "" {
		return nil, nil
	}
	return []view.Budget{a.money.budget}, nil
}

func (a *fakeAgent) SetBudget(_ context.Context, r view.BudgetRequest) (view.Budget, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := &a.money.budget
	b.Currency, b.SpentDay, b.SpentMonth = r.Currency, usd(0), usd(0)
	for _, c := range []struct {
		to   **view.Money
		want *int64
	}{{&b.Day, r.DayMicro}, {&b.Month, r.MonthMicro}} {
		if c.want == nil {
			continue
		}
		*c.to = nil
		if *c.want >= 0 {
			m := view.MoneyOf(market.Micro(*c.want), r.Currency)
			*c.to = &m
		}
	}
	return *b, nil
}

func (a *fakeAgent) Deputies(context.Context) ([]view.Deputy, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]view.Deputy{}, a.money.deputies...), nil
}

func (a *fakeAgent) AddDeputy(_ context.Context, d view.Deputy) (view.Deputy, error) {
	if _, err := market.ParseKey(d.Key); err != nil {
		return view.Deputy{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.money.deputies = append(a.money.deputies, d)
	return d, nil
}

func (a *fakeAgent) RemoveDeputy(_ context.Context, key string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, d := range a.money.deputies {
		if d.Key == key {
			a.money.deputies = append(a.money.deputies[:i], a.money.deputies[i+1:]...)
			return nil
		}
	}
	return market.NewError(market.CodeDeputyUnknown, "deputy", key)
}

func (a *fakeAgent) Guarantee(_ context.Context, g view.GuaranteeRequest) ([]byte, error) {
	if g.AmountMicro <= 0 {
		return nil, market.NewError(market.CodeBadRequest, "why", "a guarantee of nothing")
	}
	return fmt.Appendf(nil, "%d %s until %d", g.AmountMicro, g.Currency, g.Until-g.Until%1000), nil
}

// Dispute of the fake reaches the rig only where the code is told.
func (a *fakeAgent) Dispute(ctx context.Context, id string, r view.DisputeRequest) (view.Disputes, error) {
	d, err := r.Signs(market.RoleRenter, markettest.PaidLease(), market.Head{}, 48_000, 1_000_000, markettest.Now)
	if err != nil {
		return view.Disputes{}, err
	}
	return a.say(ctx, id, d)
}

func (a *fakeAgent) Decision(ctx context.Context, id string, sealed []byte) (view.Disputes, error) {
	d, _, err := market.OpenDispute(markettest.Network, sealed, markettest.PaidTerms(), market.KeyOf(markettest.Guarantor()))
	if err != nil {
		return view.Disputes{}, err
	}
	return a.say(ctx, id, d)
}

func (a *fakeAgent) Disputes(ctx context.Context, id string) (view.Disputes, error) {
	return a.say(ctx, id)
}

func (a *fakeAgent) say(ctx context.Context, id string, d ...market.Dispute) (view.Disputes, error) {
	l, err := a.Lease(ctx, id)
	if err != nil {
		return view.Disputes{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.money.said = append(a.money.said, d...)
	told := len(d) > 0 && d[0].Code == "told"
	v := view.DisputesOf(markettest.PaidLease(), a.money.said, 1_000_000, "USD", told)
	v.Lease = l.ID
	return v, nil
}

// Decide of the fake is the guarantor of the paid evidence.
func (a *fakeAgent) Decide(_ context.Context, r view.DecideRequest) ([]byte, error) {
	j := market.Judge(r.Evidence)
	if j.Guarantee == nil {
		return nil, market.NewError(market.CodeGuarantee, "why", "the lease names none of this agent's, so its word decides nothing")
	}
	d, err := r.Signs(market.RoleGuarantor, j.Lease, j.Head, j.Head.Total, j.Terms.Budget, markettest.Now+1)
	if err != nil {
		return nil, err
	}
	return market.SealDispute(markettest.Network, markettest.Guarantor(), d).Encode(), nil
}
