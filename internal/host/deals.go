package host

import (
	"slices"

	"haggle/market"
)

// Deals reports whether a key is more than a stranger to the rig: a renter of a lease that is not over, a deputy of one, or an owner whom
// the rig's owner trusts. Before the rig is ready nobody is. It never waits.
func (d *Daemon) Deals(key market.Key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.chosen.trusts(key) {
		return true
	}
	for _, l := range d.leases {
		seen := l.seen.Load()
		if seen == nil || d.over(seen.lease) {
			continue
		}
		if t := seen.lease.Terms; t.Renter == key || slices.Contains(t.Deputies, key) {
			return true
		}
	}
	return false
}

// OwnerOf returns the owner of a renter's program as the leases that are not over name it, and the zero key where none does.
func (d *Daemon) OwnerOf(program market.Key) market.Key {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.leases {
		if seen := l.seen.Load(); seen != nil && seen.lease.Terms.Renter == program {
			return seen.lease.Terms.RenterOwner
		}
	}
	return market.Key{}
}
