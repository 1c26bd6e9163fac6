package index

import (
	"slices"

	"haggle/market"
)

// arrivals are the offers of a shelf in the order in which they came: what came after a place is what somebody who was there before
// has not heard.
type arrivals struct {
	instance market.Nonce // of this life: a cursor of another one means the beginning
	last     uint64
	list     []arrival
}

// arrival is an entry at the time of its seq. It is void once the entry has another.
type arrival struct {
	seq   uint64
	entry *entry
}

func (a *arrivals) add(e *entry) {
	a.last++
	e.seq = a.last
	a.list = append(a.list, arrival{a.last, e})
}

// since returns what came after a cursor, void places included.
func (a *arrivals) since(c market.Cursor) []arrival {
	if c.Instance != a.instance || c.Seq > a.last {
		return a.list
	}
	i, _ := slices.BinarySearchFunc(a.list, c.Seq+1, func(x arrival, seq uint64) int {
		switch {
		case x.seq < seq:
			return -1
		case x.seq > seq:
			return 1
		}
		return 0
	})
	return a.list[i:]
}

// compact drops void places once they are more than half.
func (a *arrivals) compact(live int) {
	if len(a.list) > 2*live+64 {
		a.list = slices.Clone(slices.DeleteFunc(a.list, func(x arrival) bool { return x.entry.seq != x.seq }))
	}
}
