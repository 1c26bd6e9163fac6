package renter

import (
	"haggle/market"
)

// Deals reports whether a key is more than a stranger to the agent: the rig of a lease that is open, a deputy that has one, or an agent
// for which this one is a deputy. It never waits.
func (a *Agent) Deals(key market.Key) bool {
	for _, l := range a.openLeases() {
		r, _ := l.get()
		if r.over() {
			continue
		}
		if r.Terms.Rig == key || r.Terms.SignsAsRenter(key) || r.State.Serves == key {
			return true
		}
	}
	return false
}
