package host_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"haggle/internal/pay"
	"haggle/internal/view"
	"haggle/market"
	"haggle/nvml/sim"
)

func TestMoneyThatNobodySignedIsRefusedAndChangesNothing(t *testing.T) {
	payment := func(a *renter, key string, change func(*market.Payment)) market.Message {
		p := market.Payment{
			Lease: a.id, Seq: 1, Payee: a.terms.RigOwner, Payer: a.terms.RenterOwner, Currency: "USD", Amount: 1, Total: 1, Method: "lab", Wall: 1,
		}
		change(&p)
		return market.PaymentMessage{Payment: market.SealPayment(network, private(key), p).Encode()}
	}
	outcome := func(a *renter, key string) market.Message {
		o := market.Outcome{Lease: a.id, At: time.Now().UnixMilli(), Cards: []market.CardWipe{}, Result: market.ResultFault}
		return market.OutcomeMessage{Outcome: market.AcceptOutcome(market.SealOutcome(network, private(key), o), a.key).Encode()}
	}
	dispute := func(a *renter, key string, by market.Role) market.Message {
		d := market.Dispute{Lease: a.id, By: by, Code: market.CodeReceiptTime, Total: 1, Wall: 1}
		return market.DisputeMessage{Dispute: market.SealDispute(network, private(key), d).Encode()}
	}
	for name, c := range map[string]struct {
		code market.Code // empty: it is passed over
		say  func(a *renter) market.Message
	}{
		"a payment that the renter signed": {market.CodeBadSignature, func(a *renter) market.Message {
			return payment(a, "ann", func(*market.Payment) {})
		}},
		"a payment of another lease": {market.CodeLeaseUnknown, func(a *renter) market.Message {
			return payment(a, "rig", func(p *market.Payment) { p.Lease[0]++ })
		}},
		"a payment whose sum is wrong": {market.CodeBadRecord, func(a *renter) market.Message {
			return payment(a, "rig", func(p *market.Payment) { p.Total = 100 })
		}},
		"a payment of ten billions": {market.CodeBadRecord, func(a *renter) market.Message {
			return payment(a, "rig", func(p *market.Payment) { p.Amount, p.Total = 1<<62, 1<<62 })
		}},
		"payment garbage":               {market.CodeBadEncoding, func(*renter) market.Message { return market.PaymentMessage{Payment: []byte{0xff}} }},
		"an outcome of another rig":     {market.CodeBadSignature, func(a *renter) market.Message { return outcome(a, "eve") }},
		"outcome garbage":               {market.CodeBadEncoding, func(*renter) market.Message { return market.OutcomeMessage{Outcome: []byte{0xff}} }},
		"a verdict without a guarantee": {market.CodeBadSignature, func(a *renter) market.Message { return dispute(a, "gus", market.RoleGuarantor) }},
		"another's dispute":             {market.CodeBadSignature, func(a *renter) market.Message { return dispute(a, "eve", market.RoleRenter) }},
		"dispute garbage":               {market.CodeBadEncoding, func(*renter) market.Message { return market.DisputeMessage{} }},
		"a notice":                      {market.CodeUnexpected, func(*renter) market.Message { return market.NoticeMessage{} }},
		"word of a payment of nothing":  {"", func(*renter) market.Message { return market.PaidMessage{Slice: 1, Amount: 1 << 62} }},
		"word of a wish of nothing":     {"", func(*renter) market.Message { return market.PaidMessage{Slice: 1 << 31, Amount: -1} }},
		"a wish of less than nothing": {"", func(*renter) market.Message {
			return market.AskMessage{Slice: market.Slice{Seq: 1 << 31, Amount: -5}, Method: "lab", Currency: "USD"}
		}},
		"a wish in the place of a slice": {"", func(*renter) market.Message {
			return market.AskMessage{Slice: market.Slice{Seq: 1, Amount: 5}, Method: "lab", Currency: "USD"}
		}},
		"a wish in gold": {"", func(*renter) market.Message {
			return market.AskMessage{Slice: market.Slice{Seq: 1 << 31, Amount: 5}, Method: "lab", Currency: "XAU"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inMarket(t, newBank(), func(t *testing.T, r *rig) {
				a := newRenter(r, "ann")
				a.rent("probe", "polite")
				pass(5 * time.Second)
				a.say(c.say(a))
				if c.code != "" {
					a.heard.Wait()
					wantCode(t, a.refused, c.code)
				}
				synctest.Wait()
				pass(5 * time.Second)
				if l := r.lease(); l.Job != market.JobRunning || l.Paid != 0 || l.PaidSeq != 0 || l.Debt != market.DebtOpen {
					t.Errorf("lease %+v", l)
				}
				if o, _, _ := r.offer(); o.History != nil {
					t.Errorf("the chain is %+v", o.History)
				}
			})
		})
	}
}

func TestARenterCannotMakeTheRigWaitForAnyNumberOfSums(t *testing.T) {
	b := newBank()
	inMarket(t, b, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "polite")
		for i := range uint32(40) {
			a.say(market.AskMessage{Slice: market.Slice{Seq: 1<<31 + i, Amount: 5}, Method: "lab", Currency: "USD"})
		}
		pass(10 * time.Second)
		if len(b.orders) > 4 {
			t.Errorf("%d sums are waited for", len(b.orders))
		}
		a.wantState(market.JobRunning, "")
	})
}

