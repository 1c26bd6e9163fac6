package renter

import (
	"context"
	"slices"
	"strings"

	"haggle/internal/view"
	"haggle/market"
)

// Rename gives a lease a name and labels, in place of those that it has. The error has code CodeNameTaken where another lease that
// is not over has the name, and CodeBadName.
func (a *Agent) Rename(ctx context.Context, id string, n view.NameRequest) (view.Lease, error) {
	if err := checkName(n.Name, n.Labels); err != nil {
		return view.Lease{}, err
	}
	r, err := a.find(ctx, id)
	if err != nil {
		return view.Lease{}, err
	}
	a.amending.Lock()
	defer a.amending.Unlock()
	if err := a.nameFree(ctx, n.Name, r.Bid); err != nil {
		return view.Lease{}, err
	}
	r, err = a.amendLocked(ctx, r, func(in *Inside) error {
		in.Name, in.Labels = n.Name, slices.Clone(n.Labels)
		return nil
	})
	if err != nil {
		return view.Lease{}, err
	}
	r, connected := a.latest(r)
	return a.leaseView(r, connected), nil
}

// nameFree reports whether a bid's lease can have a name. The caller holds amending.
func (a *Agent) nameFree(ctx context.Context, name string, bid market.Hash) error {
	if name == "" {
		return nil
	}
	records, err := a.cfg.Store.Records(ctx)
	if err != nil {
		return err
	}
	for _, r := range records {
		r, _ = a.latest(r)
		if r.Inside.Name == name && r.Bid != bid && !r.over() {
			return market.NewError(market.CodeNameTaken, "name", name, "lease", r.Lease.Short())
		}
	}
	return nil
}

// defaultName begins the name of a lease that has none: the first digits of its id follow.
const defaultName = "lease-"

// named returns the lease that a word names: one that is not over first, else the newest.
func (a *Agent) named(records []Record, name string) (Record, bool) {
	best, found := Record{}, false
	for _, r := range records {
		r, _ := a.latest(r)
		if r.Inside.Name != name || r.Lease.IsZero() {
			continue
		}
		if !r.over() {
			return r, true
		}
		if !found {
			best, found = r, true
		}
	}
	return best, found
}

// isName reports whether a word may be a lease's name.
func isName(word string) bool { return nameForm.MatchString(word) }

// digitsOf returns the beginning of an id that a word gives.
func digitsOf(word string) string { return strings.TrimPrefix(word, defaultName) }
