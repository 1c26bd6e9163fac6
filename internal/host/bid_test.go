package host_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"haggle/internal/host"
	"haggle/market"
	"haggle/runtime"
)

func TestARefusedBidLeavesNothingReserved(t *testing.T) {
	type spoil = func(*market.Bid, *market.BidMessage)
	bidOnly := func(f func(b *market.Bid)) spoil { return func(b *market.Bid, _ *market.BidMessage) { f(b) } }
	for name, c := range map[string]struct {
		code   market.Code
		before func(r *rig)
		spoil  spoil
	}{
		"garbage": {code: market.CodeBadEncoding, spoil: func(_ *market.Bid, m *market.BidMessage) { m.Bid = []byte{0xff} }},
		"another renter's bid": {code: market.CodeNotYours, spoil: func(b *market.Bid, m *market.BidMessage) {
			b.Renter, b.Owner = market.KeyOf(private("bob")), market.KeyOf(private("bob"))
			m.Bid = market.SealBid(network, private("bob"), *b).Encode()
		}},
		"a bid of another network": {code: market.CodeWrongNetwork, spoil: func(b *market.Bid, m *market.BidMessage) {
			m.Bid = market.SealBid("lab-other", private("ann"), *b).Encode()
		}},
		"another rig's offer": {code: market.CodeOfferUnknown, spoil: func(b *market.Bid, m *market.BidMessage) {
			o, _, _ := market.OpenOffer(network, m.Offer)
			o.Rig, o.Owner = market.KeyOf(private("eve")), market.KeyOf(private("eve"))
			s := market.SealOffer(network, private("eve"), o)
			m.Offer, b.Offer, b.Rig = s.Encode(), s.Hash(), o.Rig
		}},
		"a paused rig":   {code: market.CodePaused, before: func(r *rig) { _ = r.Pause(r.t.Context()) }},
		"a draining rig": {code: market.CodePaused, before: func(r *rig) { _ = r.Drain(r.t.Context(), false) }},
		"an engine that is away": {code: market.CodeEngineDown, before: func(r *rig) {
			r.engine.SetDown(true)
			synctest.Wait()
		}},
		"too low a price":      {code: market.CodePriceTooLow, spoil: bidOnly(func(b *market.Bid) { b.Prices.Slot-- })},
		"too small a budget":   {code: market.CodeBudgetTooSmall, spoil: bidOnly(func(b *market.Bid) { b.Budget = 5999 })},
		"too short a time":     {code: market.CodeBadDuration, spoil: bidOnly(func(b *market.Bid) { b.DurationMs = 999 })},
		"too wide a limit":     {code: market.CodeBadLimits, spoil: bidOnly(func(b *market.Bid) { b.Limits.UnsignedMs *= 2 })},
		"too much memory":      {code: market.CodeBadLimits, spoil: bidOnly(func(b *market.Bid) { b.Resources.Memory = 1 << 40 })},
		"more cards than are":  {code: market.CodeTooFewSlots, spoil: bidOnly(func(b *market.Bid) { b.Count = 3 })},
		"cards of other kinds": {code: market.CodeTooFewSlots, spoil: bidOnly(func(b *market.Bid) { b.Model = "H100_SXM" })},
		"an old bid": {code: market.CodeOfferExpired, spoil: bidOnly(func(b *market.Bid) {
			b.GoodTill = time.Now().UnixMilli()
		})},
		"an unknown image": {code: market.CodeImageUnknown, spoil: func(b *market.Bid, m *market.BidMessage) {
			m.Job.Image = "sha256:" + string(bytes.Repeat([]byte("0"), 64))
			b.Job = m.Job.Hash()
		}},
		"an image without a digest": {code: market.CodeBadRecord, spoil: func(b *market.Bid, m *market.BidMessage) {
			m.Job.Image = "lab"
			b.Job = m.Job.Hash()
		}},
		"another job": {code: market.CodeBadRecord, spoil: func(_ *market.Bid, m *market.BidMessage) { m.Job.Args = []string{"rm"} }},
		"a store that is full": {code: market.CodeInternal, before: func(r *rig) {
			r.store.breakWith(errors.New("disk full"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				a := newRenter(r, "ann")
				a.order([]string{"probe", "stubborn"}, c.spoil)
				if c.before != nil {
					c.before(r)
				}
				wantCode(t, a.send(), c.code)
				r.store.breakWith(nil)
				if list, _ := r.store.Records(t.Context(), true); len(list) != 0 {
					t.Errorf("%d leases are stored", len(list))
				}
				if err := r.Resume(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := r.free(); got != 2 {
					t.Errorf("%d slots are free", got)
				}
			})
		})
	}
}

func TestARigOutsideALabGrantsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.config.Network, r.config.Clock = "main", newClock()
		d, err := host.New(r.config)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- d.Run(ctx) }()
		synctest.Wait()
		if len(d.Offers()) != 0 {
			t.Error("simulated cards are offered on a network that is no lab")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		r.engine.Shutdown()
	})
}

