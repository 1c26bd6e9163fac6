package renter

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"haggle/market"
)

// receipt answers a receipt of the rig. One that follows and that this side can believe is signed, stored and then sent;
// one that was signed before gets the same answer again; any other is refused with a signature, once: after that, nothing
// of the lease is signed any more. Bytes that are not the rig's are an error. No answer is needed where it is nil.
func (k *link) receipt(ctx context.Context, raw []byte) (market.Message, error) {
	rec, _ := k.l.get()
	r, s, err := market.OpenReceipt(k.a.cfg.Network, raw, rec.Terms)
	if err != nil {
		return nil, err
	}
	if rec.State.Disputed {
		return k.refusal(ctx)
	}
	now := k.a.cfg.Clock()
	elapsed := k.seen.elapsed(now, rec.Head.BilledMs)
	if r.Lease == rec.Lease && r.Seq > 0 && r.Seq <= rec.Head.Seq {
		return k.again(ctx, rec, r, s, elapsed)
	}
	believed := elapsed
	if s.SignedBy(market.RoleRenter) {
		believed = market.Unlimited // this side has signed it already: its store was lost
	}
	err = market.CheckReceipt(rec.Lease, rec.terms(), rec.Head, r, believed)
	if err == nil && believed != market.Unlimited {
		err = k.checkKept(rec, r, now)
	}
	if err != nil {
		return k.dispute(ctx, rec, r, s.Hash(), elapsed, err)
	}
	signed := s.Sign(market.RoleRenter, k.a.cfg.Key)
	rec.Head = market.HeadOf(r, s.Hash())
	rec.State.Seen = now.UnixMilli()
	kept := Receipt{Lease: rec.Lease, Seq: r.Seq, Sealed: signed.Encode()}
	if err := k.a.cfg.Store.Sign(ctx, rec, kept); err != nil {
		return nil, fmt.Errorf("sign receipt %d of lease %s: %w", r.Seq, k.id.Short(), err)
	}
	k.a.show(k.l, rec)
	if s.SignedBy(market.RoleRenter) {
		return nil, k.acknowledged(ctx, r.Seq) // it came from the rig with both signatures
	}
	return market.ReceiptMessage{Receipt: kept.Sealed}, nil
}

// checkKept reports whether the time for which only the disk was kept can be believed: none where that was never ordered, and else
// no more than what is left of the time since the start when the running time is taken off.
func (k *link) checkKept(rec Record, r market.Receipt, now time.Time) error {
	seen := int64(0)
	if rec.Inside.Keeps {
		seen = k.seen.since(now, rec.Head.BilledMs+rec.Head.KeptMs)
		if seen == market.Unlimited {
			return nil
		}
		seen = max(0, seen-r.BilledMs)
	}
	return market.CheckKept(r, seen)
}

// again answers a receipt of a number that was signed before.
func (k *link) again(ctx context.Context, rec Record, r market.Receipt, s market.Sealed, elapsed int64) (market.Message, error) {
	kept, err := k.a.cfg.Store.Receipts(ctx, rec.Lease)
	if err != nil {
		return nil, fmt.Errorf("receipts of lease %s: %w", k.id.Short(), err)
	}
	for _, old := range kept {
		if old.Seq != r.Seq {
			continue
		}
		signed, err := market.DecodeSealed(old.Sealed)
		switch {
		case err != nil:
			return nil, fmt.Errorf("receipt %d of lease %s: %w", r.Seq, k.id.Short(), err)
		case signed.Hash() != s.Hash() && k.theirs < r.Seq:
			// The rig's store is older than what both signed, so its new draft is no fork: it gets the one that was agreed.
			return market.ReceiptMessage{Receipt: old.Sealed}, nil
		case signed.Hash() != s.Hash():
			why := market.NewError(market.CodeReceiptChain, "seq", strconv.FormatUint(uint64(r.Seq), 10), "why", "another one of this number is signed")
			return k.dispute(ctx, rec, r, s.Hash(), elapsed, why)
		case s.SignedBy(market.RoleRenter):
			return nil, nil
		}
		return market.ReceiptMessage{Receipt: old.Sealed}, nil
	}
	return nil, fmt.Errorf("receipt %d of lease %s is not in the store", r.Seq, k.id.Short())
}

// dispute signs and stores the refusal of a receipt.
func (k *link) dispute(ctx context.Context, rec Record, r market.Receipt, hash market.Hash, elapsed int64, why error) (market.Message, error) {
	k.a.cfg.Log.Warn("receipt refused", "lease", k.id.Short(), "peer", k.rig.String(), "seq", r.Seq, "err", why)
	reject := market.SealReject(k.a.cfg.Network, k.a.cfg.Key, market.Reject{
		Lease: rec.Lease, Seq: r.Seq, Receipt: hash, Code: market.CodeOf(why), ElapsedMs: max(0, elapsed), Total: fair(rec, r, elapsed),
	}).Encode()
	rec.State.Disputed = true
	if err := k.a.cfg.Store.Dispute(ctx, rec, r.Seq, reject); err != nil {
		return nil, fmt.Errorf("refuse receipt %d of lease %s: %w", r.Seq, k.id.Short(), err)
	}
	k.a.show(k.l, rec)
	return market.RejectMessage{Reject: reject}, nil
}

// refusal is the answer to every receipt of a disputed lease: the refusal that is stored, for the rig may not have it yet.
func (k *link) refusal(ctx context.Context) (market.Message, error) {
	kept, err := k.a.cfg.Store.Rejects(ctx, k.id)
	if err != nil || len(kept) == 0 {
		return nil, err
	}
	return market.RejectMessage{Reject: kept[len(kept)-1]}, nil
}

// fair is the total that this side agrees to: what was signed, and the rest by its own count of the time.
func fair(rec Record, r market.Receipt, elapsed int64) market.Micro {
	t := rec.terms()
	ms := max(rec.Head.BilledMs, min(r.BilledMs, elapsed, t.DurationMs))
	bill, err := t.Prices.Bill(t.UsedBy(ms, rec.Head.KeptMs, rec.Head.Usage.InBytes, rec.Head.Usage.OutBytes))
	if err != nil {
		return rec.Head.Total
	}
	return min(bill.Total, t.Most())
}
