package market_test

import (
	"testing"

	"haggle/market"
	"haggle/market/markettest"
)

func TestARenterSignsOnlyAReceiptThatFollowsAndAddsUp(t *testing.T) {
	lease := market.LeaseID{1}
	first := markettest.Receipt(lease, market.Head{}, 10_000, market.ReceiptInterval)
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
		{"more time than I saw", func(r *market.Receipt) { *r = markettest.Receipt(lease, head, 90_000, market.ReceiptInterval) }, market.CodeReceiptTime},
		{"more time than was leased", func(r *market.Receipt) { *r = markettest.Receipt(lease, head, 600_001, market.ReceiptInterval) }, market.CodeReceiptTime},
		{"negative traffic", func(r *market.Receipt) { r.Usage.InBytes = -1 }, market.CodeReceiptChain},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := markettest.Receipt(lease, head, 70_000, market.ReceiptInterval)
			test.change(&r)
			if err := market.CheckReceipt(lease, markettest.Terms(), head, r, 71_000); market.CodeOf(err) != test.code {
				t.Errorf("got %v", err)
			}
		})
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
