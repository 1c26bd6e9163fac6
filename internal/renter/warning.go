package renter

import "strconv"

// maxWarnings bounds the sentences that are about rigs.
const maxWarnings = 4

// Warnings returns sentences about what a person should mend: leases that cannot be stored, and rigs whose clocks differ by
// more than market.MaxClockSkew.
func (a *Agent) Warnings() []string {
	var list []string
	sick := 0
	for _, l := range a.openLeases() {
		if l.sick.Load() {
			sick++
		}
	}
	switch {
	case sick == 1:
		list = append(list, "a lease cannot be stored, so nothing is signed for it until it can: the log says why, its job goes on")
	case sick > 1:
		list = append(list, strconv.Itoa(sick)+" leases cannot be stored, so nothing is signed for them until they can: the log says why, their jobs go on")
	}
	skews := a.index.Skews()
	for _, s := range skews[:min(len(skews), maxWarnings)] {
		list = append(list, s.Sentence()+": set both by NTP; running jobs and their bills are not affected")
	}
	return list
}
