package renter

import (
	"context"
	"fmt"

	"haggle/internal/view"
	"haggle/market"
)

// Receipts returns the receipts that both sides signed, in order.
func (a *Agent) Receipts(ctx context.Context, id string) ([]view.Receipt, error) {
	r, err := a.find(ctx, id)
	if err != nil {
		return nil, err
	}
	kept, err := a.cfg.Store.Receipts(ctx, r.Lease)
	if err != nil {
		return nil, fmt.Errorf("receipts of lease %s: %w", r.Lease.Short(), err)
	}
	list := []view.Receipt{}
	for _, k := range kept {
		receipt, s, err := market.OpenReceipt(a.cfg.Network, k.Sealed, r.Terms)
		if err != nil {
			return nil, fmt.Errorf("receipt %d of lease %s: %w", k.Seq, r.Lease.Short(), err)
		}
		list = append(list, view.ReceiptOf(receipt, s, r.Terms))
	}
	return list, nil
}

// Evidence returns everything about a lease that was signed, as a file that anyone can judge with market.Judge. Where the rig
// may have more to say of the outcome it is asked, which takes 5 seconds at most.
func (a *Agent) Evidence(ctx context.Context, id string) ([]byte, error) {
	r, err := a.find(ctx, id)
	if err != nil {
		return nil, err
	}
	receipts, err := a.cfg.Store.Receipts(ctx, r.Lease)
	if err != nil {
		return nil, fmt.Errorf("receipts of lease %s: %w", r.Lease.Short(), err)
	}
	rejects, err := a.cfg.Store.Rejects(ctx, r.Lease)
	if err != nil {
		return nil, fmt.Errorf("refusals of lease %s: %w", r.Lease.Short(), err)
	}
	extensions, err := a.cfg.Store.Extensions(ctx, r.Lease)
	if err != nil {
		return nil, fmt.Errorf("extensions of lease %s: %w", r.Lease.Short(), err)
	}
	r = a.concluded(ctx, r)
	papers, err := a.papers(ctx, r)
	if err != nil {
		return nil, err
	}
	e := market.Evidence{
		Network: a.cfg.Network, Offer: r.Offer, Bid: r.SealedBid, Lease: r.Sealed, Extensions: extensions, Rejects: rejects, Outcome: r.Outcome,
		Papers: papers,
	}
	for _, k := range receipts {
		e.Receipts = append(e.Receipts, k.Sealed)
	}
	return e.Encode(), nil
}

// papers returns what is kept of a lease beside its terms and its receipts.
func (a *Agent) papers(ctx context.Context, r Record) ([]market.Paper, error) {
	var all []market.Paper
	if len(r.State.Guarantee) > 0 {
		all = append(all, market.Paper{Lease: r.Lease, Kind: market.KindGuarantee, Sealed: r.State.Guarantee})
	}
	for _, kind := range []market.Kind{market.KindReceipt, market.KindPayment, market.KindNotice, market.KindDispute} {
		kept, err := a.cfg.Store.Papers(ctx, r.Lease, kind)
		if err != nil {
			return nil, fmt.Errorf("papers of lease %s: %w", r.Lease.Short(), err)
		}
		all = append(all, kept...)
	}
	return all, nil
}
