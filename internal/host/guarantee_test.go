package host_test

import (
	"sync/atomic"
	"testing"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// promise is a guarantee of gus for a renter at the rig.
func promise(r *rig, a *renter, amount market.Micro, nonce byte) market.Sealed {
	now := time.Now().UnixMilli()
	return market.SealGuarantee(r.config.Network, private("gus"), market.Guarantee{
		Guarantor: market.KeyOf(private("gus")), Rig: market.KeyOf(r.key), Renter: a.self(), Currency: "USD", Amount: amount, Issued: now,
		Until: now + time.Hour.Milliseconds(), Nonce: market.Nonce{nonce},
	})
}

// guaranteed makes an order one on a guarantee.
func guaranteed(g market.Sealed, nonce byte, budget market.Micro) func(*market.Bid, *market.BidMessage) {
	return func(b *market.Bid, m *market.BidMessage) {
		b.Guarantee, m.Guarantee, b.Nonce = g.Hash(), g.Encode(), market.Nonce{nonce}
		b.Budget, b.Limits.Credit = budget, int64(budget)
	}
}

func TestAGuaranteeIsReservedForEachLeaseAndNothingIsPromisedTwice(t *testing.T) {
	inBubbleOf(t, func(r *rig) { realRig(r, 2) }, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		g := promise(r, a, 50_000, 1)
		args := []string{"probe", "polite"}
		a.order(args, guaranteed(g, 1, 30_000))
		wantCode(t, a.send(), market.CodeNotTrusted)
		if err := r.Trust(t.Context(), a.self(), named("ann")); err != nil {
			t.Fatal(err)
		}
		wantCode(t, a.send(), market.CodeGuarantee) // of somebody whose word is not taken
		yes := true
		if err := r.Trust(t.Context(), market.KeyOf(private("gus")), view.Trust{Guarantor: &yes}); err != nil {
			t.Fatal(err)
		}
		if err := a.send(); err != nil {
			t.Fatal(err)
		}
		a.accept()
		pass(2 * time.Second)
		a.wantState(market.JobRunning, "")
		c := newRenter(r, "ann")
		c.order(args, guaranteed(g, 2, 30_000))
		wantCode(t, c.send(), market.CodeGuaranteeSpent)
		r.stop()
		a.hangUp()
		r.start() // what is reserved stays reserved
		c.order(args, guaranteed(g, 2, 30_000))
		wantCode(t, c.send(), market.CodeGuaranteeSpent)
		a.connect()
		a.say(market.StopMessage{Kill: true})
		pass(time.Second)
		a.wantState(market.JobEnded, market.ReasonRenter)
		pass(30 * time.Hour) // until it is over
		if _, err := r.Confirm(t.Context(), a.id.String(), view.Confirm{}); err != nil {
			t.Fatal(err)
		}
		v, err := r.Ledger(t.Context())
		if err != nil || v.Entries[0].Guaranteed.Micro != 0 || v.Entries[0].Owed.Micro != 0 {
			t.Errorf("ledger %+v: %v", v, err)
		}
	})
}

func TestTheGuarantorsWordDecidesWhatIsOwed(t *testing.T) {
	inBubbleOf(t, func(r *rig) { realRig(r, 2) }, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		yes := true
		if err := r.Trust(t.Context(), market.KeyOf(private("gus")), view.Trust{Guarantor: &yes}); err != nil {
			t.Fatal(err)
		}
		if err := r.Trust(t.Context(), a.self(), named("ann")); err != nil {
			t.Fatal(err)
		}
		a.order([]string{"probe", "polite"}, guaranteed(promise(r, a, 50_000, 1), 1, 30_000))
		if err := a.send(); err != nil {
			t.Fatal(err)
		}
		a.setMute(true)
		a.accept()
		pass(11 * time.Second)
		receipt, s, err := market.OpenReceipt(r.config.Network, a.drafts[0], a.terms)
		if err != nil {
			t.Fatal(err)
		}
		a.say(market.RejectMessage{Reject: market.SealReject(r.config.Network, a.key, market.Reject{
			Lease: a.id, Seq: receipt.Seq, Receipt: s.Hash(), Code: market.CodeReceiptTime,
		}).Encode()})
		pass(2 * time.Second)
		verdict := market.Dispute{Lease: a.id, By: market.RoleGuarantor, Code: market.CodeReceiptTime, Total: 400, Wall: 1}
		a.say(market.DisputeMessage{Dispute: market.SealDispute(r.config.Network, private("gus"), verdict).Encode()})
		pass(2 * time.Second)
		v, err := r.Ledger(t.Context())
		if err != nil || v.Entries[0].Owed.Micro != 400 {
			t.Errorf("ledger %+v: %v", v, err)
		}
		raw, err := r.Evidence(t.Context(), a.id.String())
		if err != nil {
			t.Fatal(err)
		}
		e, err := market.DecodeEvidence(raw)
		if err != nil || len(e.Rejects) != 1 || len(e.Papers) < 2 {
			t.Errorf("evidence with %d refusals and %d papers: %v", len(e.Rejects), len(e.Papers), err)
		}
		if j := market.Judge(raw); j.Verdict == market.VerdictInvalid || j.Verdict == market.VerdictFraud {
			t.Errorf("verdict %s: %+v", j.Verdict, j.Checks)
		}
	})
}

