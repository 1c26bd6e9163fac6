package renter_test

import (
	"testing"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// onPromise runs a test with a lease that a friend's agent stands for.
func onPromise(t *testing.T, test func(t *testing.T, h, friend *house, l view.Lease)) {
	t.Helper()
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		friend := h.second()
		defer friend.down()
		ask := view.GuaranteeRequest{Rig: keyText(1), Renter: keyText(200), AmountMicro: 300_000, Currency: "USD", Until: time.Now().Add(time.Hour).UnixMilli()}
		sealed, err := friend.agent.Guarantee(t.Context(), ask)
		if err != nil {
			t.Fatal(err)
		}
		l := h.mustBid(func(r *view.BidRequest) { r.Guarantee = sealed })
		h.until(l.ID, "running", running)
		pass(2 * time.Minute)
		test(t, h, friend, l)
	})
}

func (h *house) evidence(id string) []byte {
	h.t.Helper()
	file, err := h.agent.Evidence(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return file
}

// said is how often the renter has said anything of its lease's bill to the rig.
func (h *house) said() int { return len(h.rigLease(0).disputes) }

func complaint(total int64, words string) view.DisputeRequest {
	return view.DisputeRequest{TotalMicro: &total, Words: words}
}

func TestAComplaintIsSignedFiledAndSaidToTheRig(t *testing.T) {
	onPromise(t, func(t *testing.T, h, _ *house, l view.Lease) {
		v, err := h.agent.Dispute(t.Context(), l.ID, complaint(1000, "it stood still"))
		if err != nil || !v.Told || len(v.List) != 1 || v.List[0].By != "renter" || v.List[0].Total.Micro != 1000 || v.List[0].Receipt == 0 {
			t.Fatalf("disputes %+v: %v", v, err)
		}
		if h.said() != 1 {
			t.Errorf("the rig heard of %d complaints", h.said())
		}
		h.rig(0).cut()
		pass(time.Minute)
		if h.said() != 2 {
			t.Errorf("the rig that is back heard of %d complaints", h.said()-1)
		}
		j := market.Judge(h.evidence(l.ID))
		if len(j.Disputes) != 1 || j.Disputes[0].Words != "it stood still" || j.Verdict != market.VerdictOpen {
			t.Errorf("verdict %s of %+v", j.Verdict, j.Disputes)
		}
		for _, bad := range []view.DisputeRequest{complaint(1<<40, ""), complaint(-1, ""), complaint(1, "a\x1b[2J"), {Code: "Bad Word"}} {
			_, err := h.agent.Dispute(t.Context(), l.ID, bad)
			wantCode(t, err, market.CodeBadRequest)
		}
		_, err = h.agent.Dispute(t.Context(), "ffffffff", complaint(1, ""))
		wantCode(t, err, market.CodeLeaseUnknown)
	})
}

func TestAComplaintAboutALeaseThatIsOverReachesARigThatComesBack(t *testing.T) {
	onPromise(t, func(t *testing.T, h, _ *house, l view.Lease) {
		if _, err := h.agent.Stop(t.Context(), l.ID, true); err != nil {
			t.Fatal(err)
		}
		h.until(l.ID, "settled", settled)
		pass(time.Hour)
		h.rig(0).setDown(true)
		v, err := h.agent.Dispute(t.Context(), l.ID, complaint(1000, "I looked at the log"))
		if err != nil || v.Told || h.said() != 0 {
			t.Fatalf("disputes %+v: %v", v, err)
		}
		h.down()
		h.up() // it is not forgotten
		h.rig(0).setDown(false)
		pass(time.Minute)
		if v, err = h.agent.Disputes(t.Context(), l.ID); err != nil || !v.Told || h.said() != 1 {
			t.Errorf("disputes %+v, of which the rig has %d: %v", v, h.said(), err)
		}
		if n := h.agent.OpenLeases(); n != 0 {
			t.Errorf("the agent stays for %d leases", n)
		}
		// A rig that never says that it has come is told again and again, until it is given up.
		h.rig(0).set(func() { h.rig(0).quiet = true })
		if v, err = h.agent.Dispute(t.Context(), l.ID, complaint(900, "")); err != nil || v.Told || len(v.List) != 2 {
			t.Errorf("disputes %+v: %v", v, err)
		}
	})
}

func TestAComplaintRightAfterTheEndReachesTheRig(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		h.down()
		h.probe = 15 * time.Second // something else is still busy with the lease when it is over
		h.up()
		l := h.mustBid(nil)
		h.until(l.ID, "running", running)
		pass(time.Minute)
		if _, err := h.agent.Stop(t.Context(), l.ID, true); err != nil {
			t.Fatal(err)
		}
		h.until(l.ID, "settled", settled)
		pass(time.Second)
		if v, err := h.agent.Dispute(t.Context(), l.ID, complaint(1000, "")); err != nil || !v.Told || h.said() != 1 {
			t.Errorf("disputes %+v: %v", v, err)
		}
		pass(time.Minute)
		if n := h.agent.OpenLeases(); n != 0 {
			t.Errorf("the agent stays for %d leases", n)
		}
	})
}

