package renter

import (
	"context"
	"fmt"

	"haggle/market"
)

// receipt answers a receipt of the rig as market.Rental decides: what is signed is stored first and sent then. Bytes that are not
// the rig's are an error. No answer is needed where it is nil.
func (k *link) receipt(ctx context.Context, raw []byte) (market.Message, error) {
	k.l.writing.Lock()
	defer k.l.writing.Unlock()
	rec, _ := k.l.get()
	r, s, err := market.OpenReceipt(k.a.cfg.Network, raw, rec.Terms)
	if err != nil {
		return nil, err
	}
	old, stored, err := k.kept(ctx, rec, r.Seq)
	if err != nil {
		return nil, err
	}
	answer := k.rental(rec).Answer(r, s.Hash(), s.SignedBy(market.RoleRenter), stored, k.a.seen(rec))
	switch answer.Kind {
	case market.AnswerSign:
		kept := s.Sign(market.RoleRenter, k.a.cfg.Key).Encode()
		if err := k.agree(ctx, rec, answer.Head, kept, k.a.self); err != nil {
			return nil, err
		}
		return market.ReceiptMessage{Receipt: kept}, nil
	case market.AnswerKeep:
		signer, err := s.Verify(market.RoleRenter)
		if err != nil {
			return nil, err
		}
		if err := k.agree(ctx, rec, answer.Head, raw, signer); err != nil {
			return nil, err
		}
		return nil, k.acknowledgedLocked(ctx, r.Seq)
	case market.AnswerAgain:
		return market.ReceiptMessage{Receipt: old}, nil
	case market.AnswerKnown:
		return nil, nil
	case market.AnswerRefuse:
		if r.Lease != rec.Lease {
			raw = nil // it is no evidence of this lease
		}
		return k.dispute(ctx, rec, *answer.Reject, raw, answer.Why)
	case market.AnswerStored:
		return k.refusal(ctx)
	}
	return nil, answer.Why
}

// rental is what is known of the lease when a receipt is answered.
func (k *link) rental(rec Record) market.Rental {
	return market.Rental{
		Lease: rec.Lease, Terms: rec.Terms, Extension: rec.State.Extension, Head: rec.Head, Paid: rec.State.Paid,
		Sent: rec.State.sent(), Disputed: rec.State.Disputed, Keeps: rec.Inside.Keeps, Theirs: k.theirs,
	}
}

// kept returns the receipt of a number that is in the store, and its hash; nil where there is none.
func (k *link) kept(ctx context.Context, rec Record, seq uint32) ([]byte, *market.Hash, error) {
	if seq == 0 || seq > rec.Head.Seq {
		return nil, nil, nil
	}
	receipts, err := k.a.cfg.Store.Receipts(ctx, rec.Lease)
	if err != nil {
		return nil, nil, fmt.Errorf("receipts of lease %s: %w", k.id.Short(), err)
	}
	for _, old := range receipts {
		if old.Seq != seq {
			continue
		}
		s, err := market.DecodeSealed(old.Sealed)
		if err != nil {
			return nil, nil, fmt.Errorf("receipt %d of lease %s: %w", seq, k.id.Short(), err)
		}
		hash := s.Hash()
		return old.Sealed, &hash, nil
	}
	return nil, nil, nil
}

// agree stores a receipt that both have signed. The caller holds the lease's lock.
func (k *link) agree(ctx context.Context, rec Record, head market.Head, sealed []byte, signer market.Key) error {
	before := rec
	rec.Head = head
	rec.State.Seen = k.a.cfg.Clock().UnixMilli()
	rec.State.ByDeputy = signer != rec.Terms.Renter
	now, _ := k.a.instant()
	rec.State.Measure = rec.State.Measure.Signed(head, rec.terms(), now) // the measure may have been lost with a store
	k.a.booked(before, &rec)
	kept := Receipt{Lease: rec.Lease, Seq: head.Seq, Sealed: sealed}
	if err := k.a.cfg.Store.Sign(ctx, rec, kept); err != nil {
		return fmt.Errorf("sign receipt %d of lease %s: %w", head.Seq, k.id.Short(), err)
	}
	k.nudge.signed(sealed)
	k.a.show(k.l, rec)
	return nil
}

// dispute signs and stores the refusal of a receipt. A deputy may lack what its agent knows: it signs nothing, and refuses nothing.
func (k *link) dispute(ctx context.Context, rec Record, reject market.Reject, raw []byte, why error) (market.Message, error) {
	if !rec.State.Serves.IsZero() {
		return nil, why
	}
	k.a.cfg.Log.Warn("receipt refused", "lease", k.id.Short(), "peer", k.rig.String(), "seq", reject.Seq, "err", why)
	sealed := market.SealReject(k.a.cfg.Network, k.a.cfg.Key, reject).Encode()
	if raw != nil { // what was refused, or a fork
		draft := market.Paper{Lease: rec.Lease, Kind: market.KindReceipt, Seq: reject.Seq, Sealed: raw}
		if err := k.a.cfg.Store.File(ctx, rec, draft); err != nil {
			return nil, fmt.Errorf("refuse receipt %d of lease %s: %w", reject.Seq, k.id.Short(), err)
		}
	}
	rec.State.Disputed = true
	if err := k.a.cfg.Store.Dispute(ctx, rec, reject.Seq, sealed); err != nil {
		return nil, fmt.Errorf("refuse receipt %d of lease %s: %w", reject.Seq, k.id.Short(), err)
	}
	k.a.show(k.l, rec)
	return market.RejectMessage{Reject: sealed}, nil
}

// refusal is the answer to every receipt of a disputed lease: the refusal that is stored, for the rig may not have it yet.
func (k *link) refusal(ctx context.Context) (market.Message, error) {
	kept, err := k.a.cfg.Store.Rejects(ctx, k.id)
	if err != nil || len(kept) == 0 {
		return nil, err
	}
	return market.RejectMessage{Reject: kept[len(kept)-1]}, nil
}
