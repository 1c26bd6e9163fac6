package host_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"haggle/market"
)

// extension signs the next extension of the lease, or another as change makes it.
func (a *renter) extension(add time.Duration, money market.Micro, change func(*market.Extension)) []byte {
	e := a.terms.Extend(a.id, a.last, add.Milliseconds(), money, time.Now().UnixMilli())
	if change != nil {
		change(&e)
	}
	return market.SealExtension(a.rig.config.Network, a.key, e).Encode()
}

func TestALeaseIsExtendedWithBothSignaturesOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "count", "60000")
		raw := a.extension(time.Hour, 1_000_000, nil)
		until := a.terms.Deadline
		for range 2 { // the answer may have been lost
			a.say(market.ExtendMessage{Extension: raw})
			pass(time.Second)
		}
		r.stop()
		r.start()
		pass(time.Second)
		a.connect()
		a.say(market.ExtendMessage{Extension: raw})
		pass(time.Second)
		if len(a.extended) < 3 || len(once(a.extended)) != 1 {
			t.Fatalf("answers %x", a.extended)
		}
		_, sealed, err := market.OpenExtension(network, a.extended[0], a.terms)
		if err != nil || !sealed.SignedBy(market.RoleRig) {
			t.Errorf("the rig has not signed: %v", err)
		}
		if o, _, _ := r.offer(); o.Slots[0].LeasedUntil != until+time.Hour.Milliseconds() {
			t.Errorf("leased until %d, want %d", o.Slots[0].LeasedUntil, until+time.Hour.Milliseconds())
		}
		pass(90 * time.Minute)
		a.wantState(market.JobRunning, "")
		a.say(market.ExtendMessage{Extension: a.extension(0, 100, nil)})
		pass(time.Hour)
		a.wantState(market.JobEnded, market.ReasonExpired)
		if l := r.lease(); l.Meter.BilledMs != 2*time.Hour.Milliseconds() || l.Extension.Seq != 2 {
			t.Errorf("billed %d, extension %+v", l.Meter.BilledMs, l.Extension)
		}
		if j := a.judge(); j.Verdict != market.VerdictAgreed {
			t.Errorf("verdict %s: %+v", j.Verdict, j.Checks)
		}
	})
}

func TestAnExtensionThatTheRigDoesNotWantChangesNothing(t *testing.T) {
	fork := func(a *renter) []byte {
		a.say(market.ExtendMessage{Extension: a.extension(time.Minute, 0, nil)})
		pass(time.Second)
		last := a.last
		a.last = nil
		raw := a.extension(time.Hour, 0, nil)
		a.last = last
		return raw
	}
	for name, c := range map[string]struct {
		raw  func(a *renter) []byte
		code market.Code
	}{
		"another of the same number": {fork, market.CodeBadRecord},
		"a number from ahead": {func(a *renter) []byte {
			return a.extension(time.Hour, 0, func(e *market.Extension) { e.Seq = 7 })
		}, market.CodeBadRecord},
		"number 0": {func(a *renter) []byte {
			return a.extension(time.Hour, 0, func(e *market.Extension) { e.Seq = 0 })
		}, market.CodeBadRecord},
		"less": {func(a *renter) []byte { return a.extension(-time.Minute, 0, nil) }, market.CodeBadRecord},
		"another lease's": {func(a *renter) []byte {
			return a.extension(time.Hour, 0, func(e *market.Extension) { e.Lease[0]++ })
		}, market.CodeBadRecord},
		"eve's": {func(a *renter) []byte {
			e := a.terms.Extend(a.id, nil, 1000, 0, 1)
			return market.SealExtension(network, private("eve"), e).Encode()
		}, market.CodeBadSignature},
		"the rig's own": {func(a *renter) []byte {
			e := a.terms.Extend(a.id, nil, 1000, 0, 1)
			s := market.SealExtension(network, a.key, e)
			s = s.Sign(market.RoleRig, private("eve"))
			return s.Encode()
		}, market.CodeBadSignature},
		"garbage": {func(*renter) []byte { return []byte{0xff} }, market.CodeBadEncoding},
		"after the price rose": {func(a *renter) []byte {
			if err := a.rig.SetPrices(a.t.Context(), market.Prices{Currency: "USD", Slot: 400_000}); err != nil {
				a.t.Fatal(err)
			}
			return a.extension(time.Hour, 0, nil)
		}, market.CodePriceRose},
		"while the rig drains": {func(a *renter) []byte {
			if err := a.rig.Drain(a.t.Context(), false); err != nil {
				a.t.Fatal(err)
			}
			return a.extension(time.Hour, 0, nil)
		}, market.CodePaused},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				a := newRenter(r, "ann")
				a.rent("probe", "polite")
				raw := c.raw(a)
				pass(time.Second)
				before := r.lease().Extension
				a.say(market.ExtendMessage{Extension: raw})
				pass(time.Second)
				a.wantDecline(market.OrderExtend, c.code)
				if after := r.lease().Extension; (before == nil) != (after == nil) || before != nil && *before != *after {
					t.Errorf("extension %+v, then %+v", before, after)
				}
				a.wantState(market.JobRunning, "") // and the conversation goes on
				a.say(market.ExtendMessage{Extension: a.extension(0, 1, nil)})
				pass(time.Second)
				if a.last == nil || a.last.Budget != a.terms.Budget+1 {
					t.Errorf("extension %+v", a.last)
				}
			})
		})
	}
}

func TestAnExtensionThatCannotBeStoredIsNotSigned(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "polite")
		pass(20 * time.Second)
		raw := a.extension(time.Hour, 0, nil)
		r.store.breakWith(errors.New("disk full"))
		a.say(market.ExtendMessage{Extension: raw})
		pass(time.Second)
		r.store.breakWith(nil)
		if len(a.extended) > 0 || r.lease().Extension != nil {
			t.Errorf("answers %x, extension %+v", a.extended, r.lease().Extension)
		}
		pass(time.Second)
		a.connect()
		a.say(market.ExtendMessage{Extension: raw})
		pass(time.Second)
		if len(a.extended) != 1 {
			t.Errorf("%d answers", len(a.extended))
		}
	})
}

func TestAConsentThatTheRigForgotIsGivenAgainWhateverThePriceIsNow(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "polite")
		e := a.terms.Extend(a.id, nil, time.Hour.Milliseconds(), 0, 1)
		both := market.Consent(market.SealExtension(network, a.key, e), r.key).Encode()
		if err := r.SetPrices(t.Context(), market.Prices{Currency: "USD", Slot: 400_000}); err != nil {
			t.Fatal(err)
		}
		a.say(market.ExtendMessage{Extension: both})
		pass(time.Second)
		if len(a.extended) != 1 || !bytes.Equal(a.extended[0], both) {
			t.Errorf("answers %x", a.extended)
		}
	})
}
