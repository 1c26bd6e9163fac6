package renter_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"haggle/internal/renter"
	"haggle/internal/view"
	"haggle/market"
)

func TestWhatADeputyIsToldInSettings(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		ctx := t.Context()
		for name, v := range map[string]view.Deputy{
			"no key":         {Key: "attic"},
			"its own key":    {Key: keyText(200)},
			"a bad name":     {Key: keyText(201), Name: "At Home"},
			"a negative cap": {Key: keyText(201), CapMicro: -1},
		} {
			if _, err := h.agent.AddDeputy(ctx, v); err == nil {
				t.Errorf("%s is taken", name)
			}
		}
		for i := range byte(market.MaxDeputies) {
			h.add(view.Deputy{Key: keyText(10 + i)})
		}
		if _, err := h.agent.AddDeputy(ctx, view.Deputy{Key: keyText(20)}); market.CodeOf(err) != market.CodeBadRequest {
			t.Errorf("one more than a lease can name: %v", err)
		}
		h.add(view.Deputy{Key: keyText(10), Name: "attic", CapMicro: 5})
		if h.agent.Serving(ctx) {
			t.Error("it serves nobody yet")
		}
		h.add(view.Deputy{Key: keyText(10), Serves: true})
		list, err := h.agent.Deputies(ctx)
		if err != nil || len(list) != market.MaxDeputies+1 || !h.agent.Serving(ctx) {
			t.Errorf("deputies %+v, %v", list, err)
		}
	})
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		_, err := h.bid(func(r *view.BidRequest) { r.Deputies = true })
		wantCode(t, err, market.CodeBadRequest)
	})
}

// handover returns what an agent hands to its deputy.
func handover(t *testing.T, h *house) market.HandoverMessage {
	t.Helper()
	got := make(chan market.HandoverMessage, 100)
	h.net.set(func() {
		h.net.deputies[market.KeyOf(standIn)] = func(ctx context.Context, s renter.Stream) error {
			m, err := s.Receive(ctx)
			if err != nil {
				return err
			}
			got <- m.(market.HandoverMessage)
			return s.Send(ctx, market.AckMessage{})
		}
	})
	h.add(view.Deputy{Key: keyText(201)})
	h.mustBid(func(r *view.BidRequest) { r.Deputies = true })
	pass(90 * time.Second)
	var last market.HandoverMessage
	for len(got) > 0 {
		last = <-got
	}
	if len(last.Receipt) == 0 {
		t.Fatal("no receipt was handed over")
	}
	return last
}

// give hands something to an agent as a peer, and returns its word.
func give(ctx context.Context, a *renter.Agent, peer market.Key, m market.Message) (market.Message, error) {
	theirs, ours := newWire(market.KeyOf(standIn), peer)
	go func() {
		if err := a.ServeDeputy(ctx, ours); err != nil {
			_ = ours.Send(ctx, market.Refuse{Err: *market.Public(err)})
		}
		_ = ours.Close()
	}()
	defer theirs.Close()
	if err := theirs.Send(ctx, m); err != nil {
		return nil, err
	}
	return theirs.Receive(ctx)
}

