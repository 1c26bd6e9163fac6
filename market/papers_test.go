package market_test

import (
	"strings"
	"testing"

	"haggle/market"
	"haggle/market/markettest"
)

const network = markettest.Network

func TestAnotherKeyOrABadNumberOpensNoPaper(t *testing.T) {
	terms := markettest.PaidTerms()
	guarantor := market.KeyOf(markettest.Guarantor())
	notice := func(n market.Notice) []byte { return market.SealNotice(network, markettest.Rig(), n).Encode() }
	promise := func(g market.Guarantee) []byte {
		return market.SealGuarantee(network, markettest.Guarantor(), g).Encode()
	}
	dispute := func(d market.Dispute) []byte { return market.SealDispute(network, markettest.Renter(), d).Encode() }
	outcome := func(o market.Outcome) []byte { return market.SealOutcome(network, markettest.Rig(), o).Encode() }
	openNotice := func(raw []byte) error { _, _, err := market.OpenNotice(network, raw, terms); return err }
	openPromise := func(raw []byte) error { _, _, err := market.OpenGuarantee(network, raw); return err }
	openDispute := func(raw []byte) error { _, _, err := market.OpenDispute(network, raw, terms, guarantor); return err }
	openOutcome := func(raw []byte) error { _, _, err := market.OpenOutcome(network, raw, terms); return err }
	tests := []struct {
		name string
		open func([]byte) error
		raw  []byte
		code market.Code // "": it opens
	}{
		{"a notice", openNotice, notice(markettest.Notice()), ""},
		{"a notice by the renter", openNotice, market.SealNotice(network, markettest.Renter(), markettest.Notice()).Encode(), market.CodeBadSignature},
		{"a notice without a reason", openNotice, notice(with(markettest.Notice(), func(n *market.Notice) { n.Reason = "" })), market.CodeBadRecord},
		{"a notice with an endless reason", openNotice, notice(with(markettest.Notice(), func(n *market.Notice) { n.Reason = market.Reason(strings.Repeat("x", 33)) })), market.CodeBadRecord},
		{"a notice that kills before it warns", openNotice, notice(with(markettest.Notice(), func(n *market.Notice) { n.KillAt = n.At - 1 })), market.CodeBadRecord},
		{"a notice of number 0", openNotice, notice(with(markettest.Notice(), func(n *market.Notice) { n.Seq = 0 })), market.CodeBadRecord},
		{"a notice as a guarantee", openPromise, notice(markettest.Notice()), market.CodeBadRecord},

		{"a guarantee", openPromise, promise(markettest.Guarantee()), ""},
		{"a guarantee by another", openPromise, market.SealGuarantee(network, markettest.Rig(), markettest.Guarantee()).Encode(), market.CodeBadSignature},
		{"a guarantee of nothing", openPromise, promise(with(markettest.Guarantee(), func(g *market.Guarantee) { g.Amount = 0 })), market.CodeBadRecord},
		{"a guarantee for itself", openPromise, promise(with(markettest.Guarantee(), func(g *market.Guarantee) { g.Renter = g.Guarantor })), market.CodeBadRecord},
		{"a guarantee of no currency", openPromise, promise(with(markettest.Guarantee(), func(g *market.Guarantee) { g.Currency = "$" })), market.CodeBadRecord},
		{"a guarantee that ends first", openPromise, promise(with(markettest.Guarantee(), func(g *market.Guarantee) { g.Until = g.Issued })), market.CodeBadRecord},

		{"a dispute", openDispute, dispute(markettest.Dispute(market.RoleRenter)), ""},
		{"the guarantor's dispute", openDispute, market.SealDispute(network, markettest.Guarantor(), markettest.Dispute(market.RoleGuarantor)).Encode(), ""},
		{"a dispute in another's name", openDispute, dispute(markettest.Dispute(market.RoleGuarantor)), market.CodeBadSignature},
		{"a dispute of the owner", openDispute, dispute(markettest.Dispute(market.RoleOwner)), market.CodeBadSignature},
		{"a dispute by a deputy", openDispute, market.SealDispute(network, markettest.Deputy(), markettest.Dispute(market.RoleRenter)).Encode(), market.CodeBadSignature},
		{"a dispute of two", openDispute, market.SealDispute(network, markettest.Renter(), markettest.Dispute(market.RoleRenter)).Sign(market.RoleRig, markettest.Rig()).Encode(), market.CodeBadSignature},
		{"a dispute that says too much", openDispute, dispute(with(markettest.Dispute(market.RoleRenter), func(d *market.Dispute) { d.Words = strings.Repeat("x", 501) })), market.CodeBadRecord},
		{"a dispute about half a receipt", openDispute, dispute(with(markettest.Dispute(market.RoleRenter), func(d *market.Dispute) { d.Seq = 0 })), market.CodeBadRecord},
		{"a dispute with a total below nothing", openDispute, dispute(with(markettest.Dispute(market.RoleRenter), func(d *market.Dispute) { d.Total = -1 })), market.CodeBadRecord},

		{"an outcome", openOutcome, outcome(markettest.PaidOutcome()), ""},
		{"an outcome that a deputy accepted", openOutcome, accepted(t, outcome(markettest.PaidOutcome()), "deputy"), ""},
		{"an outcome that a stranger accepted", openOutcome, accepted(t, outcome(markettest.PaidOutcome()), "stranger"), market.CodeBadSignature},
		{"an outcome of an unknown result", openOutcome, outcome(with(markettest.PaidOutcome(), func(o *market.Outcome) { o.Result = "fine" })), market.CodeBadRecord},
		{"an outcome of half a chain", openOutcome, outcome(with(markettest.PaidOutcome(), func(o *market.Outcome) { o.Chain = &market.ChainEnd{Count: 1} })), market.CodeBadRecord},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if err := test.open(test.raw); market.CodeOf(err) != test.code {
				t.Errorf("got %v, want code %q", err, test.code)
			}
		})
	}
}

