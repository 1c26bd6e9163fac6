package market

import "slices"

// Bounds of an idle stop.
const (
	mostPermille = 1000
	idleLeastMs  = int64(60_000)
	idleMostMs   = int64(7 * 24 * msPerHour)
	idleGapMs    = int64(10_000) // without a reading: then nobody knows
)

func (s *IdleStop) outOfRange() bool {
	return s != nil && (s.Permille < 1 || s.Permille > mostPermille || s.ForMs < idleLeastMs || s.ForMs > idleMostMs)
}

// sameIdle reports whether two idle stops say the same.
func sameIdle(a, b *IdleStop) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// watchIdle takes a tick's reading of the cards' use; old is the reading before. A card is idle where its mean use since then is
// below the bound; one whose use nobody knows never is.
func (l Lease) watchIdle(old []SlotUse, tick Tick) Lease {
	if l.Terms.Idle == nil {
		return l
	}
	ran := l.Meter.BilledMs + l.Meter.UnbilledMs
	passed := ran - l.IdleAt
	switch {
	case passed > idleGapMs: // nobody looked for too long
		l.IdleAt, l.IdleMs = ran, 0
		return l
	case !tick.Read || passed <= 0:
		return l
	}
	l.IdleAt = ran
	for _, s := range l.Terms.Slots {
		before, known := useOf(old, s.Index)
		after, knownNow := useOf(tick.Slots, s.Index)
		if !known || !knownNow || after < before || after-before >= l.Terms.Idle.Permille*passed {
			l.IdleMs = 0
			return l
		}
	}
	l.IdleMs += passed
	return l
}

// useOf returns the use of a slot, in permille by milliseconds, if it is known.
func useOf(list []SlotUse, index uint8) (int64, bool) {
	i := slices.IndexFunc(list, func(u SlotUse) bool { return u.Index == index })
	if i < 0 || list[i].UtilPermilleMs == nil {
		return 0, false
	}
	return *list[i].UtilPermilleMs, true
}
