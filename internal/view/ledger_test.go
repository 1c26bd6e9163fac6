package view_test

import (
	"testing"

	"haggle/internal/view"
	"haggle/market"
	"haggle/market/markettest"
)

func facts(n byte, signed, paid market.Micro) market.LeaseFacts {
	f := market.LeaseFacts{
		Lease: market.LeaseID{n}, Job: market.JobEnded, Debt: market.DebtFinal, Begun: int64(n), Ended: int64(n) + 10,
		Used: signed, Signed: signed, Paid: paid, BilledMs: 5_400_000,
	}
	f.Terms.RigOwner, f.Terms.RenterOwner = market.KeyOf(markettest.Private("rig")), market.KeyOf(markettest.Private("renter"))
	f.Terms.Prices = market.Prices{Currency: "USD", Slot: 400_000, Out: 10_000}
	f.Terms.Slots = []market.GrantedSlot{{Model: "RTX_4090\x1b"}}
	return f
}

func TestAnInvoiceAddsUpFromWhatBothSigned(t *testing.T) {
	rig, renter := market.KeyOf(markettest.Private("rig")), market.KeyOf(markettest.Private("renter"))
	decided := market.Micro(100_000)
	disputed := facts(1, 600_000, 0)
	disputed.Decided = &decided
	head := market.Head{Seq: 3, Usage: market.Usage{SlotMs: 5_400_000, OutBytes: 2_500_000_000}}
	i, err := view.InvoiceOf(rig, renter, "USD", 99, []view.Invoiced{
		{Facts: facts(2, 625_000, 700_000), Head: head, Payments: []market.Payment{
			{Lease: market.LeaseID{2}, Amount: 500_000, Method: "lab", Reference: "r\x1b", Wall: 7},
			{Lease: market.LeaseID{2}, Amount: 200_000, Method: market.PayBalance, Wall: 6},
		}},
		{Facts: disputed, Head: market.Head{Seq: 1, Usage: market.Usage{SlotMs: 5_400_000}}},
		{Facts: facts(3, 0, 0)},
	})
	if err != nil {
		t.Fatal(err)
	}
	type line struct{ what, quantity, rate, amount string }
	var got []line
	for _, l := range i.Lines {
		got = append(got, line{l.What, l.Quantity, l.Rate.Text, l.Amount.Text})
	}
	want := []line{
		{"slots", "1.50 slot-hours", "0.40", "0.60"},
		{"traffic out", "0.00 GB", "0.01", "0.00"},
		{"guarantor's decision", "1", "-0.50", "-0.50"},
		{"slots", "1.50 slot-hours", "0.40", "0.60"},
		{"traffic out", "2.50 GB", "0.01", "0.025"},
	}
	if len(got) != len(want) {
		t.Fatalf("lines are %+v", got)
	}
	for n := range want {
		if got[n] != want[n] {
			t.Errorf("line %d is %+v, want %+v", n, got[n], want[n])
		}
	}
	if i.Total.Micro != 725_000 || i.Paid.Micro != 500_000 || i.Due.Micro != 225_000 || i.Balance.Micro != 0 {
		t.Errorf("total %s, paid %s, due %s, balance %s", i.Total.Text, i.Paid.Text, i.Due.Text, i.Balance.Text)
	}
	if len(i.Payments) != 2 || i.Payments[0].Method != market.PayBalance || i.Payments[1].Reference == "r\x1b" {
		t.Errorf("payments are %+v", i.Payments)
	}
}

func TestAnAccountIsWordedWithAllItsParts(t *testing.T) {
	l := market.NewLedger(market.RoleRig, 1000)
	for _, f := range []market.LeaseFacts{facts(1, 600_000, 100_000), facts(2, 300_000, 0)} {
		if err := l.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	accounts := l.Accounts()
	if len(accounts) != 1 {
		t.Fatalf("accounts are %+v", accounts)
	}
	e := view.LedgerEntryOf(accounts[0])
	if e.Owed.Micro != 800_000 || e.Paid.Micro != 100_000 || e.Credit.Now != e.Owed || len(e.Ageing) != 4 || len(e.Leases) != 2 ||
		e.Leases[0].Model == "RTX_4090\x1b" || e.Owner != market.KeyOf(markettest.Private("renter")).String() || e.Unspent.Text != "0.00" {
		t.Errorf("the entry is %+v", e)
	}
}

func TestAHistoryHasHoursAsADecimal(t *testing.T) {
	owner := market.KeyOf(markettest.Private("rig"))
	h := view.HistoryOf(owner, market.HistoryOf([]market.LeaseFacts{facts(1, 600_000, 100_000), facts(2, 1, 1)}))
	if h.Leases != 2 || h.Hours != "3.00" || len(h.Paid) != 1 || h.Paid[0].Micro != 100_001 || h.Owner != owner.String() {
		t.Errorf("the history is %+v", h)
	}
}
