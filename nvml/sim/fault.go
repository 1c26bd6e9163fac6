package sim

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"haggle/nvml"
)

// ErrFault means that a fault is ill-formed or that the card cannot have it.
var ErrFault = errors.New("bad fault")

// The bounds of a fault.
const (
	// MaxXid is the greatest number of an Xid fault.
	MaxXid = 999
	// MaxECC is the greatest number of errors that one ECC fault adds.
	MaxECC = 1_000_000
	// MaxFor is the longest time that a fault can be given; without a time it lasts until Reset.
	MaxFor = 24 * time.Hour

	maxFaultText = 64
)

// Fault is something that goes wrong on demand.
type Fault struct {
	// Kind is xid (report the error Code; 79 also loses the card), ecc (add Code uncorrected memory errors), lost (the
	// card is gone) or hang (calls to the card do not return).
	Kind nvml.EventKind
	// Code is 1 to MaxXid for xid, 1 to MaxECC for ecc and 0 for the others.
	Code int
	// For is how long lost or hang lasts; 0 means until Reset. It is 0 for xid and ecc, which happen at once.
	For time.Duration
}

// ParseFault reads the text form of a fault: a kind, its code where it has one, and "for" with a duration where it
// lasts. Words are separated by blanks:
//
//	xid 79
//	ecc          (one error)
//	ecc 3
//	lost
//	lost for 30s
//	hang for 10s
//
// It returns ErrFault for everything else.
func ParseFault(text string) (Fault, error) {
	if len(text) > maxFaultText {
		return Fault{}, fmt.Errorf("%w: longer than %d bytes", ErrFault, maxFaultText)
	}
	words := strings.Fields(text)
	if len(words) == 0 {
		return Fault{}, fmt.Errorf("%w: empty, want xid, ecc, lost or hang", ErrFault)
	}
	f := Fault{Kind: nvml.EventKind(words[0])}
	words = words[1:]
	if f.Kind == nvml.EventECC && len(words) == 0 {
		f.Code = 1
	}
	if len(words) > 0 && words[0] != "for" {
		n, err := strconv.ParseUint(words[0], 10, 31)
		if err != nil || n == 0 {
			return Fault{}, fmt.Errorf("%w: %q is no code", ErrFault, words[0])
		}
		f.Code, words = int(n), words[1:]
	}
	switch {
	case len(words) == 0:
	case len(words) == 2 && words[0] == "for":
		d, err := time.ParseDuration(words[1])
		if err != nil || d <= 0 {
			return Fault{}, fmt.Errorf("%w: %q is no duration", ErrFault, words[1])
		}
		f.For = d
	default:
		return Fault{}, fmt.Errorf("%w: %q does not end after the code or with \"for\" and a duration", ErrFault, text)
	}
	if err := f.Validate(); err != nil {
		return Fault{}, err
	}
	return f, nil
}

// String returns the text form, which ParseFault reads back.
func (f Fault) String() string {
	s := string(f.Kind)
	if f.Code != 0 {
		s += " " + strconv.Itoa(f.Code)
	}
	if f.For != 0 {
		s += " for " + f.For.String()
	}
	return s
}

// Validate returns ErrFault when the fault's fields do not fit together.
func (f Fault) Validate() error {
	switch f.Kind {
	case nvml.EventXid:
		return f.instant(MaxXid)
	case nvml.EventECC:
		return f.instant(MaxECC)
	case nvml.EventLost, nvml.EventHang:
		if f.Code != 0 {
			return fmt.Errorf("%w: %s takes no code", ErrFault, f.Kind)
		}
		if f.For < 0 || f.For > MaxFor {
			return fmt.Errorf("%w: lasts %s, want up to %s", ErrFault, f.For, MaxFor)
		}
		return nil
	default:
		return fmt.Errorf("%w: unknown kind %.16q, want xid, ecc, lost or hang", ErrFault, f.Kind)
	}
}

// instant checks a fault that has a code and no duration.
func (f Fault) instant(most int) error {
	if f.Code < 1 || f.Code > most {
		return fmt.Errorf("%w: %s wants a code from 1 to %d", ErrFault, f.Kind, most)
	}
	if f.For != 0 {
		return fmt.Errorf("%w: %s happens at once and takes no duration", ErrFault, f.Kind)
	}
	return nil
}
