package market_test

import (
	"bytes"
	"testing"

	"haggle/market"
	"haggle/market/markettest"
)

// FuzzPapers opens hostile bytes as every kind of paper, and as the body of one behind a good signature: what opens is in bounds, and
// encodes to the same bytes again.
func FuzzPapers(f *testing.F) {
	e := markettest.Paid()
	papers := append(e.Papers, market.Paper{Sealed: e.Outcome})
	for _, by := range []market.Role{market.RoleRig, market.RoleRenter, market.RoleGuarantor} {
		papers = append(papers, paper(market.SealDispute(network, markettest.Rig(), markettest.Dispute(by))))
	}
	for _, p := range papers {
		s, err := market.DecodeSealed(p.Sealed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(p.Sealed)
		f.Add(s.Body)
	}
	terms := markettest.PaidTerms()
	f.Fuzz(func(t *testing.T, data []byte) {
		openPapers(t, terms, data)
		for _, as := range []struct {
			kind market.Kind
			role market.Role
		}{
			{market.KindNotice, market.RoleRig},
			{market.KindPayment, market.RoleRig},
			{market.KindOutcome, market.RoleRig},
			{market.KindDispute, market.RoleRig},
			{market.KindDispute, market.RoleRenter},
			{market.KindDispute, market.RoleGuarantor},
			{market.KindGuarantee, market.RoleGuarantor},
		} {
			s := market.Sealed{Network: network, Kind: as.kind, Version: 1, Body: data}
			for _, key := range [][]byte{markettest.Rig(), markettest.Renter(), markettest.Guarantor()} {
				openPapers(t, terms, s.Sign(as.role, key).Encode())
			}
		}
	})
}

func openPapers(t *testing.T, terms market.Terms, raw []byte) {
	t.Helper()
	same := func(body any, s market.Sealed, err error) {
		if err == nil && !bytes.Equal(market.EncodeAny(body), s.Body) {
			t.Fatalf("%x decodes as %+v, which encodes as %x", s.Body, body, market.EncodeAny(body))
		}
	}
	n, s, err := market.OpenNotice(network, raw, terms)
	same(n, s, err)
	if err == nil && (n.KillAt < n.At || len(n.Reason) > 32) {
		t.Fatalf("a notice is out of bounds: %+v", n)
	}
	g, s, err := market.OpenGuarantee(network, raw)
	same(g, s, err)
	if err == nil && g.Amount <= 0 {
		t.Fatalf("a guarantee is out of bounds: %+v", g)
	}
	d, s, err := market.OpenDispute(network, raw, terms, market.KeyOf(markettest.Guarantor()))
	same(d, s, err)
	if err == nil && (d.Total < 0 || len(d.Words) > 500 || !s.SignedBy(d.By)) {
		t.Fatalf("a dispute is out of bounds: %+v", d)
	}
	p, s, err := market.OpenPayment(network, raw, terms)
	same(p, s, err)
	if err == nil && (p.Amount <= 0 || p.Total < p.Amount) {
		t.Fatalf("a payment is out of bounds: %+v", p)
	}
	o, s, err := market.OpenOutcome(network, raw, terms)
	same(o, s, err)
	if err == nil && !o.Follows(o) {
		t.Fatalf("an outcome takes itself back: %+v", o)
	}
}

// FuzzPaidEvidence judges hostile files and redacts them: nobody is accused whom the sample's honest keys do not accuse, and what is
// left out changes no verdict.
func FuzzPaidEvidence(f *testing.F) {
	paid := markettest.Paid()
	forked := cloned(paid)
	r := markettest.PaidReceipt(market.Head{}, 9000, market.ReceiptInterval)
	forked.Papers = append(forked.Papers, paper(market.SealReceipt(network, markettest.Rig(), r)))
	accused := forked.Encode()
	f.Add(paid.Encode())
	f.Add(paid.Redact().Encode())
	f.Add(accused)
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := market.DecodeEvidence(data)
		if err != nil {
			return
		}
		if !bytes.Equal(e.Encode(), data) {
			t.Fatal("a file that decodes does not encode to the same bytes")
		}
		whole, left := market.Judge(data), market.Judge(e.Redact().Encode())
		if whole.Verdict == market.VerdictFraud && !bytes.Contains(data, market.SealReceipt(network, markettest.Rig(), r).Encode()) {
			t.Fatalf("somebody is accused of what nobody signed: %+v", whole.Frauds)
		}
		if whole.Verdict != market.VerdictInvalid && left.Verdict != whole.Verdict {
			t.Fatalf("%s became %s: %+v", whole.Verdict, left.Verdict, left.Checks)
		}
	})
}
