package market_test

import (
	"testing"

	"haggle/market"
	"haggle/market/markettest"
)

func TestARenterSignsOnlyAReceiptThatFollowsAndAddsUp(t *testing.T) {
	lease := market.LeaseID{1}
	first := markettest.Receipt(lease, market.Head{}, 10_000, market.ReceiptInterval)
	first.Gaps = gaps("down", 5)
	head := market.HeadOf(first, market.HashOf(first.Body()))
	tests := []struct {
		name   string
		change func(*market.Receipt)
		code   market.Code
	}{
		{"as it should be", func(*market.Receipt) {}, ""},
		{"another lease", func(r *market.Receipt) { r.Lease = market.LeaseID{2} }, market.CodeReceiptChain},
		{"a number is left out", func(r *market.Receipt) { r.Seq++ }, market.CodeReceiptChain},
		{"the old one again", func(r *market.Receipt) { *r = first }, market.CodeReceiptChain},
		{"a link to other bytes", func(r *market.Receipt) { r.Prev[0] ^= 1 }, market.CodeReceiptChain},
		{"the time falls", func(r *market.Receipt) { *r = markettest.Receipt(lease, head, 9_999, market.ReceiptInterval) }, market.CodeReceiptChain},
		{"an exit on an interval", func(r *market.Receipt) { r.Exit = &market.Exit{} }, market.CodeReceiptChain},
		{"a final without an exit", func(r *market.Receipt) { r.Kind = market.ReceiptFinal }, market.CodeReceiptChain},
		{"one millionth too much", func(r *market.Receipt) { r.Bill.Slot++; r.Bill.Total++ }, market.CodeReceiptMath},
		{"a line that is not in the sum", func(r *market.Receipt) { r.Bill.Disk = 5 }, market.CodeReceiptMath},
		{"slots that were not granted", func(r *market.Receipt) { r.Usage.SlotMs *= 2 }, market.CodeReceiptMath},
		{"more time than I saw", func(r *market.Receipt) {
			*r = markettest.Receipt(lease, head, 90_000, market.ReceiptInterval)
			r.Gaps = first.Gaps
		}, market.CodeReceiptTime},
		{"more time than was leased", func(r *market.Receipt) { *r = markettest.Receipt(lease, head, 600_001, market.ReceiptInterval) }, market.CodeReceiptTime},
		{"a kept disk", func(r *market.Receipt) { *r = keptReceipt(*r, 60_000) }, ""},
		{"a kept disk that is not in the usage", func(r *market.Receipt) { r.KeptMs = 60_000 }, market.CodeReceiptMath},
		{"a kept disk for less than no time", func(r *market.Receipt) { *r = keptReceipt(*r, -1) }, market.CodeReceiptChain},
		{"a kept disk for more than a year", func(r *market.Receipt) { r.KeptMs = 367 * 24 * 3_600_000 }, market.CodeReceiptChain},
		{"time that is not billed, by reason", func(r *market.Receipt) { r.Gaps = gaps("down", 5, "fault", 3) }, ""},
		{"time that is not billed falls", func(r *market.Receipt) { r.Gaps = gaps("down", 4, "fault", 9) }, market.CodeReceiptChain},
		{"a reason vanishes", func(r *market.Receipt) { r.Gaps = gaps("fault", 9) }, market.CodeReceiptChain},
		{"a reason twice", func(r *market.Receipt) { r.Gaps = gaps("down", 5, "down", 5) }, market.CodeReceiptChain},
		{"reasons in no order", func(r *market.Receipt) { r.Gaps = gaps("fault", 9, "down", 5) }, market.CodeReceiptChain},
		{"a reason of a newer program", func(r *market.Receipt) { r.Gaps = gaps("down", 5, "eclipse", 9) }, ""},
		{"a reason without a name", func(r *market.Receipt) { r.Gaps = gaps("", 5, "down", 5) }, market.CodeReceiptChain},
		{"less than no time for a reason", func(r *market.Receipt) { r.Gaps = gaps("down", 5, "fault", -1) }, market.CodeReceiptChain},
		{"too many reasons", func(r *market.Receipt) { r.Gaps = make([]market.Unbilled, 17) }, market.CodeReceiptChain},
		{"less than nothing paid", func(r *market.Receipt) { r.Paid = -1 }, market.CodeReceiptChain},
		{"negative traffic", func(r *market.Receipt) { r.Usage.InBytes = -1 }, market.CodeReceiptChain},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := markettest.Receipt(lease, head, 70_000, market.ReceiptInterval)
			r.Gaps = gaps("down", 5)
			test.change(&r)
			if err := market.CheckReceipt(lease, markettest.Terms(), head, r, 71_000); market.CodeOf(err) != test.code {
				t.Errorf("got %v", err)
			}
		})
	}
}

