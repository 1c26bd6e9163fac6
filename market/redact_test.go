package market_test

import (
	"bytes"
	"crypto/ed25519"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"haggle/market"
	"haggle/market/markettest"
)

func TestEvidenceOfALeaseThatWasPaidAheadSaysWhatIsLeft(t *testing.T) {
	j := market.Judge(markettest.Paid().Encode())
	switch {
	case j.Verdict != market.VerdictAgreed:
		t.Fatalf("%s: %+v", j.Verdict, j.Checks[len(j.Checks)-1])
	case j.Paid != 72_000 || j.Head.Total != 7000 || j.Due != 0 || j.Balance != 65_000 || len(j.Payments) != 2 || j.Claim != 7000:
		t.Errorf("paid %s, total %s, due %s, balance %s", j.Paid, j.Head.Total, j.Due, j.Balance)
	case len(j.Notices) != 1 || j.Guarantee == nil || !j.Accepted || j.Outcome.Result != market.ResultRig || len(j.Gaps) != 2:
		t.Errorf("notices %v, guarantee %v, outcome %+v, gaps %v", j.Notices, j.Guarantee, j.Outcome, j.Gaps)
	}
}

func TestAPaymentThatLiesInTheFileTwiceCountsOnce(t *testing.T) {
	e := cloned(markettest.Paid())
	e.Papers = append(e.Papers, e.Papers[1])
	if j := market.Judge(e.Encode()); j.Verdict != market.VerdictAgreed || j.Paid != 72_000 || len(j.Payments) != 2 {
		t.Errorf("%s, %d payments, paid %s", j.Verdict, len(j.Payments), j.Paid)
	}
}

func TestALaterWordOfAnAcceptedResultNeedsNoSecondSignature(t *testing.T) {
	e := cloned(markettest.Paid())
	o := markettest.PaidOutcome()
	o.At++
	e.Papers = append(e.Papers, paper(market.SealOutcome(network, markettest.Rig(), o)))
	if j := market.Judge(e.Encode()); !j.Accepted || j.Outcome.At != o.At {
		t.Errorf("accepted %t, at %d", j.Accepted, j.Outcome.At)
	}
	o.At, o.Result = o.At+1, market.ResultDisputed
	e.Papers = append(e.Papers, paper(market.SealOutcome(network, markettest.Rig(), o)))
	if j := market.Judge(e.Encode()); j.Accepted || j.Outcome.Result != market.ResultDisputed {
		t.Errorf("another result is accepted: %t, %s", j.Accepted, j.Outcome.Result)
	}
}

func TestTheGuarantorsWordDecidesADispute(t *testing.T) {
	e := cloned(markettest.Paid())
	decision := markettest.Dispute(market.RoleGuarantor)
	decision.Total, decision.Wall = 80_000, decision.Wall+1
	first := market.SealDispute(network, markettest.Guarantor(), markettest.Dispute(market.RoleGuarantor))
	e.Papers = append(e.Papers, paper(market.SealDispute(network, markettest.Renter(), markettest.Dispute(market.RoleRenter))),
		paper(market.SealDispute(network, markettest.Guarantor(), decision)), paper(first))
	j := market.Judge(e.Encode())
	if j.Verdict != market.VerdictOpen || len(j.Disputes) != 3 || j.Decided == nil || j.Decided.Total != 80_000 || j.Due != 8000 || j.Balance != 0 {
		t.Errorf("%s, decided %+v, due %s", j.Verdict, j.Decided, j.Due)
	}
	e.Papers = slices.DeleteFunc(e.Papers, func(p market.Paper) bool { return p.Kind == market.KindGuarantee })
	if j := market.Judge(e.Encode()); j.Verdict != market.VerdictInvalid {
		t.Errorf("without the guarantee nobody knows the guarantor: %s", j.Verdict)
	}
}

