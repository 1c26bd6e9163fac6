package market_test

import (
	"bytes"
	"slices"
	"testing"

	"haggle/market"
	"haggle/market/markettest"
)

func samples() [][]byte {
	e, kept, paid := markettest.Evidence(), markettest.Kept(), markettest.Paid()
	list := [][]byte{e.Offer, e.Bid, e.Lease, e.Outcome, e.Encode(), kept.Encode(), paid.Offer, paid.Bid, paid.Lease, paid.Encode()}
	for _, p := range paid.Papers {
		list = append(list, p.Sealed)
	}
	return slices.Concat(list, e.Receipts, kept.Receipts, kept.Extensions, paid.Receipts)
}

// FuzzSealed opens hostile bytes as every kind of record. What opens must encode to the same bytes again.
func FuzzSealed(f *testing.F) {
	for _, s := range samples() {
		f.Add(s)
	}
	terms := markettest.PaidTerms()
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, err := market.DecodeSealed(data); err == nil && !bytes.Equal(s.Encode(), data) {
			t.Fatalf("%x decodes and encodes as %x", data, s.Encode())
		}
		_, _, _ = market.OpenOffer(markettest.Network, data)
		_, _, _ = market.OpenBid(markettest.Network, data)
		_, _, _ = market.OpenLease(markettest.Network, data)
		_, _, _ = market.OpenReceipt(markettest.Network, data, terms)
		_, _, _ = market.OpenReject(markettest.Network, data, terms)
		_, _, _ = market.OpenExtension(markettest.Network, data, terms)
		_, _, _ = market.OpenOutcome(markettest.Network, data, terms)
		_, _ = market.OpenDelegate(markettest.Network, data)
		_, _, _ = market.OpenPayment(markettest.Network, data, terms)
		_, _, _ = market.OpenNotice(markettest.Network, data, terms)
		_, _, _ = market.OpenGuarantee(markettest.Network, data)
		_, _, _ = market.OpenDispute(markettest.Network, data, terms, market.Key{})
	})
}

// FuzzBodies decodes hostile bytes as the body of every kind of record, behind a good signature: validation must hold
// without the signature's help, and never panic.
func FuzzBodies(f *testing.F) {
	for _, raw := range samples() {
		if s, err := market.DecodeSealed(raw); err == nil {
			f.Add(s.Body)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var o market.Offer
		if market.DecodeStrict(body, &o) == nil && o.Validate(markettest.Network) == nil {
			_, _ = market.Pick(o, markettest.Bid())
			_ = o.CheckAge(markettest.Now)
		}
		var b market.Bid
		if market.DecodeStrict(body, &b) == nil && b.Validate() == nil {
			_ = market.Admit(markettest.Offer(), b.Offer, b, markettest.Now)
		}
		var r market.Receipt
		if market.DecodeStrict(body, &r) == nil {
			_ = market.CheckReceipt(r.Lease, markettest.Terms(), market.Head{}, r, market.Unlimited)
			_ = market.CheckKept(r, 0)
			_ = market.CheckCeiling(markettest.PaidTerms(), r, r.Paid)
		}
		var x market.Extension
		if market.DecodeStrict(body, &x) == nil && market.CheckExtension(x.Lease, markettest.Terms(), nil, x) == nil {
			_ = market.ConsentTo(markettest.Offer(), markettest.Terms(), x)
		}
		var j market.Job
		if market.DecodeStrict(body, &j) == nil {
			_ = market.AdmitJob(markettest.Offer(), markettest.Bid(), j)
		}
		var terms market.Terms
		if market.DecodeStrict(body, &terms) == nil {
			_ = market.CheckGrant(terms, markettest.Offer(), markettest.Bid(), terms.Bid, markettest.Now)
			l := market.NewLease(market.LeaseID{1}, terms, market.Instant{}, false)
			_, _ = l.NextSlice()
			_ = l.Funded()
		}
		var p market.Payment
		if market.DecodeStrict(body, &p) == nil {
			_ = market.CheckPayment(p.Lease, p.Seq-1, p.Total-p.Amount, p)
		}
	})
}

// FuzzMessage decodes hostile frames.
func FuzzMessage(f *testing.F) {
	messages := []market.Message{
		market.Refuse{Err: *market.Public(market.NewError(market.CodeSlotTaken, "free", "0"))},
		market.Hello{Seq: 3},
		market.BidMessage{Bid: []byte{1}, Offer: []byte{2}, Job: markettest.Job()},
		market.GrantMessage{},
		market.AcceptMessage{Env: market.Env{"A=b"}},
		market.StatusMessage{State: market.JobRunning},
		market.ReceiptMessage{},
		market.RejectMessage{},
		market.AckMessage{Seq: 1},
		market.StopMessage{Kill: true},
		market.OffersRequest{},
		market.OfferMessage{},
		market.EndMessage{},
		market.TunnelRequest{Kind: "log"},
		market.ChunkMessage{Data: []byte("x")},
		market.OutcomeMessage{Outcome: []byte("x")},
		market.AcceptMessage{Secrets: []market.Secret{{Name: "token", Value: []byte("x")}}},
		market.StatusMessage{State: market.JobPaused, Ready: true, Attempt: 2, KeptMs: 5},
		market.Hello{Seq: 3, Paid: 2},
		market.BidMessage{Guarantee: []byte("x")},
		market.StatusMessage{Paid: 5, Dry: 7},
		market.AskMessage{Slice: market.Slice{Seq: 1, Amount: 2, ForMs: 3, AskedAt: 4}, Method: "lab", Currency: "USD", Text: "x"},
		market.PaidMessage{Slice: 1, Amount: 2, Reference: "x"},
		market.PaymentMessage{Payment: []byte("x")},
		market.NoticeMessage{Notice: []byte("x")},
		market.DisputeMessage{Dispute: []byte("x")},
		market.HandoverMessage{Lease: []byte("x"), Job: markettest.Job(), Cap: 5, Collects: []string{"/work"}},
		market.StopMessage{Keep: true},
		market.OpenMessage{Offset: 7},
		market.BeginMessage{},
		market.ResumeMessage{},
		market.ExtendMessage{Extension: []byte("x")},
		market.DeclineMessage{What: market.OrderExtend, Err: *market.Public(market.NewError(market.CodePriceRose, "now", "1", "lease", "0"))},
	}
	for _, m := range messages {
		data, err := market.EncodeMessage(m)
		if err != nil {
			f.Fatal(err)
		}
		if back, err := market.DecodeMessage(data); err != nil || back.Type() != m.Type() {
			f.Fatalf("%T came back as %T (%v)", m, back, err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := market.DecodeMessage(data); err == nil {
			_, _ = market.EncodeMessage(m)
		}
	})
}

// FuzzEvidence judges hostile files.
func FuzzEvidence(f *testing.F) {
	f.Add(markettest.Evidence().Encode())
	f.Add(markettest.Kept().Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		if j := market.Judge(data); j.Verdict == market.VerdictAgreed &&
			!bytes.Equal(data, markettest.Evidence().Encode()) && !bytes.Equal(data, markettest.Kept().Encode()) {
			t.Fatalf("other bytes than the sample were judged as agreed")
		}
	})
}
