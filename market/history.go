package market

import (
	"cmp"
	"slices"
)

// History is what one program has lived through with another owner: counts of what it checked itself, never one number.
type History struct {
	Leases        int
	SlotMs        int64 // billed
	Paid          []Sum // by currency, ascending
	Completed     int   // by themselves, or at a limit that the terms set
	Disputed      int
	EndedByRig    int // before their time
	EndedByRenter int
	Unpaid        int     // ended because the money did not come
	Void          int     // nothing was billed
	Faults        []Fault // ends that were nobody's wish
	StartMs       int64   // the median from both signatures to the first running second; 0 where it is not known
	FirstSeen     int64   // wall time of the first lease; 0 for none
}

// Sum is an amount of one currency.
type Sum struct {
	Currency string
	Amount   Micro
}

// Fault counts the leases that ended for one reason.
type Fault struct {
	Reason Reason
	Count  int
}

// HistoryOf counts leases with one owner. A lease that runs is counted, and has no end yet.
func HistoryOf(leases []LeaseFacts) History {
	h := History{Leases: len(leases)}
	paid, faults := map[string]Micro{}, map[Reason]int{}
	var starts []int64
	for _, f := range leases {
		h.SlotMs += f.BilledMs * int64(len(f.Terms.Slots))
		if f.Paid > 0 {
			paid[f.Terms.Prices.Currency] += f.Paid
		}
		if f.StartMs > 0 {
			starts = append(starts, f.StartMs)
		}
		if h.FirstSeen == 0 || f.Begun < h.FirstSeen {
			h.FirstSeen = f.Begun
		}
		h.count(f, faults)
	}
	for currency, amount := range paid {
		h.Paid = append(h.Paid, Sum{currency, amount})
	}
	for reason, count := range faults {
		h.Faults = append(h.Faults, Fault{reason, count})
	}
	slices.SortFunc(h.Paid, func(a, b Sum) int { return cmp.Compare(a.Currency, b.Currency) })
	slices.SortFunc(h.Faults, func(a, b Fault) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason)) })
	if len(starts) > 0 {
		slices.Sort(starts)
		h.StartMs = starts[(len(starts)-1)/2]
	}
	return h
}

func (h *History) count(f LeaseFacts, faults map[Reason]int) {
	disputed := f.Debt == DebtDisputed
	if f.Job != JobEnded && !disputed {
		return
	}
	switch ResultOf(f.Reason, f.BilledMs, disputed) {
	case ResultCompleted:
		h.Completed++
	case ResultDisputed:
		h.Disputed++
	case ResultRig:
		h.EndedByRig++
	case ResultRenter:
		h.EndedByRenter++
	case ResultUnpaid:
		h.Unpaid++
	case ResultFault:
		faults[f.Reason]++
	case ResultVoid:
		h.Void++
		if f.Reason == ReasonPrepare || f.Reason == ReasonStart || f.Reason == ReasonLost || f.Reason == ReasonFault {
			faults[f.Reason]++
		}
	}
}