func TestARefusedReceiptIsNotJudgedAsTheRenters(t *testing.T) {
	e := cloned(markettest.Paid())
	r, _, err := market.OpenReceipt(network, e.Receipts[1], markettest.PaidTerms())
	if err != nil {
		t.Fatal(err)
	}
	r.Bill.Total++ // the rig cannot count
	s := market.SealReceipt(network, markettest.Rig(), r)
	e.Outcome = nil
	e.Receipts = append(e.Receipts[:1:1], s.Encode())
	if j := market.Judge(e.Encode()); j.Verdict != market.VerdictInvalid {
		t.Errorf("a bill that does not add up: %s", j.Verdict)
	}
	e.Rejects = [][]byte{refusalOf(t, s.Encode(), markettest.Renter()).Encode()}
	for _, beside := range []bool{false, true} {
		if beside {
			e.Receipts, e.Papers = e.Receipts[:1], append(e.Papers, paper(s))
		}
		j := market.Judge(e.Encode())
		if j.Verdict != market.VerdictOpen || len(j.Refusals) != 1 || j.Refusals[0].Wrong == "" || j.Head.Seq != 1 {
			t.Errorf("refused, beside %t: %s, refusals %+v", beside, j.Verdict, j.Refusals)
		}
	}
}

func TestEvidenceWithAnyByteChangedOfItsPapersIsInvalid(t *testing.T) {
	t.Parallel()
	full, papers := markettest.Paid(), 0
	for _, p := range full.Papers {
		papers += len(p.Sealed)
	}
	data := full.Encode()
	anyByteChanged(t, data, len(data)-papers) // what stands before them is like the other samples
	anyByteChanged(t, full.Redact().Encode(), 0)
}

func TestRedactedEvidenceKeepsOnlyWhatTheBillNeeds(t *testing.T) {
	full := markettest.Paid()
	e := full.Redact()
	if e.Offer != nil || e.Bid != nil || len(e.Receipts) != 1 || !bytes.Equal(e.Receipts[0], full.Receipts[2]) || len(e.Papers) != 3 {
		t.Errorf("%d receipts and %d papers are left", len(e.Receipts), len(e.Papers))
	}
	if !slices.Equal(e.Redacted, []string{"bid", "offer", "payments", "receipts"}) || !slices.Equal(e.Redact().Redacted, e.Redacted) {
		t.Errorf("it says that it leaves out %v", e.Redacted)
	}
	a, b := market.Judge(full.Encode()), market.Judge(e.Encode())
	if a.Verdict != b.Verdict || a.Head.Hash != b.Head.Hash || a.Bill != b.Bill || a.Paid != b.Paid || a.Balance != b.Balance || b.Lease != a.Lease {
		t.Errorf("%s became %s: %+v", a.Verdict, b.Verdict, b.Checks[len(b.Checks)-1])
	}
	if bytes.Contains(e.Encode(), []byte("rig-1")) {
		t.Error("the offer is still in it")
	}
}

func TestEvidenceCannotLieAboutWhatItLeavesOut(t *testing.T) {
	for name, change := range map[string]func(e *market.Evidence){
		"an unknown part":       func(e *market.Evidence) { e.Redacted = []string{"lease"} },
		"a part named twice":    func(e *market.Evidence) { e.Redacted = []string{"bid", "bid"} },
		"parts out of order":    func(e *market.Evidence) { e.Redacted = []string{"offer", "bid"} },
		"an offer that is here": func(e *market.Evidence) { e.Redacted = []string{"offer"} },
		"another bid": func(e *market.Evidence) {
			e.Redacted, e.Offer, e.Bid = []string{"offer"}, nil, markettest.Evidence().Bid
		},
		"an offer that is not": func(e *market.Evidence) { e.Offer = nil },
		"receipts not named":   func(e *market.Evidence) { e.Receipts = e.Receipts[2:] },
		"payments not named":   func(e *market.Evidence) { e.Papers = slices.Delete(slices.Clone(e.Papers), 1, 2) },
		"a guarantee that the lease does not name": func(e *market.Evidence) {
			g := markettest.Guarantee()
			g.Amount++
			e.Papers = append(e.Papers, paper(market.SealGuarantee(network, markettest.Guarantor(), g)))
		},
		"a paper of no use": func(e *market.Evidence) { e.Papers = append(e.Papers, market.Paper{Sealed: e.Lease}) },
	} {
		e := cloned(markettest.Paid())
		change(&e)
		if j := market.Judge(e.Encode()); j.Verdict != market.VerdictInvalid {
			t.Errorf("%s: %s", name, j.Verdict)
		}
	}
}

