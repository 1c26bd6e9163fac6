package host_test

import (
	"testing"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// onPromise runs a job that gus stands for, and refuses its first receipt.
func onPromise(r *rig) *renter {
	a := newRenter(r, "ann")
	yes := true
	for key, trust := range map[market.Key]view.Trust{market.KeyOf(private("gus")): {Guarantor: &yes}, a.self(): named("ann")} {
		if err := r.Trust(r.t.Context(), key, trust); err != nil {
			r.t.Fatal(err)
		}
	}
	a.order([]string{"probe", "polite"}, guaranteed(promise(r, a, 50_000, 1), 1, 30_000))
	if err := a.send(); err != nil {
		r.t.Fatal(err)
	}
	a.setMute(true)
	a.accept()
	pass(11 * time.Second)
	receipt, s, err := market.OpenReceipt(r.config.Network, a.drafts[0], a.terms)
	if err != nil {
		r.t.Fatal(err)
	}
	a.say(market.RejectMessage{Reject: market.SealReject(r.config.Network, a.key, market.Reject{
		Lease: a.id, Seq: receipt.Seq, Receipt: s.Hash(), Code: market.CodeReceiptTime,
	}).Encode()})
	pass(2 * time.Second)
	return a
}

// word is a sealed dispute about a renter's lease.
func word(a *renter, key string, by market.Role, total market.Micro, wall int64) []byte {
	d := market.Dispute{Lease: a.id, By: by, Code: "bill", Total: total, Wall: wall}
	return market.SealDispute(a.rig.config.Network, private(key), d).Encode()
}

func wantDecided(t *testing.T, v view.Disputes, n int, total int64) {
	t.Helper()
	switch {
	case len(v.List) != n, (v.Decided == nil) != (total < 0):
		t.Errorf("disputes %+v", v)
	case v.Decided != nil && v.Decided.Micro != total:
		t.Errorf("decided %+v, want %d", v.Decided, total)
	}
}

func TestTheOwnersComplaintIsSignedFiledAndSaid(t *testing.T) {
	inBubbleOf(t, func(r *rig) { realRig(r, 2) }, func(t *testing.T, r *rig) {
		a := onPromise(r)
		id := a.id.String()
		total := int64(900)
		v, err := r.Dispute(t.Context(), id, view.DisputeRequest{TotalMicro: &total, Words: "its log goes on"})
		if err != nil || !v.Told || v.List[0].By != "rig" || v.List[0].Total.Micro != 900 || v.List[0].Words != "its log goes on" {
			t.Fatalf("disputes %+v: %v", v, err)
		}
		pass(time.Second)
		if len(a.said) != 1 {
			t.Fatalf("the renter heard of %d complaints", len(a.said))
		}
		if d, _, err := market.OpenDispute(r.config.Network, a.said[0], a.terms, market.Key{}); err != nil || d.Total != 900 {
			t.Errorf("it heard %+v: %v", d, err)
		}
		a.hangUp()
		if v, err = r.Dispute(t.Context(), id, view.DisputeRequest{Words: "again"}); err != nil || v.Told {
			t.Errorf("disputes %+v: %v", v, err)
		}
		wantDecided(t, v, 2, -1)
		a.connect()
		if len(a.said) != 3 {
			t.Errorf("the renter that is back heard of %d complaints", len(a.said))
		}
		over := a.terms.Budget + 1
		total = int64(over)
		_, err = r.Dispute(t.Context(), id, view.DisputeRequest{TotalMicro: &total})
		wantCode(t, err, market.CodeBadRequest)
		_, err = r.Decision(t.Context(), id, word(a, "ann", market.RoleRenter, 1, 1))
		wantCode(t, err, market.CodeBadRequest)
		_, err = r.Decision(t.Context(), id, word(a, "eve", market.RoleGuarantor, 1, 1))
		wantCode(t, err, market.CodeBadSignature)
	})
}

func TestADecisionThatTheOwnerHandsInCountsWhileTheLeaseIsOpenAndAfterwards(t *testing.T) {
	inBubbleOf(t, func(r *rig) { realRig(r, 2) }, func(t *testing.T, r *rig) {
		a := onPromise(r)
		id := a.id.String()
		owes := func(want int64) {
			t.Helper()
			if l, err := r.Ledger(t.Context()); err != nil || l.Entries[0].Owed.Micro != want {
				t.Errorf("ledger %+v: %v", l, err)
			}
		}
		v, err := r.Decision(t.Context(), id, word(a, "gus", market.RoleGuarantor, 700, 5))
		if err != nil {
			t.Fatal(err)
		}
		wantDecided(t, v, 1, 700)
		owes(700)
		pass(time.Second)
		if len(a.said) != 1 {
			t.Errorf("the renter heard of %d decisions", len(a.said))
		}
		a.hangUp()
		pass(30 * time.Hour) // until it is over
		if v, err = r.Decision(t.Context(), id, word(a, "gus", market.RoleGuarantor, 600, 6)); err != nil {
			t.Fatal(err)
		}
		wantDecided(t, v, 2, 600)
		owes(600)
		r.stop()
		r.start()
		owes(600)
		if v, err = r.Decision(t.Context(), id, word(a, "gus", market.RoleGuarantor, 800, 1)); err != nil {
			t.Fatal(err) // an older one: it is filed, and changes nothing
		}
		wantDecided(t, v, 3, 600)
		a.connect()
		a.say(market.DisputeMessage{Dispute: word(a, "gus", market.RoleGuarantor, 500, 7)})
		pass(time.Second)
		owes(500)
		if n := len(a.said); n != 5 { // one while it was open, three when it came back, and its own as the rig's word that it has come
			t.Errorf("the renter heard of %d decisions", n)
		}
		a.hangUp()
		if _, err := r.Confirm(t.Context(), id, view.Confirm{}); err != nil {
			t.Fatal(err)
		}
		owes(0)
		raw, err := r.Evidence(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if j := market.Judge(raw); j.Decided == nil || j.Decided.Total != 500 || j.Due != 0 || j.Verdict != market.VerdictOpen {
			t.Errorf("verdict %s, due %s: %+v", j.Verdict, j.Due, j.Checks)
		}
	})
}

func TestOneSidesComplaintsCannotSilenceTheGuarantor(t *testing.T) {
	inBubbleOf(t, func(r *rig) { realRig(r, 2) }, func(t *testing.T, r *rig) {
		a := onPromise(r)
		for i := range int64(20) {
			a.say(market.DisputeMessage{Dispute: word(a, "ann", market.RoleRenter, 1, i+1)})
			pass(time.Second)
		}
		if a.refused != nil || len(a.said) != 20 {
			t.Errorf("%d of 20 came back: %v", len(a.said), a.refused)
		}
		a.say(market.DisputeMessage{Dispute: word(a, "gus", market.RoleGuarantor, 300, 1)})
		pass(time.Second)
		v, err := r.Disputes(t.Context(), a.id.String())
		if err != nil {
			t.Fatal(err)
		}
		wantDecided(t, v, 17, 300)
	})
}