func with[T any](v T, change func(*T)) T {
	change(&v)
	return v
}

func accepted(t *testing.T, raw []byte, who string) []byte {
	t.Helper()
	s, err := market.DecodeSealed(raw)
	if err != nil {
		t.Fatal(err)
	}
	return market.AcceptOutcome(s, markettest.Private(who)).Encode()
}

func TestADisputeOfAGuarantorNeedsAGuarantee(t *testing.T) {
	raw := market.SealDispute(network, markettest.Guarantor(), markettest.Dispute(market.RoleGuarantor)).Encode()
	if _, _, err := market.OpenDispute(network, raw, markettest.PaidTerms(), market.Key{}); market.CodeOf(err) != market.CodeBadSignature {
		t.Errorf("without a guarantee it opens: %v", err)
	}
}

func TestAGuaranteeCoversOnlyWhomItNames(t *testing.T) {
	g, other := markettest.Guarantee(), market.Key{1}
	tests := []struct {
		name        string
		rig, renter market.Key
		currency    string
		at          int64
		covers      bool
	}{
		{"what it names", g.Rig, g.Renter, "USD", markettest.Now, true},
		{"a clock that is a minute behind", g.Rig, g.Renter, "USD", g.Issued - 60_000, true},
		{"another rig's owner", other, g.Renter, "USD", markettest.Now, false},
		{"another renter's owner", g.Rig, other, "USD", markettest.Now, false},
		{"another currency", g.Rig, g.Renter, "EUR", markettest.Now, false},
		{"a lease that comes too late", g.Rig, g.Renter, "USD", g.Until, false},
		{"a lease that came before", g.Rig, g.Renter, "USD", g.Issued - 180_000, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := g.Covers(test.rig, test.renter, test.currency, test.at)
			if test.covers != (err == nil) || err != nil && market.CodeOf(err) != market.CodeGuarantee {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAChainOfOutcomesNamesEachInItsOrder(t *testing.T) {
	a, b := market.Hash{1}, market.Hash{2}
	end := market.Chained([]market.Hash{a, b})
	if end.Count != 2 || end != market.Chained([]market.Hash{a}).After(b) || end == market.Chained([]market.Hash{b, a}) || (market.Chained(nil) != market.ChainEnd{}) {
		t.Error("the end of a chain does not say what is in it")
	}
}

func TestBothSidesFindTheSameResult(t *testing.T) {
	for _, c := range []struct {
		reason   market.Reason
		billed   int64
		disputed bool
		want     market.Result
	}{
		{market.ReasonCompleted, 1, false, market.ResultCompleted},
		{market.ReasonExpired, 1, false, market.ResultCompleted},
		{market.ReasonIdle, 1, false, market.ResultCompleted},
		{market.ReasonOOM, 1, false, market.ResultCompleted},
		{market.ReasonRenter, 1, false, market.ResultRenter},
		{market.ReasonUnattended, 1, false, market.ResultRenter},
		{market.ReasonTakeback, 1, false, market.ResultRig},
		{market.ReasonLost, 1, false, market.ResultFault},
		{market.ReasonUnpaid, 1, false, market.ResultUnpaid},
		{market.ReasonUnpaid, 0, false, market.ResultVoid},
		{market.ReasonPrepare, 0, false, market.ResultVoid},
		{market.ReasonCompleted, 1, true, market.ResultDisputed},
	} {
		if got := market.ResultOf(c.reason, c.billed, c.disputed); got != c.want {
			t.Errorf("%s, %d ms billed, disputed %t: %s", c.reason, c.billed, c.disputed, got)
		}
	}
}

func TestAResultIsTakenBackOnlyByADispute(t *testing.T) {
	said := func(r market.Result) market.Outcome { o := markettest.PaidOutcome(); o.Result = r; return o }
	if !said(market.ResultRig).Follows(said("")) || !said(market.ResultDisputed).Follows(said(market.ResultRig)) {
		t.Error("a result cannot be told later, or not be disputed")
	}
	if said(market.ResultCompleted).Follows(said(market.ResultRig)) || said("").Follows(said(market.ResultRig)) {
		t.Error("a result can be changed, or taken back")
	}
}
