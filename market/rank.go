package market

import (
	"cmp"
	"time"
)

// rankKey is where an offer stands in the order that a newcomer needs, beside its cost. Each step is coarse, so that the next one counts, and a lower number
// stands first:
//
//  1. checked by me: I measured a card, or leases of mine went well enough to be billed. It is all that nobody else says.
//  2. pays by itself: a lease begins and goes on with no person awake on the other side.
//  3. reach: what I send takes one way, or a punched one, or somebody's relay.
//  4. key seen longest: a key costs nothing, but being there for weeks does.
//  5. the whole cost of my job: with disk and traffic, and less what a disk of mine that is kept there saves of it.
//  6. holds my disk or my image, and starts soonest: of two of one price the one for which less is sent.
type rankKey struct {
	checked, pays, reach, seen int8
	holds                      int8
	start                      int64 // milliseconds; unknown last
}

// Bounds of the steps of how long a key is known.
func seenSteps() []time.Duration {
	return []time.Duration{30 * 24 * time.Hour, 7 * 24 * time.Hour, 24 * time.Hour, time.Hour}
}

func newRankKey(r *Row) rankKey {
	k := rankKey{checked: 1, pays: 1, reach: reachStep(r.reached()), holds: holdsStep(r)}
	if r.Offer.paysByItself() || r.Offer.Rules.Credit == Unlimited {
		k.pays = 0 // what may be owed without a limit needs no payment while it runs
	}
	if start, known := r.StartMs(); known {
		k.start = start
	} else {
		k.start = endless
	}
	steps := seenSteps()
	k.seen = int8(len(steps))
	s := r.Standing
	if s == nil {
		return k
	}
	if s.Checked || s.Leases > 0 {
		k.checked = 0
	}
	if s.FirstSeen > 0 && r.Now > 0 {
		for i, step := range steps {
			if r.Now-s.FirstSeen >= step.Milliseconds() {
				k.seen = int8(i)
				break
			}
		}
	}
	return k
}

func reachStep(reach string) int8 {
	switch reach {
	case "direct", "loopback":
		return 0
	case "punched":
		return 1
	case "relayed":
		return 2
	}
	return 3
}

// holdsStep tells a rig that keeps a disk of mine from one that has the image, and both from the rest.
func holdsStep(r *Row) int8 {
	switch {
	case r.Standing != nil && r.Standing.Keeps:
		return 0
	case r.HasImage():
		return 1
	}
	return 2
}

// before compares the steps that come before the cost.
func (k *rankKey) before(l *rankKey) int {
	return cmp.Or(
		cmp.Compare(k.checked, l.checked),
		cmp.Compare(k.pays, l.pays),
		cmp.Compare(k.reach, l.reach),
		cmp.Compare(k.seen, l.seen),
	)
}

// after compares the steps that come after the cost.
func (k *rankKey) after(l *rankKey) int {
	return cmp.Or(cmp.Compare(k.holds, l.holds), cmp.Compare(k.start, l.start))
}
