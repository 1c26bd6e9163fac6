package api_test

import (
	"context"

	"haggle/internal/view"
)

func (f *fakeAgent) Ledger(context.Context) (view.Ledger, error) {
	return view.Ledger{Side: "renter", Entries: []view.LedgerEntry{{Owner: "12D3", Currency: "USD", Owed: view.MoneyOf(7, "USD"), Ageing: []view.Money{view.MoneyOf(7, "USD")}}}}, f.note("ledger")
}

func (f *fakeAgent) Invoice(_ context.Context, owner, currency string) (view.Invoice, error) {
	return view.Invoice{Payee: owner, Currency: currency, Due: view.MoneyOf(8, currency)}, f.note("invoice %s %s", owner, currency)
}

func (f *fakeAgent) History(_ context.Context, owner string) (view.History, error) {
	return view.History{Owner: owner, Leases: 3, Hours: "1.50", Faults: []view.Tally{{Name: "fault", Count: 1}}}, f.note("history %s", owner)
}

func (f *fakeAgent) Backup(_ context.Context, path string) (view.Backup, error) {
	return view.Backup{Path: path, Bytes: 9, At: 5}, f.note("backup %s", path)
}

func (f *fakeAgent) PayLease(_ context.Context, id string, r view.PayRequest) (view.Lease, error) {
	return lease(id, "running"), f.note("pay %s %+v", id, r)
}

func budget() view.Budget {
	day := view.MoneyOf(5, "USD")
	return view.Budget{Currency: "USD", Day: &day, SpentDay: view.MoneyOf(1, "USD")}
}

func (f *fakeAgent) Budgets(context.Context) ([]view.Budget, error) {
	return []view.Budget{budget()}, f.note("budgets")
}

func (f *fakeAgent) SetBudget(_ context.Context, r view.BudgetRequest) (view.Budget, error) {
	return budget(), f.note("budget %s %d %t", r.Currency, *r.DayMicro, r.MonthMicro == nil)
}

func (f *fakeAgent) Deputies(context.Context) ([]view.Deputy, error) { return nil, f.note("deputies") }

func (f *fakeAgent) AddDeputy(_ context.Context, d view.Deputy) (view.Deputy, error) {
	return d, f.note("deputy %+v", d)
}

func (f *fakeAgent) RemoveDeputy(_ context.Context, key string) error {
	return f.note("no deputy %s", key)
}

func (f *fakeAgent) Guarantee(_ context.Context, g view.GuaranteeRequest) ([]byte, error) {
	return []byte{0, 0xff}, f.note("guarantee %+v", g)
}

func (f *fakeAgent) Dispute(_ context.Context, id string, r view.DisputeRequest) (view.Disputes, error) {
	return disputes(id), f.note("dispute %s %d %s %s", id, *r.TotalMicro, r.Code, r.Words)
}

func (f *fakeAgent) Decision(_ context.Context, id string, sealed []byte) (view.Disputes, error) {
	return disputes(id), f.note("decision %s %x", id, sealed)
}

func (f *fakeAgent) Disputes(_ context.Context, id string) (view.Disputes, error) {
	return disputes(id), f.note("disputes %s", id)
}

func (f *fakeAgent) Decide(_ context.Context, r view.DecideRequest) ([]byte, error) {
	return []byte{0, 0xfe}, f.note("decide %x %d %s", r.Evidence, *r.TotalMicro, r.Words)
}

func disputes(id string) view.Disputes {
	five := view.MoneyOf(5, "USD")
	return view.Disputes{Lease: id, Told: true, Decided: &five, List: []view.Dispute{{By: "guarantor", Receipt: 3, Code: "decided", Total: five, Words: "ö", At: 7}}}
}

func (f *fakeRig) Confirm(_ context.Context, id string, c view.Confirm) (view.Lease, error) {
	return lease(id, "running"), f.note("confirm %s %+v", id, c)
}
