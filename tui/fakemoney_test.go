package tui_test

import (
	"context"
	"slices"

	"haggle/internal/view"
	"haggle/market"
)

func usd(micro market.Micro) view.Money { return view.MoneyOf(micro, "USD") }

// fakePurse is what the fake agent knows of money.
type fakePurse struct {
	ledger   view.Ledger
	invoices map[string]view.Invoice // by owner and currency
	budgets  []view.Budget
	history  map[string]view.History
	pays     []view.PayRequest
	paid     func(view.Lease, view.PayRequest) (view.Lease, error)
	moneyErr error
}

func (f *fakeMarket) Ledger(ctx context.Context) (view.Ledger, error) {
	if err := f.wait(ctx); err != nil {
		return view.Ledger{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ledger, f.moneyErr
}

func (f *fakeMarket) Invoice(ctx context.Context, owner, currency string) (view.Invoice, error) {
	if err := f.wait(ctx); err != nil {
		return view.Invoice{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	i, ok := f.invoices[owner+"/"+currency]
	if !ok {
		return view.Invoice{}, market.NewError(market.CodeOwnerUnknown, "owner", owner)
	}
	return i, nil
}

func (f *fakeMarket) Budgets(ctx context.Context) ([]view.Budget, error) {
	err := f.wait(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.budgets, err
}

func (f *fakeMarket) History(ctx context.Context, owner string) (view.History, error) {
	if err := f.wait(ctx); err != nil {
		return view.History{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	h, ok := f.history[owner]
	if !ok {
		return view.History{}, market.NewError(market.CodeOwnerUnknown, "owner", owner)
	}
	return h, nil
}

func (f *fakeMarket) PayLease(ctx context.Context, id string, r view.PayRequest) (view.Lease, error) {
	if err := f.wait(ctx); err != nil {
		return view.Lease{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pays = append(f.pays, r)
	at := slices.IndexFunc(f.leases, func(l view.Lease) bool { return l.ID == id })
	if at < 0 || f.paid == nil {
		return view.Lease{}, market.NewError(market.CodeLeaseUnknown, "lease", id)
	}
	l, err := f.paid(f.leases[at], r)
	if err == nil {
		f.leases[at] = l
	}
	return l, err
}

// moneyed has leases that are paid in all the ways, accounts with owners, and budgets.
func moneyed() *fakeMarket {
	f := busy()
	f.status.Methods = []string{"hand", "lab"}
	now := f.leases[0].Created
	risk := func(lose market.Micro) *view.Risk {
		return &view.Risk{
			Unsigned: view.TimeLimit{NowMs: 12_000, MostMs: 180_000}, Unattended: view.TimeLimit{MostMs: 600_000},
			Credit: view.MoneyLimit{Now: usd(0), Most: usd(0)}, Lose: usd(lose),
		}
	}
	ahead := &f.leases[0]
	ahead.Risk = risk(56_000)
	ahead.Pay = &view.Pay{Method: "lab", Paid: usd(480_000), Sent: usd(480_000), Balance: usd(60_000), Payments: 5}
	ahead.Unbilled = []view.Unbilled{{Reason: market.UnbilledDown, Ms: 190_000}, {Reason: market.UnbilledPull, Ms: 12_000}}
	ahead.Deputies, ahead.SignedBy, ahead.Idle = []string{key("deputy")}, "deputy", &market.IdleStop{Permille: 50, ForMs: 600_000}
	ahead.Alerts = []view.Alert{{Scope: "lease", Lease: ahead.ID, Percent: 50, At: now, Text: "50 % of the budget of lease " + ahead.ID[:8] + " are used"}}

	waiting := lease(6, "rig-2", "preparing", 8_900_000)
	waiting.Created, waiting.Simulated, waiting.Risk = now-5000, false, risk(0)
	waiting.Pay = &view.Pay{Method: "hand", Paid: usd(0), Sent: usd(0), Balance: usd(0), Asked: &view.PayAsked{
		Slice: 1, Amount: usd(143_340), ForMs: 120_000, AskedAt: now, State: "waiting", Settles: "hand", Deadline: now + 180_000,
		Text: "Send 0.14334 USD to Ada Example, account DE89 3704 0044 0532 0130 00,\nand write 7f3a91c2-1 as its purpose.", QR: "pay:ada?amount=0.14334&purpose=7f3a91c2-1",
	}}
	held := lease(7, "rig-1", "running", 1_000_000)
	held.Created, held.Risk = now-6000, risk(20_000)
	held.Pay = &view.Pay{Method: "lab", Paid: usd(12_000), Sent: usd(12_000), Balance: usd(0), Payments: 1, DryMs: 18_000, Asked: &view.PayAsked{
		Slice: 2, Amount: usd(60_000), ForMs: 600_000, State: "held", Settles: "instant", Why: "the budget of this day is 5.00 USD, of which 4.98 are spent", Deadline: now + 42_000,
	}}
	owed := lease(8, "rig-7", "ended", 1_000_000)
	code := int64(0)
	owed.Created, owed.Exit, owed.Reason, owed.Debt, owed.Spent, owed.Signed = now-7000, &code, "completed", "final", usd(360_000), usd(360_000)
	f.leases = append(f.leases, waiting, held, owed)

	for i := range f.offers { // "rig-1" is paid in every way, the rig in Tokyo only in one that this machine has no program for
		switch o := &f.offers[i]; o.Name {
		case "rig-1":
			o.Pays = []market.PayMethod{{Name: "lab", Settles: market.SettlesInstantly}, {Name: "hand", Settles: market.SettlesByHand}}
			o.History = &market.ChainEnd{Count: 12}
		case "東京リグ-深夜割引":
			o.Rules.Credit, o.Pays = 0, []market.PayMethod{{Name: "gold", Settles: market.SettlesByHand}}
		}
	}
	f.fakePurse = purse(now, ahead.ID, owed.ID)
	return f
}

func purse(now int64, open, owed string) fakePurse {
	const day = 86_400_000
	first, second := key("rig-1"), key("rig-7")
	entry := func(owner, name, currency string, used, paid market.Micro) view.LedgerEntry {
		m := func(micro market.Micro) view.Money { return view.MoneyOf(micro, currency) }
		due := max(0, used-paid)
		return view.LedgerEntry{
			Owner: owner, Name: name, Currency: currency, Used: m(used), Signed: m(used), Paid: m(paid), Owed: m(due), Balance: m(max(0, paid-used)),
			Unspent: m(0), Disputed: m(0), Guaranteed: m(0), Credit: view.MoneyLimit{Now: m(due), Most: m(5_000_000)}, Ageing: []view.Money{m(due), m(0), m(0), m(0)},
		}
	}
	ada := entry(first, "ada", "USD", 4_215_000, 4_275_000)
	ada.Unspent, ada.Credit.Most = usd(60_000), usd(0)
	ada.Leases = []view.LedgerLease{{Lease: open, State: "running", Debt: "open"}}
	stranger := entry(second, "", "USD", 360_000, 0)
	stranger.OldestMs, stranger.Leases = now-9*day, []view.LedgerLease{{Lease: owed, State: "ended", Debt: "final"}}
	stranger.Ageing = []view.Money{usd(0), usd(360_000), usd(0), usd(0)}
	odd := entry(key("東京リグ-深夜割引"), "東京\x1b[2J", "EUR", 12_000_000_000, 11_000_000_000)
	odd.Disputed, odd.Credit.Unlimited = view.MoneyOf(1_000_000, "EUR"), true
	most, all := usd(5_000_000), usd(60_000_000)
	return fakePurse{
		ledger: view.Ledger{Side: "renter", Entries: []view.LedgerEntry{ada, stranger, odd}},
		budgets: []view.Budget{
			{
				Currency: "USD", Day: &most, Month: &all, SpentDay: usd(4_980_000), SpentMonth: usd(21_700_000),
				Alerts: []view.Alert{{Scope: "day", Percent: 80, At: now, Text: "80 % of the day's budget of 5.00 USD are used"}},
			},
			{Currency: "EUR", SpentDay: view.MoneyOf(0, "EUR"), SpentMonth: view.MoneyOf(1_200_000_000, "EUR")},
		},
		invoices: map[string]view.Invoice{
			first + "/USD": {
				Payee: first, Payer: key("agent"), Currency: "USD", At: now, Total: usd(4_215_000), Paid: usd(4_275_000), Due: usd(0), Balance: usd(60_000),
				Lines: []view.InvoiceLine{
					{Lease: open, What: "slots", Quantity: "11.70 slot-hours", Rate: usd(360_000), Amount: usd(4_212_000), Receipt: 70, Begun: now - day},
					{Lease: open, What: "disk", Quantity: "15.0 GB-hours", Rate: usd(200), Amount: usd(3_000), Receipt: 70, Begun: now - day},
				},
				Payments: []view.PaymentLine{
					{Lease: open, Amount: usd(4_000_000), Method: "lab", Reference: "lab-\x1b[31m17", At: now - day},
					{Lease: open, Amount: usd(275_000), Method: "balance", Reference: "", At: now},
				},
			},
			second + "/USD": {Payee: second, Payer: key("agent"), Currency: "USD", At: now, Total: usd(0), Paid: usd(0), Due: usd(0), Balance: usd(0)},
		},
		history: map[string]view.History{first: {
			Owner: first, Leases: 3, Hours: "4.20", Paid: []view.Money{usd(1_200_000)}, Completed: 2, EndedByRig: 1,
			Faults: []view.Tally{{Name: "fault", Count: 1}}, StartMs: 4_200, Shown: 12,
		}},
	}
}
