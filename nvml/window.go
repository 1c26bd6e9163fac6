package nvml

import "time"

// Thresholds of the judgements over time.
const (
	// HeatWindow is the shortest stretch of samples over which WatchWindow judges.
	HeatWindow = 60 * time.Second
	// HeatPermille is the share of a window above which slowing down by heat or power brake is reported.
	HeatPermille = 100
	// CorrectedPerHour is the rate of corrected memory errors above which a card is watched.
	CorrectedPerHour = 1000
	// SuspectLeases is how many different leases must fail by their "own" fault within SuspectWindow before the card
	// itself is suspected.
	SuspectLeases = 3
	// SuspectWindow is the time within which SuspectLeases counts.
	SuspectWindow = time.Hour
)

// NewErrors returns the event for memory errors that appeared between two samples of one card and could not be
// corrected. It returns false when there are none, when either count is unknown, or when the count fell, as it does by a
// reset.
func NewErrors(prev, cur Sample) (HealthEvent, bool) {
	was, ok1 := prev.ECCUncorrected.Get()
	is, ok2 := cur.ECCUncorrected.Get()
	if !ok1 || !ok2 || is <= was || prev.UUID != cur.UUID {
		return HealthEvent{}, false
	}
	return HealthEvent{UUID: cur.UUID, Kind: EventECC, Code: int(min(is-was, 1<<30)), At: cur.At}, true
}

// WatchWindow judges samples of one card, oldest first. A window shorter than HeatWindow says nothing: its verdict is
// Fit without a reason.
func WatchWindow(window []Sample) Verdict {
	fit := Verdict{Health: Fit, Class: ClassNone}
	if len(window) < 2 {
		return fit
	}
	first, last := window[0], window[len(window)-1]
	span := last.At - first.At
	if span < HeatWindow {
		return fit
	}
	if slowed := slowedFor(window); slowed > span/1000*HeatPermille {
		return Verdict{Health: Watch, Class: ClassHardware, Reason: "slowed_by_heat_or_brake"}
	}
	was, ok1 := first.ECCCorrected.Get()
	is, ok2 := last.ECCCorrected.Get()
	if ok1 && ok2 && is > was && float64(is-was) > CorrectedPerHour*span.Hours() {
		return Verdict{Health: Watch, Class: ClassHardware, Reason: "ecc_corrected"}
	}
	return fit
}

// slowedFor adds up the time in which the card was slowed down; a sample speaks for the time until the next one.
func slowedFor(window []Sample) time.Duration {
	var sum time.Duration
	for i, s := range window[:len(window)-1] {
		if t, ok := s.ThrottleReasons.Get(); ok && t.Degrades() {
			sum += max(0, window[i+1].At-s.At)
		}
	}
	return sum
}

// LeaseFault is a fault of ClassApplication during a lease.
type LeaseFault struct {
	// Lease is the lease's id.
	Lease string
	// At is when it happened, by the clock of the samples.
	At time.Duration
}

// Suspect reports whether so many different leases failed on one card within SuspectWindow before now that the card is
// the likelier culprit.
func Suspect(faults []LeaseFault, now time.Duration) bool {
	seen := make(map[string]bool)
	for _, f := range faults {
		if f.At <= now && now-f.At <= SuspectWindow {
			seen[f.Lease] = true
		}
	}
	return len(seen) >= SuspectLeases
}