func TestOfTwoBidsForTheLastSlotsOneIsGranted(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		both := func(b *market.Bid, _ *market.BidMessage) { b.Count = 2 }
		answers := make(chan error, 2)
		ann, bob := newRenter(r, "ann"), newRenter(r, "bob")
		ann.order([]string{"probe", "stubborn"}, both)
		bob.order([]string{"probe", "stubborn"}, both)
		go func() { answers <- ann.send() }()
		go func() { answers <- bob.send() }()
		first, second := <-answers, <-answers
		if first != nil {
			first, second = second, first
		}
		if first != nil {
			t.Fatal(first, second)
		}
		wantCode(t, second, market.CodeSlotTaken)
		if got := r.free(); got != 0 {
			t.Errorf("%d slots are free", got)
		}
	})
}

func TestTheSameBidTwiceGetsTheSameGrant(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.order([]string{"probe", "stubborn"}, nil)
		if err := a.send(); err != nil {
			t.Fatal(err)
		}
		grant := a.grant
		a.stream.Close()
		if err := a.send(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(grant, a.grant) || r.free() != 1 {
			t.Errorf("another grant, or another slot: %d are free", r.free())
		}
		a.accept()
		pass(15 * time.Second)
		a.wantState(market.JobRunning, "")
		// The renter has lost its memory of the answer, not of the bid.
		a.stream.Close()
		a.heard.Wait()
		if err := a.send(); err != nil {
			t.Fatal(err)
		}
		a.say(market.AcceptMessage{Lease: a.signed()})
		a.listen()
		synctest.Wait()
		a.wantState(market.JobRunning, "")
		if list, _ := r.engine.List(t.Context()); len(list) != 1 {
			t.Errorf("%d jobs", len(list))
		}
	})
}

func TestAnUnsignedGrantIsFreedWhenItsHoldEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.order([]string{"probe", "stubborn"}, nil)
		if err := a.send(); err != nil {
			t.Fatal(err)
		}
		pass(29 * time.Second)
		if got := r.free(); got != 1 {
			t.Errorf("%d slots are free during the hold", got)
		}
		pass(2 * time.Second)
		if got := r.free(); got != 2 {
			t.Errorf("%d slots are free after the hold", got)
		}
		if l := r.lease(); !l.Closed() || l.Total() != 0 {
			t.Errorf("lease %+v", l)
		}
		a.listen()
		a.heard.Wait()
		wantCode(t, a.refused, market.CodeHoldExpired)
		wantCode(t, a.send(), market.CodeHoldExpired)
	})
}

func TestARenterHoldsOneUnsignedGrant(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.order([]string{"probe", "stubborn"}, nil)
		if err := a.send(); err != nil {
			t.Fatal(err)
		}
		a.order([]string{"probe", "stubborn"}, func(b *market.Bid, _ *market.BidMessage) { b.Nonce[0]++ })
		wantCode(t, a.send(), market.CodeTooMany)
		if got := r.free(); got != 1 {
			t.Errorf("%d slots are free", got)
		}
	})
}

func TestASignatureThatIsNotTheRentersStartsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		code  market.Code
		spoil func(a *renter) market.AcceptMessage
	}{
		"no signature": {market.CodeBadSignature, func(a *renter) market.AcceptMessage { return market.AcceptMessage{Lease: a.grant} }},
		"another environment": {market.CodeBadRecord, func(a *renter) market.AcceptMessage {
			return market.AcceptMessage{Lease: a.signed(), Env: market.Env{"X=1"}}
		}},
		"a broken environment": {market.CodeBadRecord, func(a *renter) market.AcceptMessage {
			return market.AcceptMessage{Lease: a.signed(), Env: market.Env{"=1"}}
		}},
		"another's signature": {market.CodeBadSignature, func(a *renter) market.AcceptMessage {
			s, _ := market.DecodeSealed(a.grant)
			return market.AcceptMessage{Lease: s.Sign(market.RoleRenter, private("eve")).Encode()}
		}},
		"other terms": {market.CodeLeaseUnknown, func(a *renter) market.AcceptMessage {
			terms := a.terms
			terms.Budget *= 2
			return market.AcceptMessage{Lease: market.SealTerms(network, a.rig.key, terms).Sign(market.RoleRenter, a.key).Encode()}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				a := newRenter(r, "ann")
				a.order([]string{"probe", "stubborn"}, nil)
				if err := a.send(); err != nil {
					t.Fatal(err)
				}
				a.say(c.spoil(a))
				a.listen()
				a.heard.Wait()
				wantCode(t, a.refused, c.code)
				if l := r.lease(); l.Job != market.JobGranted {
					t.Errorf("job is %s", l.Job)
				}
				// What was made ahead of the signature has not run, and goes with the hold.
				for _, job := range r.jobs() {
					if job.State != runtime.Created {
						t.Errorf("job is %s", job.State)
					}
				}
				pass(31 * time.Second)
				if list := r.jobs(); len(list) != 0 {
					t.Errorf("%d jobs are left", len(list))
				}
			})
		})
	}
}
