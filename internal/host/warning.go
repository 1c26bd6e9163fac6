package host

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"haggle/market"
)

// maxWarnings bounds the sentences of a status that are about peers.
const maxWarnings = 4

// warnings returns sentences about what the owner should mend.
func (d *Daemon) warnings() []string {
	var list []string
	sick := 0
	for _, l := range d.all() {
		if l.sick.Load() {
			sick++
		}
	}
	switch {
	case sick == 1:
		list = append(list, "a lease cannot be stored, so nothing new is billed for it until it can: the log says why, its job goes on")
	case sick > 1:
		list = append(list, strconv.Itoa(sick)+" leases cannot be stored, so nothing new is billed for them until they can: the log says why, their jobs go on")
	}
	type skewed struct {
		peer market.Key
		skew time.Duration
	}
	var skews []skewed
	d.mu.Lock()
	for peer, skew := range d.skewed {
		skews = append(skews, skewed{peer, skew.Round(time.Second)})
	}
	d.mu.Unlock()
	slices.SortFunc(skews, func(a, b skewed) int { return cmp.Compare(a.peer.String(), b.peer.String()) })
	for _, s := range skews[:min(len(skews), maxWarnings)] {
		how := s.skew.String() + " ahead of"
		if s.skew < 0 {
			how = (-s.skew).String() + " behind"
		}
		list = append(list, "the clock of renter "+s.peer.Short()+" is "+how+" this machine's: set this one by NTP; money is counted by durations and stays right")
	}
	return list
}