func TestTheGuarantorDecidesByTheEvidenceAndBothBooksFollow(t *testing.T) {
	onPromise(t, func(t *testing.T, h, friend *house, l view.Lease) {
		evidence := h.evidence(l.ID)
		_, err := h.agent.Decide(t.Context(), view.DecideRequest{Evidence: evidence})
		wantCode(t, err, market.CodeGuarantee) // it is the friend's
		_, err = friend.agent.Decide(t.Context(), view.DecideRequest{Evidence: evidence, DisputeRequest: complaint(1<<40, "")})
		wantCode(t, err, market.CodeBadRequest)
		_, err = friend.agent.Decide(t.Context(), view.DecideRequest{Evidence: evidence[:100]})
		wantCode(t, err, market.CodeBadRequest)
		e, err := market.DecodeEvidence(evidence)
		if err != nil {
			t.Fatal(err)
		}
		request := view.DecideRequest{Evidence: e.Redact().Encode(), DisputeRequest: complaint(1500, "half of it")}
		decision, err := friend.agent.Decide(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		v, err := h.agent.Decision(t.Context(), l.ID, decision)
		if err != nil || !v.Told || v.Decided == nil || v.Decided.Micro != 1500 || h.said() != 1 {
			t.Fatalf("disputes %+v: %v", v, err)
		}
		if _, err := h.agent.Stop(t.Context(), l.ID, true); err != nil {
			t.Fatal(err)
		}
		h.until(l.ID, "settled", settled)
		wantOwed := func(want int64) {
			t.Helper()
			if ledger, err := h.agent.Ledger(t.Context()); err != nil || ledger.Entries[0].Owed.Micro != want {
				t.Errorf("ledger %+v: %v", ledger, err)
			}
		}
		wantOwed(1500)
		if j := market.Judge(h.evidence(l.ID)); j.Due != 1500 || j.Decided == nil {
			t.Errorf("the judge says that %s are due", j.Due)
		}
		// A newer one comes from the rig.
		pass(time.Second)
		request.DisputeRequest = complaint(1200, "")
		if decision, err = friend.agent.Decide(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		if _, err = h.agent.Decision(t.Context(), l.ID, decision); err != nil {
			t.Fatal(err)
		}
		wantOwed(1200)
		_, err = h.agent.Decision(t.Context(), l.ID, decision[:20])
		wantCode(t, err, market.CodeBadEncoding)
	})
}

func TestWhatTheRigSaysOfTheBillIsKeptAndBounded(t *testing.T) {
	onPromise(t, func(t *testing.T, h, friend *house, l view.Lease) {
		decision, err := friend.agent.Decide(t.Context(), view.DecideRequest{Evidence: h.evidence(l.ID)})
		if err != nil {
			t.Fatal(err)
		}
		rig := h.rig(0)
		rig.set(func() {
			rl := h.rigLease2()
			for i := range int64(20) {
				d := market.Dispute{Lease: rl.state.ID, By: market.RoleRig, Code: "bill", Total: 5, Wall: i + 1}
				rl.send(market.DisputeMessage{Dispute: market.SealDispute(testNetwork, rig.key, d).Encode()})
			}
			rl.send(market.DisputeMessage{Dispute: decision})
		})
		pass(time.Second)
		v, err := h.agent.Disputes(t.Context(), l.ID)
		if err != nil || len(v.List) != 17 || v.Decided == nil || !v.Told {
			t.Errorf("%d disputes, %+v: %v", len(v.List), v.Decided, err)
		}
	})
}

func TestARigThatWasPutBackGetsTheExtensionsBeforeTheReceipts(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		l := h.mustBid(nil)
		h.until(l.ID, "running", running)
		for range 2 {
			if _, err := h.agent.Extend(t.Context(), l.ID, view.ExtendRequest{DurationMs: 60_000}); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
		}
		pass(90 * time.Second)
		rig := h.rig(0)
		rig.cut()
		pass(time.Minute)
		if got := h.rigLease(0).extended; len(got) != 0 {
			t.Errorf("a rig that lost nothing got the extensions %v", got)
		}
		rig.set(func() { rig.instance = market.Nonce{7} })
		rig.cut()
		pass(time.Minute)
		if got := h.rigLease(0).extended; len(got) != 2 || got[0] != 1 || got[1] != 2 {
			t.Errorf("a rig with another store got the extensions %v", got)
		}
		rig.set(func() {
			rl := h.rigLease2()
			rl.state.Extension, rl.state.Head, rl.state.Draft = nil, market.Head{}, nil // it is put back to the start
			rl.receipts = nil
		})
		rig.cut()
		pass(10 * time.Second)
		if rl := h.rigLease(0); len(rl.extended) < 4 || rl.state.Extension == nil || rl.state.Extension.Seq != 2 {
			t.Errorf("a rig that was put back got the extensions %v", rl.extended)
		}
	})
}
