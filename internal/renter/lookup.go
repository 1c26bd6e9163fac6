package renter

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"haggle/internal/view"
	"haggle/market"
)

// Leases returns the leases and bids that are not over, or all there ever were, newest first.
func (a *Agent) Leases(ctx context.Context, all bool) ([]view.Lease, error) {
	records, err := a.cfg.Store.Records(ctx)
	if err != nil {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	list := []view.Lease{}
	for _, r := range records {
		r, connected := a.latest(r)
		if all || !r.over() {
			list = append(list, a.leaseView(r, connected))
		}
	}
	return list, nil
}

// Lease returns one lease. It is named by its name or at least 3 digits of its id, as in every other method; the error has code CodeLeaseUnknown or
// CodeLeaseAmbiguous.
func (a *Agent) Lease(ctx context.Context, id string) (view.Lease, error) {
	r, err := a.find(ctx, id)
	if err != nil {
		return view.Lease{}, err
	}
	r, connected := a.latest(r)
	return a.leaseView(r, connected), nil
}

// latest returns a record as it is now in memory, where it is, and whether its rig is connected.
func (a *Agent) latest(r Record) (Record, bool) {
	if l := a.opened(r.Bid); l != nil {
		return l.get()
	}
	return r, false
}

// find returns the record of a lease by its name or by the beginning of its id. A bid that never became a lease has neither.
func (a *Agent) find(ctx context.Context, id string) (Record, error) {
	id = strings.ToLower(id)
	unknown := market.NewError(market.CodeLeaseUnknown, "lease", clip(id))
	if !isPrefix(digitsOf(id)) && !isName(id) {
		return Record{}, unknown
	}
	records, err := a.cfg.Store.Records(ctx)
	if err != nil {
		return Record{}, fmt.Errorf("find lease: %w", err)
	}
	if r, ok := a.named(records, id); ok {
		return r, nil
	}
	if id = digitsOf(id); !isPrefix(id) {
		return Record{}, unknown
	}
	var hits []Record
	for _, r := range records {
		if !r.Lease.IsZero() && strings.HasPrefix(r.Lease.String(), id) {
			hits = append(hits, r)
		}
	}
	switch len(hits) {
	case 0:
		return Record{}, unknown
	case 1:
		return hits[0], nil
	}
	return Record{}, market.NewError(market.CodeLeaseAmbiguous, "lease", id, "count", strconv.Itoa(len(hits)))
}