func TestAnOwnersCreditIsItsOwn(t *testing.T) {
	inBubbleOf(t, func(r *rig) {
		realRig(r, 2)
		r.config.Credit = 30_000
	}, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		credit := int64(20_000)
		if err := r.Trust(t.Context(), a.self(), view.Trust{CreditMicro: &credit}); err != nil {
			t.Fatal(err)
		}
		a.order([]string{"probe", "polite"}, nil)
		wantCode(t, a.send(), market.CodeBadLimits) // it asks for the rig's rule
		a.order([]string{"probe", "polite"}, func(b *market.Bid, _ *market.BidMessage) { b.Limits.Credit = credit })
		if err := a.send(); err != nil {
			t.Fatal(err)
		}
		a.accept()
		pass(3 * time.Minute)
		// What is paid meanwhile frees credit.
		if _, err := r.Confirm(t.Context(), a.id.String(), view.Confirm{AmountMicro: 10_000}); err != nil {
			t.Fatal(err)
		}
		pass(110 * time.Second)
		a.wantState(market.JobRunning, "")
		pass(20 * time.Second)
		a.wantState(market.JobEnded, market.ReasonCredit)
		owners, err := r.TrustedOwners(t.Context())
		if err != nil || owners[0].Credit.Most.Micro != 20_000 || owners[0].Owes.Micro < 19_900 || owners[0].Owes.Micro > 20_000 {
			t.Errorf("owners %+v: %v", owners, err)
		}
	})
}

func TestAStrangerRentsWhereItPaysAheadAndOnlyThere(t *testing.T) {
	b := newBank()
	b.methods[0].Name = "gold"
	inBubbleOf(t, func(r *rig) {
		realRig(r, 2)
		r.config.Till = b
	}, func(t *testing.T, r *rig) {
		if o, _, _ := r.offer(); o.Rules.Bidders != market.BiddersAnyone || len(o.Pays) != 1 {
			t.Errorf("bidders %s, methods %v", o.Rules.Bidders, o.Pays)
		}
		a := newRenter(r, "ann")
		args := []string{"probe", "polite"}
		a.order(args, nil)
		wantCode(t, a.send(), market.CodePayAhead)
		a.order(args, func(bid *market.Bid, _ *market.BidMessage) { bid.Pay = "gold" })
		wantCode(t, a.send(), market.CodeBadLimits) // and some credit beside
		a.setBank(b)
		a.rentAhead(func(bid *market.Bid, _ *market.BidMessage) { bid.Pay = "gold" }, args...)
		a.wantState(market.JobRunning, "")
		if l := r.status(a); l.Risk == nil || l.Risk.Lose.Micro != 0 {
			t.Errorf("the rig can lose %+v", l.Risk)
		}
	})
	inBubbleOf(t, func(r *rig) {
		realRig(r, 2)
		r.config.Till, r.config.Bidders = newBank(b.methods...), market.BiddersTrusted
	}, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.order([]string{"probe", "polite"}, func(bid *market.Bid, m *market.BidMessage) { bid.Pay, bid.Limits.Credit = "gold", 0 })
		wantCode(t, a.send(), market.CodeNotTrusted)
	})
}

func TestNothingNewIsTakenOnWhileTheDiskIsFull(t *testing.T) {
	var full atomic.Bool
	inBubbleOf(t, func(r *rig) { r.config.DiskFull = func() bool { return full.Load() } }, func(t *testing.T, r *rig) {
		a, b := newRenter(r, "ann"), newRenter(r, "bob")
		a.rent("probe", "polite")
		b.order([]string{"probe", "polite"}, nil)
		full.Store(true)
		wantCode(t, b.send(), market.CodeDiskFull)
		pass(2 * time.Minute)
		a.wantState(market.JobRunning, "")
		if s, err := r.Status(t.Context()); err != nil || len(s.Warnings) == 0 {
			t.Errorf("status %+v: %v", s.Warnings, err)
		}
		full.Store(false)
		pass(time.Minute)
		b.order([]string{"probe", "polite"}, nil)
		if err := b.send(); err != nil {
			t.Error(err)
		}
		b.hangUp()
	})
}