// keptReceipt makes a receipt of one that says so much of a kept disk, with the right usage.
func keptReceipt(r market.Receipt, ms int64) market.Receipt {
	r.KeptMs, r.Usage = ms, markettest.Terms().UsedBy(r.BilledMs, ms, 0, 0)
	return r
}

func TestTheTimeOfAKeptDiskNeverFallsAndIsWhatTheRenterSaw(t *testing.T) {
	lease, terms := market.LeaseID{1}, markettest.Terms()
	terms.Prices.Disk = 3600
	priced := func(r market.Receipt) market.Receipt {
		bill, err := terms.Prices.Bill(r.Usage)
		if err != nil {
			t.Fatal(err)
		}
		r.Bill = bill
		return r
	}
	first := priced(keptReceipt(markettest.Receipt(lease, market.Head{}, 10_000, market.ReceiptInterval), 60_000))
	if err := market.CheckReceipt(lease, terms, market.Head{}, first, 10_000); err != nil || first.Bill.Disk != 700 {
		t.Errorf("disk costs %d: %v", first.Bill.Disk, err)
	}
	head := market.HeadOf(first, market.HashOf(first.Body()))
	for kept, code := range map[int64]market.Code{60_000: "", 59_999: market.CodeReceiptChain, 120_000: ""} {
		r := priced(keptReceipt(markettest.Receipt(lease, head, 10_000, market.ReceiptInterval), kept))
		if err := market.CheckReceipt(lease, terms, head, r, 10_000); market.CodeOf(err) != code {
			t.Errorf("kept %d: %v", kept, err)
		}
	}
	for seen, code := range map[int64]market.Code{60_000: "", 58_000: "", 57_000: market.CodeReceiptTime, 0: market.CodeReceiptTime} {
		if err := market.CheckKept(first, seen); market.CodeOf(err) != code {
			t.Errorf("seen %d: %v", seen, err)
		}
	}
}

func TestABudgetBoundsEveryReceipt(t *testing.T) {
	terms := markettest.Terms()
	terms.Budget = 999
	r := markettest.Receipt(market.LeaseID{1}, market.Head{}, 10_000, market.ReceiptInterval)
	if err := market.CheckReceipt(market.LeaseID{1}, terms, market.Head{}, r, market.Unlimited); market.CodeOf(err) != market.CodeReceiptBudget {
		t.Errorf("got %v", err)
	}
}

// gaps makes a list of unbilled time of reasons and milliseconds in turn.
func gaps(of ...any) []market.Unbilled {
	var list []market.Unbilled
	for i := 0; i < len(of); i += 2 {
		list = append(list, market.Unbilled{Reason: market.UnbilledReason(of[i].(string)), Ms: int64(of[i+1].(int))})
	}
	return list
}

func TestARenterSignsNothingBeyondWhatWasPaidAndMayBeOwed(t *testing.T) {
	terms := markettest.PaidTerms()
	terms.Limits.Credit = 1000
	r := markettest.PaidReceipt(market.Head{}, 70_000, market.ReceiptInterval) // 7000 millionths
	for paid, code := range map[market.Micro]market.Code{6000: "", 50_000: "", 5999: market.CodeReceiptPaid, 0: market.CodeReceiptPaid} {
		if err := market.CheckCeiling(terms, r, paid); market.CodeOf(err) != code {
			t.Errorf("%s paid: %v", paid, err)
		}
	}
}

func TestADeputySignsReceiptsAndRefusalsAndNothingElse(t *testing.T) {
	terms := markettest.PaidTerms()
	sealed := market.SealReceipt(markettest.Network, markettest.Rig(), markettest.PaidReceipt(market.Head{}, 10_000, market.ReceiptInterval))
	reject := market.Reject{Lease: markettest.PaidLease(), Seq: 1, Code: market.CodeReceiptTime}
	for name, ok := range map[string]bool{"deputy": true, "renter": true, "guarantor": false} {
		key := markettest.Private(name)
		_, _, err := market.OpenReceipt(markettest.Network, sealed.Sign(market.RoleRenter, key).Encode(), terms)
		if (err == nil) != ok {
			t.Errorf("receipt by the %s: %v", name, err)
		}
		_, _, err = market.OpenReject(markettest.Network, market.SealReject(markettest.Network, key, reject).Encode(), terms)
		if (err == nil) != ok {
			t.Errorf("refusal by the %s: %v", name, err)
		}
	}
	x := market.SealExtension(markettest.Network, markettest.Deputy(), markettest.Extension(markettest.PaidLease(), nil))
	if _, _, err := market.OpenExtension(markettest.Network, x.Encode(), terms); market.CodeOf(err) != market.CodeBadSignature {
		t.Errorf("an extension by a deputy: %v", err)
	}
}
