package host_test

import (
	"testing"
	"time"

	"haggle/market"
)

// accepts signs the rig's newest word on an outcome.
func (a *renter) accepts() {
	a.t.Helper()
	a.mu.Lock()
	raw := a.stated[len(a.stated)-1]
	a.mu.Unlock()
	s, err := market.DecodeSealed(raw)
	if err != nil {
		a.t.Fatal(err)
	}
	a.say(market.OutcomeMessage{Outcome: market.AcceptOutcome(s, a.key).Encode()})
}

func TestAcceptedOutcomesMakeAChainWhoseEndIsInTheOffer(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var hashes []market.Hash
		for i, name := range []string{"ann", "bob", "cid"} {
			a := newRenter(r, name)
			a.rent("probe", "wait", "30")
			pass(40 * time.Second)
			o := a.outcome()
			if o.Result != market.ResultCompleted || i == 0 && o.Chain != nil || i > 0 && (o.Chain == nil || o.Chain.Count != int64(i)) {
				t.Errorf("outcome %d: %+v", i, o)
			}
			a.accepts()
			a.accepts()
			pass(time.Second)
			s, err := market.DecodeSealed(a.stated[len(a.stated)-1])
			if err != nil {
				t.Fatal(err)
			}
			hashes = append(hashes, s.Hash())
			if name == "bob" {
				pass(25 * time.Hour) // its disk is destroyed: another word, of the same lease
				a.connect()
				a.accepts()
				pass(time.Second)
			}
			a.hangUp()
		}
		want := market.Chained(hashes)
		if o, _, _ := r.offer(); o.History == nil || *o.History != want {
			t.Errorf("the offer says %+v, want %+v", o.History, want)
		}
		r.stop()
		r.start()
		if o, _, _ := r.offer(); o.History == nil || *o.History != want {
			t.Errorf("after a restart the offer says %+v, want %+v", o.History, want)
		}
	})
}

func TestARigThatWasPutBackSignsNothingBeforeItKnowsWhatItForgot(t *testing.T) {
	b := newBank()
	inMarket(t, b, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.setBank(b)
		a.rentAhead(nil, "probe", "polite")
		pass(90 * time.Second)
		a.hangUp()
		pass(time.Second)
		r.stop()
		copied := r.store.copy()
		r.start()
		a.connect()
		pass(20 * time.Minute)
		a.hangUp()
		head, paid := a.head.Seq, a.paid
		r.stop()
		r.store.putBack(copied)
		r.start()
		pass(10 * time.Minute)
		if l := r.lease(); l.PaidSeq != uint32(2) && l.PaidSeq >= uint32(len(a.payments)) || l.Draft != nil && l.Draft.Seq > copied.heads[a.id]+1 {
			t.Fatalf("it signed while it knew nothing: %d payments, draft %+v", l.PaidSeq, l.Draft)
		}
		a.connectWith(head, uint32(len(a.payments)))
		for _, p := range a.papers {
			a.say(market.PaymentMessage{Payment: p.Sealed})
		}
		for _, receipt := range a.agreed {
			a.say(market.ReceiptMessage{Receipt: receipt})
		}
		pass(5 * time.Minute)
		l := r.lease()
		if l.Head.Seq < head || l.Paid < paid || l.Job == market.JobEnded {
			t.Errorf("job is %s (%s), head %d of %d, %s of %s paid", l.Job, l.Reason, l.Head.Seq, head, l.Paid, paid)
		}
		if j := a.judgeAll(); j.Verdict == market.VerdictFraud || j.Verdict == market.VerdictInvalid {
			t.Errorf("verdict %s: %+v", j.Verdict, j.Checks)
		}
	})
}

// connectWith is connect with what the renter has said in the hello.
func (a *renter) connectWith(head, paid uint32) {
	a.t.Helper()
	a.stream = a.rig.open(a.self(), a.rig.ServeLease)
	a.say(market.Hello{WallMs: time.Now().UnixMilli(), Lease: a.id, Seq: head, Hash: a.head.Hash, Paid: paid})
	a.listen()
	pass(0)
}

// judgeAll judges what both signed together with the rig's papers.
func (a *renter) judgeAll() market.Judgement {
	return market.Judge(market.Evidence{
		Network: a.rig.config.Network, Offer: a.sent.Offer, Bid: a.sent.Bid, Lease: a.signed(), Receipts: a.agreed, Papers: a.papers,
	}.Encode())
}
