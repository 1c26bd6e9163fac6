package host

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
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
	if d.diskFull() {
		list = append(list, "the disk of this rig's state is full: no new leases are taken until there is room, jobs go on within their limits")
	}
	list = append(list, d.hardware()...)
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

// hardware returns sentences about cards and the engine.
func (d *Daemon) hardware() []string {
	var list []string
	for _, p := range d.engine.weak() {
		list = append(list, sentence("the protection "+p.Name+" does not hold: "+p.Found+"; "+p.Fix))
	}
	for _, w := range d.settings().Withheld {
		list = append(list, sentence("card "+w.UUID+" is not offered: "+w.Why+"; give it back when it may be"))
	}
	unruly := d.rack.unruly()
	for _, uuid := range slices.Sorted(maps.Keys(unruly)) {
		list = append(list, sentence("the power of card "+uuid+" could not be set: "+unruly[uuid]))
	}
	return list[:min(len(list), maxHardware)]
}

// maxHardware bounds the sentences of a status that are about cards and the engine, maxSentence each of them in bytes.
const (
	maxHardware = 40
	maxSentence = 400
)

// sentence makes a foreign text fit for a status.
func sentence(s string) string {
	s = market.Printable(s)
	if len(s) > maxSentence {
		s = strings.ToValidUTF8(s[:maxSentence], "") + "…"
	}
	return strings.TrimSuffix(s, "; ")
}

// diskFull reports whether the store has no room.
func (d *Daemon) diskFull() bool { return d.cfg.DiskFull != nil && d.cfg.DiskFull() }
