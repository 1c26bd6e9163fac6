package host_test

import (
	"testing"
	"time"

	"haggle/market"
)

// deputyOf is a program that acts for a renter: it knows the lease, and has a key of its own.
func deputyOf(a *renter, name string) *renter {
	d := newRenter(a.rig, name)
	d.bid, d.sent, d.grant, d.terms, d.id, d.head = a.bid, a.sent, a.grant, a.terms, a.id, a.head
	return d
}

// withDeputies makes an order name deputies.
func withDeputies(names ...string) func(*market.Bid, *market.BidMessage) {
	return func(b *market.Bid, _ *market.BidMessage) {
		for _, n := range names {
			b.Deputies = append(b.Deputies, market.KeyOf(private(n)))
		}
	}
}

func TestADeputySignsAndPaysWhileTheRenterIsAway(t *testing.T) {
	b := newBank()
	inMarket(t, b, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.setBank(b)
		a.rentAhead(withDeputies("dep"), "probe", "polite")
		a.wantState(market.JobRunning, "")
		pass(30 * time.Second)
		d := deputyOf(a, "dep")
		d.setBank(b)
		d.connect()
		if _, n := d.received(); n == 0 {
			t.Error("the deputy did not hear what was paid")
		}
		pass(40 * time.Second)
		if r.lease().Away || len(d.asked()) != 0 || d.head.Seq != a.head.Seq {
			t.Errorf("while both are here the deputy was asked %d times; heads %d and %d", len(d.asked()), d.head.Seq, a.head.Seq)
		}
		a.hangUp()
		pass(40 * time.Minute)
		if l := r.lease(); l.Job != market.JobRunning || l.Away || l.Head.Seq < 30 {
			t.Errorf("job is %s (%s), away %t, receipts %d", l.Job, l.Reason, l.Away, l.Head.Seq)
		}
		if len(d.asked()) == 0 || r.status(a).SignedBy != "deputy" {
			t.Errorf("the deputy was asked %d times, receipts are signed by %q", len(d.asked()), r.status(a).SignedBy)
		}
		a.connect() // and hears of all that the deputy signed and paid
		mine, _ := a.received()
		its, _ := d.received()
		if a.head.Seq != d.head.Seq || mine != its {
			t.Errorf("heads %d and %d, paid %s and %s", a.head.Seq, d.head.Seq, mine, its)
		}
		d.say(market.StopMessage{Kill: true})
		pass(time.Second)
		if market.CodeOf(d.refused) != market.CodeNotYours {
			t.Errorf("a deputy's order: %v", d.refused)
		}
		a.wantState(market.JobRunning, "")
		d.heard.Wait()
		a.say(market.StopMessage{Kill: true})
		pass(2 * time.Second)
		a.wantState(market.JobEnded, market.ReasonRenter)
		raw, err := r.Evidence(t.Context(), a.id.String())
		if err != nil {
			t.Fatal(err)
		}
		if j := market.Judge(raw); j.Verdict != market.VerdictAgreed {
			t.Errorf("verdict %s: %+v", j.Verdict, j.Checks)
		}
	})
}

func TestNobodyButTheTermsDeputiesSpeaksForARenter(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.order([]string{"probe", "polite"}, withDeputies("dep"))
		if err := a.send(); err != nil {
			t.Fatal(err)
		}
		d := deputyOf(a, "dep")
		d.connect() // before the renter has signed
		d.heard.Wait()
		wantCode(t, d.refused, market.CodeNotYours)
		a.accept()
		pass(time.Second)
		s := deputyOf(a, "stranger")
		s.connect()
		s.heard.Wait()
		wantCode(t, s.refused, market.CodeNotYours)
		d.connect()
		a.hangUp()
		if !r.status(a).Connected {
			t.Error("the renter's side is away while its deputy is here")
		}
		d.hangUp()
		if r.status(a).Connected {
			t.Error("nobody is here")
		}
	})
}