func TestADeputyTakesOnlyWhatItCanCheckFromWhomItServes(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		good := handover(t, h)
		d := &house{t: t, net: newTestNet(market.KeyOf(standIn), h.rig(0)), store: newMemStore(), dir: t.TempDir(), key: standIn}
		d.up()
		defer d.down()
		ctx := t.Context()
		agent, other := market.KeyOf(bidder), market.KeyOf(stranger)
		if _, err := give(ctx, d.agent, agent, good); market.CodeOf(err) != market.CodeDeputyUnknown {
			t.Fatalf("an agent that is not served: %v", err)
		}
		d.add(view.Deputy{Key: agent.String(), Serves: true})
		d.add(view.Deputy{Key: other.String(), Serves: true})
		flip := func(raw []byte) []byte {
			raw = bytes.Clone(raw)
			raw[len(raw)/2] ^= 1
			return raw
		}
		for name, c := range map[string]struct {
			peer   market.Key
			change func(*market.HandoverMessage)
			want   []market.Code
		}{
			"a lease of somebody else": {other, func(*market.HandoverMessage) {}, []market.Code{market.CodeNotYours}},
			"another job":              {agent, func(m *market.HandoverMessage) { m.Job.Args = []string{"mine"} }, []market.Code{market.CodeBadRecord}},
			"a negative cap":           {agent, func(m *market.HandoverMessage) { m.Cap = -1 }, []market.Code{market.CodeBadRecord}},
			"a way out of its folder":  {agent, func(m *market.HandoverMessage) { m.Collects = []string{"../x"} }, []market.Code{market.CodeBadRecord}},
			"too many folders":         {agent, func(m *market.HandoverMessage) { m.Collects = make([]string, 17) }, []market.Code{market.CodeBadRecord}},
			"no terms":                 {agent, func(m *market.HandoverMessage) { m.Lease = nil }, []market.Code{market.CodeBadEncoding, market.CodeBadRecord}},
			"a bid in place of terms":  {agent, func(m *market.HandoverMessage) { m.Lease = m.Bid }, []market.Code{market.CodeBadRecord, market.CodeBadSignature}},
			"changed terms":            {agent, func(m *market.HandoverMessage) { m.Lease = flip(m.Lease) }, nil},
			"a changed receipt":        {agent, func(m *market.HandoverMessage) { m.Receipt = flip(m.Receipt) }, nil},
			"a receipt that only the rig signed": {agent, func(m *market.HandoverMessage) {
				r, _, err := market.OpenReceipt(testNetwork, m.Receipt, h.rigLease(0).state.Terms)
				if err != nil {
					t.Fatal(err)
				}
				m.Receipt = market.SealReceipt(testNetwork, seedKey(1), r).Encode()
			}, []market.Code{market.CodeBadRecord}},
			"a payment by somebody else": {agent, func(m *market.HandoverMessage) {
				m.Payment = market.SealPayment(testNetwork, stranger, market.Payment{Lease: h.rigLease(0).state.ID, Seq: 1, Amount: 1, Total: 1}).Encode()
			}, []market.Code{market.CodeBadSignature}},
			"an extension that only the renter signed": {agent, func(m *market.HandoverMessage) {
				l := h.rigLease(0).state
				m.Extension = market.SealExtension(testNetwork, bidder, l.Terms.Extend(l.ID, nil, 60_000, 10_000, time.Now().UnixMilli())).Encode()
			}, []market.Code{market.CodeBadRecord}},
		} {
			m := good
			c.change(&m)
			_, err := give(ctx, d.agent, c.peer, m)
			ok := err != nil && len(c.want) == 0 && market.CodeOf(err) != market.CodeInternal
			for _, code := range c.want {
				ok = ok || market.CodeOf(err) == code
			}
			if !ok {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
			if len(d.store.records) != 0 {
				t.Fatalf("%s was taken", name)
			}
		}
		if _, err := give(ctx, d.agent, agent, market.EndMessage{}); market.CodeOf(err) != market.CodeUnexpected {
			t.Errorf("another message: %v", err)
		}
		for range 3 { // again is harmless
			if m, err := give(ctx, d.agent, agent, good); err != nil || m.(market.AckMessage).Seq == 0 {
				t.Fatalf("the honest agent: %v, %v", m, err)
			}
		}
		if len(d.store.records) != 1 || d.agent.OpenLeases() != 1 {
			t.Errorf("%d leases", len(d.store.records))
		}
	})
}

func TestADeputyThatTheTermsDoNotNameTakesNothing(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		good := handover(t, h)
		d := &house{t: t, net: newTestNet(market.KeyOf(stranger), h.rig(0)), store: newMemStore(), dir: t.TempDir(), key: stranger}
		d.up()
		defer d.down()
		d.add(view.Deputy{Key: keyText(200), Serves: true})
		_, err := give(t.Context(), d.agent, market.KeyOf(bidder), good)
		wantCode(t, err, market.CodeBadRecord)
	})
}