func TestMoneyWithoutANumberIsNotCountedAgainAndAgain(t *testing.T) {
	b := newBank()
	inMarket(t, b, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "polite")
		pass(time.Minute)
		a.say(market.StopMessage{Kill: true})
		pass(25 * time.Hour)
		a.connect()
		for _, slice := range []uint32{0, 7} {
			id := a.id.String() + "-" + strconv.Itoa(int(slice))
			b.set(func(b *bank) { b.orders[id] = pay.Order{ID: id, Amount: 5_000} })
			b.send(id, 5_000)
			for range 3 {
				a.say(market.PaidMessage{Slice: slice, Amount: 5_000})
				pass(2 * time.Second)
			}
		}
		if paid, n := a.received(); n != 0 {
			t.Errorf("%d payments of %s for sums that nobody asked for", n, paid)
		}
		a.hangUp()
	})
}

// TestMoneyOfASliceThatIsNotNeededAnyMoreIsFoundByTheRentersWord lets a wish pay for what a slice asks for, and the rig die before the
// money of the slice comes, too.
func TestMoneyOfASliceThatIsNotNeededAnyMoreIsFoundByTheRentersWord(t *testing.T) {
	b := newBank()
	inMarket(t, b, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.setBank(b)
		a.rentAhead(nil, "probe", "polite")
		pass(10 * time.Second)
		a.setBank(nil)
		for len(a.asked()) < 3 {
			pass(10 * time.Second)
		}
		ask := a.asked()[2]
		send := func(slice uint32) {
			b.send(a.id.String()+"-"+strconv.Itoa(int(slice)), ask.Slice.Amount)
			a.say(market.PaidMessage{Slice: slice, Amount: ask.Slice.Amount})
			pass(10 * time.Second)
		}
		a.say(market.AskMessage{Slice: market.Slice{Seq: 1<<31 | 9, Amount: ask.Slice.Amount}, Method: "lab", Currency: "USD"})
		pass(5 * time.Second)
		send(1<<31 | 9)
		before, _ := a.received()
		if r.lease().Slice != nil {
			t.Fatal("the slice is still asked for")
		}
		a.hangUp()
		r.stop()
		r.start()
		a.comeBack(r)
		send(ask.Slice.Seq)
		if paid, _ := a.received(); paid != before+ask.Slice.Amount {
			t.Errorf("%s are signed for, %s before", paid, before)
		}
	})
}

func TestAnOwnerWhoNamesNoAmountConfirmsNoAmountOfTheRenters(t *testing.T) {
	inMarket(t, newBank(pay.Method{Name: "hand", Settles: "hand"}), func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "polite")
		pass(10 * time.Minute)
		a.say(market.AskMessage{Slice: market.Slice{Seq: 1<<31 | 1, Amount: 50_000_000}, Method: "hand", Currency: "USD"})
		pass(2 * time.Second)
		owed := r.lease().Total()
		if _, err := r.Confirm(t.Context(), a.id.String(), view.Confirm{}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if paid, _ := a.received(); paid < owed || paid > 2*owed {
			t.Errorf("%s are signed for, of %s owed", paid, owed)
		}
		if _, err := r.Confirm(t.Context(), a.id.String(), view.Confirm{AmountMicro: 50_000_000}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if n := len(a.payments); n != 2 || a.payments[1].Slice != 1<<31|1 {
			t.Errorf("payments %+v", a.payments)
		}
	})
}

func TestCreditBesideWhatIsPaidAheadIsOneCreditForAllLeases(t *testing.T) {
	inBubbleOf(t, func(r *rig) {
		realRig(r, 2)
		r.config.Till = newBank(pay.Method{Name: "cash", Settles: "instant"})
	}, func(t *testing.T, r *rig) {
		credit := int64(20_000)
		if err := r.Trust(t.Context(), newRenter(r, "ann").self(), view.Trust{CreditMicro: &credit}); err != nil {
			t.Fatal(err)
		}
		var both [2]*renter
		for i := range both {
			both[i] = newRenter(r, "ann")
			both[i].order([]string{"probe", "polite"}, func(b *market.Bid, _ *market.BidMessage) {
				b.Pay, b.Limits.Credit, b.Nonce = "cash", credit, market.Nonce{byte(i)}
			})
			if err := both[i].send(); err != nil {
				t.Fatal(err)
			}
			both[i].accept()
			pass(5 * time.Second)
		}
		pass(10 * time.Minute)
		if owners, err := r.TrustedOwners(t.Context()); err != nil || owners[0].Owes.Micro > 20_500 {
			t.Errorf("owners %+v: %v", owners, err)
		}
	})
}

func TestAStrangerHoldsFewSlotsThatItDoesNotPay(t *testing.T) {
	inBubbleOf(t, func(r *rig) {
		_ = r.cards.Close()
		cards, err := sim.New(sim.Config{Cards: []sim.CardConfig{{Profile: "RTX_4090", Count: 6}}, Serial: "test"})
		if err != nil {
			t.Fatal(err)
		}
		r.cards, r.config.Cards, r.config.Till = cards, cards, newBank()
	}, func(t *testing.T, r *rig) {
		for i := range 6 {
			a := newRenter(r, "eve")
			a.order([]string{"probe", "polite"}, func(b *market.Bid, m *market.BidMessage) {
				ahead(b, m)
				b.Nonce = market.Nonce{byte(i)}
			})
			err := a.send()
			if i >= 4 {
				wantCode(t, err, market.CodeTooMany)
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			a.accept()
			pass(time.Second)
		}
	})
}
