package market

import (
	"slices"
	"strings"
)

// Bounds of a receipt's list of unbilled time.
const (
	maxGaps    = 16
	maxGapName = 16 // bytes of a reason
)

// addGap returns the list with more time for a reason. It never writes to the list that it is given: leases are values.
func addGap(gaps []Unbilled, reason UnbilledReason, ms int64) []Unbilled {
	if ms <= 0 || reason == "" {
		return gaps
	}
	gaps = slices.Clone(gaps)
	i, found := slices.BinarySearchFunc(gaps, reason, func(u Unbilled, r UnbilledReason) int {
		return strings.Compare(string(u.Reason), string(r))
	})
	if !found {
		gaps = slices.Insert(gaps, i, Unbilled{Reason: reason})
	}
	gaps[i].Ms += ms
	return gaps
}

// gapOf returns the time for a reason in a list.
func gapOf(gaps []Unbilled, reason UnbilledReason) int64 {
	for _, u := range gaps {
		if u.Reason == reason {
			return u.Ms
		}
	}
	return 0
}

// idleGap names the time that passes in a state in which nothing runs; "" where it is nobody's question.
func (l Lease) idleGap() UnbilledReason {
	switch l.Job {
	case JobPreparing:
		if l.Funded() {
			return UnbilledPull
		}
	case JobStarting:
		return UnbilledStart
	case JobStopping:
		return UnbilledNotice
	case JobPaused:
		return UnbilledPause
	}
	return ""
}

// unbilled counts time that is not billed although the job should run.
func (l Lease) unbilled(reason UnbilledReason, ms int64) Lease {
	if ms > 0 {
		l.Meter.UnbilledMs += ms
		l.Gaps = addGap(l.Gaps, reason, ms)
	}
	return l
}

// checkGaps reports why a receipt's list of unbilled time does not follow the one before it; "" where it does.
func checkGaps(old, next []Unbilled) string {
	if len(next) > maxGaps {
		return "it lists too many reasons for time that is not billed"
	}
	for i, u := range next {
		if u.Ms < 0 || u.Reason == "" || len(u.Reason) > maxGapName || i > 0 && u.Reason <= next[i-1].Reason {
			return "its reasons for time that is not billed are not in order"
		}
	}
	for _, was := range old {
		i := slices.IndexFunc(next, func(u Unbilled) bool { return u.Reason == was.Reason })
		if i < 0 || next[i].Ms < was.Ms {
			return "time that is not billed falls"
		}
	}
	return ""
}
