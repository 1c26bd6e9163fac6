package market_test

import (
	"testing"

	"haggle/market"
	"haggle/market/markettest"
)

func TestARigThatWasPutBackTakesUpOnlyWhatItSigned(t *testing.T) {
	run := []market.Event{market.Signed{}, market.Prepared{}, market.Started{}}
	tests := []struct {
		name    string
		contact market.Contact
		spoil   func(*market.Receipt)
		code    market.Code
	}{
		{"what the renter has", market.Contact{Seq: 1}, func(*market.Receipt) {}, ""},
		{"more than the renter said", market.Contact{}, func(*market.Receipt) {}, market.CodeReceiptChain},
		{"before the renter said anything", market.Contact{Away: true, Seq: 1}, func(*market.Receipt) {}, market.CodeReceiptChain},
		{"by the word of a deputy", market.Contact{Seq: 1, Deputy: true}, func(*market.Receipt) {}, market.CodeReceiptChain},
		{"one that links elsewhere", market.Contact{Seq: 1}, func(r *market.Receipt) { r.Prev[0] ^= 1 }, market.CodeReceiptChain},
		{"one of another lease", market.Contact{Seq: 1}, func(r *market.Receipt) { r.Lease[0] ^= 1 }, market.CodeReceiptChain},
		{"one that leaves a number out", market.Contact{Seq: 2}, func(r *market.Receipt) { r.Seq = 2 }, market.CodeReceiptChain},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := after(t, markettest.Terms(), run...)
			l.Unsure = true
			now := market.Instant{Mono: 5000, Wall: markettest.Now + 5000}
			l, _, _ = market.Step(l, now, test.contact)
			r := markettest.Receipt(l.ID, market.Head{}, 50_000, market.ReceiptInterval)
			test.spoil(&r)
			next, _, err := market.Step(l, now, market.Agreed{Receipt: r, Hash: market.HashOf(r.Body())})
			if market.CodeOf(err) != test.code {
				t.Fatal(err)
			}
			if test.code == "" && (next.Meter.BilledMs != 50_000 || next.Head.Seq != 1 || !next.MaySign()) {
				t.Errorf("billed %d, head %d", next.Meter.BilledMs, next.Head.Seq)
			}
		})
	}
}

func TestARigThatWasPutBackEndsALeaseAsItDidBefore(t *testing.T) {
	l := after(t, markettest.Terms(), market.Signed{}, market.Prepared{}, market.Started{})
	l.Unsure = true
	now := market.Instant{Mono: 5000, Wall: markettest.Now + 5000}
	l, _, _ = market.Step(l, now, market.Contact{Seq: 1})
	final := markettest.Receipt(l.ID, market.Head{}, 50_000, market.ReceiptFinal)
	final.Exit = &market.Exit{Reason: market.ReasonBudget, Code: 137}
	agreed := market.Agreed{Receipt: final, Hash: market.HashOf(final.Body())}
	if _, _, err := market.Step(l, now, agreed); market.CodeOf(err) != market.CodeBadState {
		t.Errorf("a running job's chain is closed: %v", err)
	}
	l, _, _ = market.Step(l, now, market.Exited{Lost: true})
	if l.Draft != nil {
		t.Error("a second final receipt was drafted")
	}
	l, _, err := market.Step(l, now, agreed)
	if err != nil || l.Debt != market.DebtFinal || *l.Exit != *final.Exit || l.Reason != market.ReasonBudget || l.Total() != final.Bill.Total {
		t.Errorf("%v, debt %s, exit %v, total %s", err, l.Debt, l.Exit, l.Total())
	}
}

func TestWhatARigThatWasPutBackCountedAndWhatItTakesUpStayWithinTheBudget(t *testing.T) {
	terms := markettest.Terms()
	terms.Budget = 6000 // a minute of the card
	terms.Prices.Disk, terms.Resources.DiskMB = 1, 3_600_000
	l := after(t, terms, market.Signed{}, market.Prepared{}, market.Started{})
	l.Unsure = true
	now := market.Instant{Mono: 5000, Wall: markettest.Now + 5000}
	l, _, _ = market.Step(l, now, market.Contact{Seq: 1})
	l.Meter.KeptMs = 1_000_000 // it took the lease for a paused one, and the job had run on
	r := markettest.Receipt(l.ID, market.Head{}, 50_000, market.ReceiptInterval)
	r.Usage = terms.UsedBy(r.BilledMs, 0, 0, 0)
	r.Bill, _ = terms.Prices.Bill(r.Usage)
	l, _, err := market.Step(l, now, market.Agreed{Receipt: r, Hash: market.HashOf(r.Body())})
	if err != nil || l.Total() > terms.Budget || l.Total() < r.Bill.Total || l.Meter.BilledMs != 50_000 || l.Meter.KeptMs != 0 {
		t.Errorf("%v: total %s of %s, billed %d, kept %d", err, l.Total(), terms.Budget, l.Meter.BilledMs, l.Meter.KeptMs)
	}
}

func TestARigThatWasPutBackTakesAForgottenExtensionAfterTheEndToo(t *testing.T) {
	for _, seq := range []uint32{0, 1} { // what the renter has and the rig has not
		l := after(t, markettest.Terms(), market.Signed{}, market.Prepared{}, market.Started{})
		l.Unsure = true
		now := market.Instant{Mono: 5000, Wall: markettest.Now + 5000}
		l, _, _ = market.Step(l, now, market.Exited{Lost: true})
		l, _, _ = market.Step(l, now, market.Contact{Seq: seq})
		l, _, err := market.Step(l, now, market.Extend{Extension: markettest.Extension(l.ID, nil)})
		if (err == nil) != (seq > 0) || (l.Extension != nil) != (seq > 0) {
			t.Errorf("the renter has %d: %v", seq, err)
		}
	}
}
