package nvml

import (
	"fmt"
	"strconv"
)

// Health says what may be done with a card. Greater is worse.
type Health uint8

// The states of health.
const (
	// Fit cards are offered.
	Fit Health = iota
	// Watch cards stay in use, but something is wrong that the owner should see.
	Watch
	// Fence cards must not be used: their jobs end, their offers are withdrawn, and only a self-test after a reset
	// brings them back.
	Fence
)

// String returns "fit", "watch" or "fence".
func (h Health) String() string {
	switch h {
	case Fit:
		return "fit"
	case Watch:
		return "watch"
	case Fence:
		return "fence"
	default:
		return fmt.Sprintf("health(%d)", uint8(h))
	}
}

// MarshalText writes the name; a number that is no health is an error.
func (h Health) MarshalText() ([]byte, error) {
	if h > Fence {
		return nil, fmt.Errorf("unknown health %d", uint8(h))
	}
	return []byte(h.String()), nil
}

// UnmarshalText reads a name that MarshalText writes.
func (h *Health) UnmarshalText(text []byte) error {
	for v := Fit; v <= Fence; v++ {
		if string(text) == v.String() {
			*h = v
			return nil
		}
	}
	return fmt.Errorf("unknown health %.32q", text)
}

// Class says whose fault an event is taken to be.
type Class string

// The classes of faults.
const (
	// ClassNone: no fault.
	ClassNone Class = "none"
	// ClassApplication: the job's own program; the card is sound.
	ClassApplication Class = "application"
	// ClassHardware: the card, its driver or its link; the renter is not to blame.
	ClassHardware Class = "hardware"
)

// Verdict is what follows from an event or a window of samples.
type Verdict struct {
	// Health is what may be done with the card.
	Health Health `json:"health"`
	// Class says whose fault it is.
	Class Class `json:"class"`
	// Reason is a short stable word such as "xid_79"; empty when there is nothing to report.
	Reason string `json:"reason,omitempty"`
	// EndsJob is true when the card's job cannot go on. It is always true with Fence.
	EndsJob bool `json:"ends_job"`
	// Drain is true when the card's job may finish, but no new one may start before a reset. Always true with Fence.
	Drain bool `json:"drain"`
	// MultiCard is true when only jobs that use several cards are hit, and end; others go on.
	MultiCard bool `json:"multi_card"`
}

// XidTableVersion names the table behind Classify. It changes with every change of a row.
const XidTableVersion = 1

// Classify judges one event. It is a pure function of the event and the table XidTableVersion.
func Classify(e HealthEvent) Verdict {
	switch e.Kind {
	case EventXid:
		return classifyXid(e.Code, e.NeedsReset)
	case EventECC:
		return fence("ecc_uncorrected")
	case EventLost:
		return fence("lost")
	case EventHang:
		// One late answer may be a busy driver; two in a row is a card that nobody can rely on.
		if e.Code >= 2 {
			return fence("hang")
		}
		return Verdict{Health: Watch, Class: ClassHardware, Reason: "hang"}
	default:
		return Verdict{Health: Watch, Class: ClassHardware, Reason: "unknown_event", Drain: true}
	}
}

// classifyXid is the table. Where NVIDIA's catalogue and its own device plugin disagree, the catalogue won.
func classifyXid(code int, needsReset Opt[bool]) Verdict {
	reason := "xid_" + strconv.Itoa(code)
	reset, told := needsReset.Get()
	switch code {
	case 13, 31, 43, 45, 68, 69: // illegal access, killed or faulty channel, video decoder: the program's doing
		return Verdict{Health: Fit, Class: ClassApplication, Reason: reason}
	case 46, 48, 62, 64, 79, 95, 109, 119, 120, 140, 143:
		// halted, double-bit error, microcontroller, failed remap, off the bus, uncontained error, context switch
		// timeout, system processor, memory errors: nothing but a reset helps
		return fence(reason)
	case 63: // a row will be remapped at the next reset; until then the memory is sound
		return Verdict{Health: Watch, Class: ClassHardware, Reason: reason, Drain: true}
	case 74: // NVLink
		return Verdict{Health: Watch, Class: ClassHardware, Reason: reason, MultiCard: true}
	case 94: // an error in memory, contained to the job that used it
		return Verdict{Health: Watch, Class: ClassHardware, Reason: reason, EndsJob: true}
	case 154: // the driver changed its mind about whether a reset is needed
		switch {
		case !told:
			return Verdict{Health: Watch, Class: ClassHardware, Reason: reason, Drain: true}
		case reset:
			return fence(reason)
		default:
			return Verdict{Health: Fit, Class: ClassNone, Reason: reason}
		}
	}
	if told && reset {
		return fence(reason)
	}
	return Verdict{Health: Fit, Class: ClassApplication, Reason: reason}
}

func fence(reason string) Verdict {
	return Verdict{Health: Fence, Class: ClassHardware, Reason: reason, EndsJob: true, Drain: true}
}