// history draws the records of two honest sides: what they may sign in any order of events.
func history(t *rapid.T) market.Evidence {
	e := cloned(markettest.Paid())
	rig, renter := markettest.Rig(), markettest.Renter()
	side := func() ed25519.PrivateKey {
		return rapid.SampledFrom([]ed25519.PrivateKey{renter, markettest.Deputy()}).Draw(t, "signer")
	}
	e.Receipts, e.Papers, e.Outcome = nil, e.Papers[:1], nil
	var head market.Head
	billed, over := int64(0), false
	for range rapid.IntRange(0, 5).Draw(t, "receipts") {
		billed += rapid.Int64Range(0, 100_000).Draw(t, "ms")
		kind := market.ReceiptInterval
		if over = rapid.IntRange(0, 3).Draw(t, "final") == 0; over {
			kind = market.ReceiptFinal
		}
		r := markettest.PaidReceipt(head, billed, kind)
		s := market.SealReceipt(network, rig, r)
		fate := rapid.IntRange(0, 9).Draw(t, "fate")
		if fate > 1 {
			s = s.Sign(market.RoleRenter, side())
		}
		e.Receipts, head = append(e.Receipts, s.Encode()), market.HeadOf(r, s.Hash())
		if fate == 1 {
			e.Rejects = append(e.Rejects, market.SealReject(network, side(), market.Reject{Lease: r.Lease, Seq: r.Seq, Receipt: s.Hash(), Code: market.CodeReceiptTime}).Encode())
		}
		if over || fate <= 1 {
			break
		}
	}
	var total market.Micro
	for seq := range rapid.Uint32Range(0, 4).Draw(t, "payments") {
		amount := market.Micro(rapid.Int64Range(1, 5000).Draw(t, "amount"))
		e.Papers = append(e.Papers, paper(market.SealPayment(network, rig, markettest.Payment(seq, total, amount))))
		total += amount
	}
	o := markettest.PaidOutcome()
	o.DiskAt, o.At = 0, o.At-100
	for range rapid.IntRange(0, 2).Draw(t, "outcomes") {
		s := market.SealOutcome(network, rig, o)
		if rapid.Bool().Draw(t, "accepted") {
			s = market.AcceptOutcome(s, side())
		}
		e.Papers = append(e.Papers, paper(s))
		o.At, o.DiskAt, e.Outcome = o.At+100, o.At+100, s.Encode()
	}
	for _, by := range []market.Role{market.RoleRig, market.RoleRenter, market.RoleGuarantor} {
		if rapid.IntRange(0, 4).Draw(t, "disputed") == 0 {
			key := map[market.Role]ed25519.PrivateKey{market.RoleRig: rig, market.RoleRenter: renter, market.RoleGuarantor: markettest.Guarantor()}[by]
			e.Papers = append(e.Papers, paper(market.SealDispute(network, key, markettest.Dispute(by))))
		}
	}
	e.Papers = rapid.Permutation(e.Papers).Draw(t, "order")
	return e
}

func TestHonestSidesAreNeverAccusedAndRedactionChangesNoVerdict(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := history(t)
		j := market.Judge(e.Encode())
		if j.Verdict != market.VerdictAgreed && j.Verdict != market.VerdictOpen {
			t.Fatalf("%s: %+v", j.Verdict, j.Checks[len(j.Checks)-1])
		}
		r := market.Judge(e.Redact().Encode())
		if r.Verdict != j.Verdict || r.Paid != j.Paid || r.Due != j.Due || r.Balance != j.Balance || r.Head.Hash != j.Head.Hash || r.Claim != j.Claim || r.Accepted != j.Accepted {
			t.Fatalf("%s became %s: %+v", j.Verdict, r.Verdict, r.Checks[len(r.Checks)-1])
		}
		drop := func(name string) bool { return rapid.IntRange(0, 3).Draw(t, name) == 0 }
		e.Receipts = slices.DeleteFunc(e.Receipts, func([]byte) bool { return drop("receipt") })
		e.Rejects = slices.DeleteFunc(e.Rejects, func([]byte) bool { return drop("refusal") })
		e.Papers = slices.DeleteFunc(e.Papers, func(market.Paper) bool { return drop("paper") })
		for _, left := range []market.Evidence{e, e.Redact()} {
			if j := market.Judge(left.Encode()); j.Verdict == market.VerdictFraud || !j.Guilty.IsZero() {
				t.Fatalf("an honest side is accused: %+v", j.Frauds)
			}
		}
	})
}
