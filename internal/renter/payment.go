package renter

import (
	"context"
	"fmt"
	"slices"

	"haggle/market"
)

// speaksPay is what a rig speaks that answers wishes to pay, and takes back payments that it has lost.
const speaksPay = "payment/1"

// forkBit marks the number of a paper that says other than the one of the same number: both are evidence.
const forkBit = uint32(1) << 31

// maxPayments bounds the number of a payment: a rig can sign as many as it likes, and each is kept.
const maxPayments = uint32(1) << 18

// payment keeps a payment that the rig has signed. Like every statement it is the whole truth: one that was missed is no matter.
func (k *link) payment(ctx context.Context, raw []byte) error {
	k.l.writing.Lock()
	defer k.l.writing.Unlock()
	r, _ := k.l.get()
	p, s, err := market.OpenPayment(k.a.cfg.Network, raw, r.Terms)
	switch {
	case err != nil:
		return err
	case p.Lease != r.Lease:
		return ofAnotherLease(market.KindPayment)
	case p.Seq > maxPayments:
		return market.NewError(market.CodeTooMany)
	case p.Seq <= r.State.PaidSeq:
		return k.contradiction(ctx, r, p.Seq, s, raw)
	case p.Total < r.State.Paid+p.Amount:
		return market.NewError(market.CodeBadRecord, "kind", string(market.KindPayment), "why", "its total falls")
	}
	before := r
	r.State.Paid, r.State.PaidSeq = p.Total, p.Seq
	if p.Method == market.PayBalance {
		r.State.Moved += p.Amount
	}
	if r.State.Serves.IsZero() {
		// A rig that signs for more than a lease can cost says nothing of what this side has spent.
		r.State.Sent = max(r.State.Sent, min(p.Total, r.terms().Budget)-r.State.Moved)
	}
	if !wished(p.Slice) {
		r.State.Slices = max(r.State.Slices, p.Slice) // a request for it may still be on its way
	}
	if w := r.State.Paying; w != nil && w.met(p) {
		r.State.Paying = nil
	}
	k.a.booked(before, &r)
	paper := market.Paper{Lease: r.Lease, Kind: market.KindPayment, Seq: p.Seq, Sealed: raw}
	if err := k.a.cfg.Store.File(ctx, r, paper); err != nil {
		return fmt.Errorf("keep payment %d of lease %s: %w", p.Seq, k.id.Short(), err)
	}
	k.l.change(func() { k.l.refused = nil })
	k.a.show(k.l, r)
	return nil
}

// met reports whether a payment is for a slice, or for a later one.
func (p Paying) met(by market.Payment) bool {
	return by.Slice == p.Slice.Seq || !wished(p.Slice.Seq) && !wished(by.Slice) && by.Slice > p.Slice.Seq
}

// contradiction keeps a payment that says other than the one of the same number: it proves the rig's fraud.
func (k *link) contradiction(ctx context.Context, r Record, seq uint32, s market.Sealed, raw []byte) error {
	kept, err := k.a.cfg.Store.Papers(ctx, r.Lease, market.KindPayment)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(kept, func(p market.Paper) bool { return p.Seq == seq })
	if i < 0 {
		return nil
	}
	old, err := market.DecodeSealed(kept[i].Sealed)
	if err != nil || old.Hash() == s.Hash() || slices.ContainsFunc(kept, func(p market.Paper) bool { return p.Seq == seq|forkBit }) {
		return err
	}
	k.a.cfg.Log.Warn("the rig signed two payments of one number", "lease", k.id.Short(), "peer", k.rig.String(), "seq", seq)
	paper := market.Paper{Lease: r.Lease, Kind: market.KindPayment, Seq: seq | forkBit, Sealed: raw}
	if err := k.a.cfg.Store.File(ctx, r, paper); err != nil {
		return fmt.Errorf("keep payment %d of lease %s: %w", seq, k.id.Short(), err)
	}
	return nil
}

// remind sends the rig the payments that it has lost with its store.
func (k *link) remind(ctx context.Context, s Stream, theirs market.Hello) error {
	r, _ := k.l.get()
	if theirs.Paid >= r.State.PaidSeq || !slices.Contains(theirs.Speaks, speaksPay) {
		return nil
	}
	kept, err := k.a.cfg.Store.Papers(ctx, k.id, market.KindPayment)
	if err != nil {
		return err
	}
	for _, p := range kept {
		if p.Seq <= theirs.Paid || p.Seq&forkBit != 0 {
			continue
		}
		if err := s.Send(ctx, market.PaymentMessage{Payment: p.Sealed}); err != nil {
			return err
		}
	}
	return nil
}
