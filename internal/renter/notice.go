package renter

import (
	"context"
	"fmt"
	"slices"

	"haggle/market"
)

// maxPapers is how many papers of one kind that the rig can make at will are kept for a lease.
const maxPapers = 64

// notice keeps the rig's signed word that it will end the job.
func (k *link) notice(ctx context.Context, raw []byte) error {
	r, _ := k.l.get()
	n, s, err := market.OpenNotice(k.a.cfg.Network, raw, r.Terms)
	if err != nil {
		return err
	}
	if n.Lease != r.Lease {
		return ofAnotherLease(market.KindNotice)
	}
	return k.keepPaper(ctx, market.KindNotice, n.Seq, s, raw)
}

// ofAnotherLease refuses a paper that came on a lease's stream and is none of it.
func ofAnotherLease(kind market.Kind) error {
	return market.NewError(market.CodeBadRecord, "kind", string(kind), "why", "it belongs to another lease")
}

// keepPaper stores a paper that is not stored yet.
func (k *link) keepPaper(ctx context.Context, kind market.Kind, seq uint32, s market.Sealed, raw []byte) error {
	k.l.writing.Lock()
	defer k.l.writing.Unlock()
	kept, err := k.a.cfg.Store.Papers(ctx, k.id, kind)
	if err != nil {
		return err
	}
	if len(kept) >= maxPapers || slices.ContainsFunc(kept, func(p market.Paper) bool { return same(p.Sealed, s) || p.Seq == seq }) {
		return nil
	}
	r, _ := k.l.get()
	if err := k.a.cfg.Store.File(ctx, r, market.Paper{Lease: k.id, Kind: kind, Seq: seq, Sealed: raw}); err != nil {
		return fmt.Errorf("keep a %s of lease %s: %w", kind, k.id.Short(), err)
	}
	k.a.changed(k.l)
	return nil
}

// same reports whether stored bytes say what a sealed record says.
func same(stored []byte, s market.Sealed) bool {
	old, err := market.DecodeSealed(stored)
	return err == nil && old.Hash() == s.Hash()
}

// guarantorOf returns who stands for what a lease may owe; the zero key where nobody does.
func (a *Agent) guarantorOf(r Record) market.Key {
	if len(r.State.Guarantee) == 0 {
		return market.Key{}
	}
	g, _, err := market.OpenGuarantee(a.cfg.Network, r.State.Guarantee)
	if err != nil {
		return market.Key{} // our own bytes: the disk is damaged
	}
	return g.Guarantor
}
