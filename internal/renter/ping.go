package renter

import (
	"context"

	"haggle/market"
)

// RigOf returns the key of the program that is meant: a key itself, a rig by an offer of it, or the rig of a lease.
func (a *Agent) RigOf(ctx context.Context, who string) (market.Key, error) {
	if key, err := market.ParseKey(who); err == nil {
		return key, nil
	}
	r, err := a.find(ctx, who)
	if err == nil {
		return r.Terms.Rig, nil
	}
	found, lost := a.search(ctx, market.Query{}, nil)
	if lost != nil {
		return market.Key{}, err // of the lease: the network may be away, and then nobody knows offers
	}
	k, lost := found.named(who)
	if lost != nil {
		return market.Key{}, lost
	}
	return k.Offer.Rig, nil
}
