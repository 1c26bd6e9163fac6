package market_test

import (
	"testing"

	"pgregory.net/rapid"

	"haggle/market"
	"haggle/market/markettest"
)

// rental returns a renter that has signed one receipt for 10 seconds, and that receipt.
func rental() (market.Rental, market.Receipt) {
	lease := market.LeaseID{1}
	first := markettest.Receipt(lease, market.Head{}, 10_000, market.ReceiptInterval)
	return market.Rental{Lease: lease, Terms: markettest.Terms(), Head: market.HeadOf(first, nameOf(first)), Theirs: 1}, first
}

func nameOf(r market.Receipt) market.Hash { return market.HashOf(r.Body()) }

func TestARenterAnswersAReceipt(t *testing.T) {
	base, first := rental()
	next := markettest.Receipt(base.Lease, base.Head, 70_000, market.ReceiptInterval)
	other := first
	other.WallMs++
	minute := market.Seen{RanMs: 70_000, SinceMs: 70_000}
	nobody := market.Seen{RanMs: market.Unlimited, SinceMs: market.Unlimited}
	kept := keptReceipt(next, 60_000) // at no price
	tests := []struct {
		name    string
		change  func(*market.Rental)
		receipt market.Receipt
		signed  bool
		stored  *market.Receipt
		seen    market.Seen
		want    market.AnswerKind
		code    market.Code
	}{
		{"the next one", nil, next, false, nil, minute, market.AnswerSign, ""},
		{"the next one, of more time than has passed", nil, next, false, nil, market.Seen{RanMs: 67_900, SinceMs: 67_900}, market.AnswerRefuse, market.CodeReceiptTime},
		{"the same for one that watched nothing", nil, next, false, nil, nobody, market.AnswerSign, ""},
		{"one that this side has signed and lost", nil, next, true, nil, market.Seen{}, market.AnswerKeep, ""},
		{"one that this side has signed and that does not follow", func(r *market.Rental) { r.Head.Hash[0]++ }, next, true, nil, minute, market.AnswerBroken, market.CodeReceiptChain},
		{"the last one again", nil, first, false, &first, minute, market.AnswerAgain, ""},
		{"the last one again, with both signatures", nil, first, true, &first, minute, market.AnswerKnown, ""},
		{"another one of that number", nil, other, false, &first, minute, market.AnswerRefuse, market.CodeReceiptChain},
		{"another one of that number, of a rig that was put back", func(r *market.Rental) { r.Theirs = 0 }, other, false, &first, minute, market.AnswerAgain, ""},
		{"one that was signed and is not stored", nil, first, false, nil, minute, market.AnswerBroken, market.CodeReceiptChain},
		{"any one after a refusal", func(r *market.Rental) { r.Disputed = true }, next, false, nil, minute, market.AnswerStored, ""},
		{"another lease's", func(r *market.Rental) { r.Lease[0]++ }, next, false, nil, minute, market.AnswerRefuse, market.CodeReceiptChain},
		{"a disk that was kept without an order", nil, kept, false, nil, market.Seen{RanMs: 70_000, SinceMs: 900_000}, market.AnswerRefuse, market.CodeReceiptTime},
		{"a disk that was kept by order", func(r *market.Rental) { r.Keeps = true }, kept, false, nil, market.Seen{RanMs: 70_000, SinceMs: 130_000}, market.AnswerSign, ""},
		{"a disk that was kept for longer than there was time", func(r *market.Rental) { r.Keeps = true }, kept, false, nil, market.Seen{RanMs: 70_000, SinceMs: 120_000}, market.AnswerRefuse, market.CodeReceiptTime},
		{"more than was paid", func(r *market.Rental) { r.Terms.Pay, r.Terms.Limits.Credit, r.Paid = "lab", 0, 6_999 }, next, false, nil, minute, market.AnswerRefuse, market.CodeReceiptPaid},
		{"what was sent and not yet confirmed", func(r *market.Rental) { r.Terms.Pay, r.Terms.Limits.Credit, r.Sent = "lab", 0, 7_000 }, next, false, nil, minute, market.AnswerSign, ""},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			r := base
			if c.change != nil {
				c.change(&r)
			}
			var stored *market.Hash
			if c.stored != nil {
				h := nameOf(*c.stored)
				stored = &h
			}
			got := r.Answer(c.receipt, nameOf(c.receipt), c.signed, stored, c.seen)
			if got.Kind != c.want || market.CodeOf(got.Why) != c.code && (got.Why != nil || c.code != "") {
				t.Fatalf("%s: %v", got.Kind, got.Why)
			}
			if (got.Reject != nil) != (c.want == market.AnswerRefuse) || (got.Head.Seq == 2) != (c.want == market.AnswerSign || c.want == market.AnswerKeep) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestARefusalNamesWhatTheRenterHoldsRight(t *testing.T) {
	r, _ := rental()
	over := markettest.Receipt(r.Lease, r.Head, 400_000, market.ReceiptInterval)
	for seen, total := range map[int64]market.Micro{100_000: 10_000, 5_000: 1_000, 0: 1_000} {
		got := r.Answer(over, nameOf(over), false, nil, market.Seen{RanMs: seen, SinceMs: seen})
		if got.Reject == nil || got.Reject.Total != total || got.Reject.ElapsedMs != seen || got.Reject.Receipt != nameOf(over) {
			t.Errorf("seen %d: %+v", seen, got.Reject)
		}
	}
}

// TestARenterNeverSignsBeyondItsMeasure draws receipts and what the renter knows, and checks what is promised of the answer.
func TestARenterNeverSignsBeyondItsMeasure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, first := rental()
		r.Disputed = rapid.Bool().Draw(t, "disputed")
		r.Theirs = rapid.Uint32Range(0, 2).Draw(t, "theirs")
		if rapid.Bool().Draw(t, "ahead") {
			r.Terms.Pay, r.Terms.Limits.Credit = "lab", 0
			r.Paid = market.Micro(rapid.Int64Range(0, 50_000).Draw(t, "paid"))
		}
		billed := rapid.Int64Range(0, 700_000).Draw(t, "billed")
		receipt := markettest.Receipt(r.Lease, r.Head, billed, market.ReceiptInterval)
		if rapid.Bool().Draw(t, "old") {
			receipt = first
			receipt.WallMs += rapid.Int64Range(0, 1).Draw(t, "other")
		}
		signed := rapid.Bool().Draw(t, "signed")
		ran := rapid.Int64Range(0, 700_000).Draw(t, "ran")
		stored := nameOf(first)
		got := r.Answer(receipt, nameOf(receipt), signed, &stored, market.Seen{RanMs: ran, SinceMs: ran})
		switch {
		case r.Disputed && got.Kind != market.AnswerStored:
			t.Fatalf("a disputed lease: %s", got.Kind)
		case got.Kind == market.AnswerSign && (signed || receipt.BilledMs > ran+ran/1000+2000 || receipt.Seq != 2):
			t.Fatalf("signed %d ms of %d", receipt.BilledMs, ran)
		case got.Kind == market.AnswerSign && receipt.Bill.Total > r.Terms.Ceiling(r.Paid):
			t.Fatalf("signed %s, and %s were paid", receipt.Bill.Total, r.Paid)
		case got.Kind == market.AnswerRefuse && signed && receipt.Seq == 2:
			t.Fatal("refused what it has signed")
		case got.Kind == market.AnswerRefuse && got.Reject.Total > max(receipt.Bill.Total, r.Head.Total):
			t.Fatalf("agrees to %s where %s are asked", got.Reject.Total, receipt.Bill.Total)
		}
		if got.Kind != market.AnswerSign {
			return
		}
		hash := nameOf(receipt)
		r.Head, r.Theirs = got.Head, 2
		if again := r.Answer(receipt, hash, false, &hash, market.Seen{}); again.Kind != market.AnswerAgain {
			t.Fatalf("the same again: %s", again.Kind)
		}
	})
}
