package market

import (
	"crypto/ed25519"
	"fmt"
	"strconv"
	"strings"
)

// maxWipeText bounds the reason for which a card's memory was not overwritten, in bytes.
const maxWipeText = 200

// CardWipe is what became of one leased card's memory.
type CardWipe struct {
	Index uint8  `cbor:"1,keyasint" json:"slot"`
	Bytes int64  `cbor:"2,keyasint" json:"scrubbed_bytes"`             // that were overwritten; 0 where none were
	Why   string `cbor:"3,keyasint,omitempty" json:"reason,omitempty"` // why they were not, at most 200 bytes
}

// NotWiped says that a card's memory was not overwritten, and why. The reason is cut and made fit to be read by people.
func NotWiped(index uint8, why string) CardWipe {
	why = Printable(why)
	if len(why) > maxWipeText {
		why = strings.ToValidUTF8(why[:maxWipeText], "") // whole characters only
	}
	return CardWipe{Index: index, Why: why}
}

// Outcome is a rig's statement of what became of what a job left behind. The newest is the whole statement. It proves what the
// rig says, not what it did.
type Outcome struct {
	Lease  LeaseID    `cbor:"1,keyasint"`
	At     int64      `cbor:"2,keyasint"`           // wall time of this statement
	DiskAt int64      `cbor:"3,keyasint,omitempty"` // wall time at which disk, log and secrets were destroyed; 0 while they are kept
	Cards  []CardWipe `cbor:"4,keyasint"`           // none where the job never got its cards
	// Result is what became of the lease; "" while it is paused.
	Result Result `cbor:"5,keyasint,omitempty"`
	// Chain is the end of the rig's chain of accepted outcomes when it signed this one.
	Chain *ChainEnd `cbor:"6,keyasint,omitempty"`
}

// Result says how a lease ended, in a word.
type Result string

// Results.
const (
	ResultCompleted Result = "completed" // by itself, or at a limit that the terms set
	ResultRenter    Result = "renter"    // the renter ended it, or did not answer
	ResultRig       Result = "rig"       // the rig's owner ended it
	ResultFault     Result = "fault"     // something of the rig failed
	ResultUnpaid    Result = "unpaid"    // the money did not come
	ResultDisputed  Result = "disputed"  // the sides do not agree on the bill
	ResultVoid      Result = "void"      // nothing was ever billed
)

// ResultOf returns what a lease's end comes to: both sides call it, so that they agree.
func ResultOf(reason Reason, billedMs int64, disputed bool) Result {
	switch {
	case disputed || reason == ReasonDisputed:
		return ResultDisputed
	case billedMs == 0:
		return ResultVoid
	}
	switch reason {
	case ReasonRenter, ReasonUnsigned, ReasonUnattended:
		return ResultRenter
	case ReasonRig, ReasonTakeback:
		return ResultRig
	case ReasonFault, ReasonLost, ReasonPrepare, ReasonStart:
		return ResultFault
	case ReasonUnpaid, ReasonCredit:
		return ResultUnpaid
	default:
		return ResultCompleted
	}
}

// Outcome returns the newest statement that there is to make; false before there is one, and for a grant that only the rig
// signed.
func (l Lease) Outcome() (Outcome, bool) {
	o := Outcome{Lease: l.ID, At: max(l.WipedAt, l.GoneAt), DiskAt: l.GoneAt, Cards: l.Cards}
	if l.Job == JobEnded {
		o.Result = ResultOf(l.Reason, l.Meter.BilledMs, l.Debt == DebtDisputed)
	}
	return o, o.At > 0 && l.Reason != ReasonHoldExpired
}

func (l Lease) scrubbed(now Instant, e Scrubbed) (Lease, []Action, error) {
	switch {
	case l.Job != JobEnded && l.Job != JobPaused:
		return l, nil, l.misfit(e)
	case !l.Wiping:
		return l, nil, nil // a late echo
	}
	l.Wiping, l.Cards, l.WipedAt = false, e.Cards, now.Wall
	return l.attest()
}

func (l Lease) removed(now Instant) (Lease, []Action, error) {
	if l.Job != JobEnded || l.Gone {
		return l, nil, nil
	}
	l.Gone, l.GoneAt = true, now.Wall
	return l.attest()
}

func (l Lease) attest() (Lease, []Action, error) {
	o, said := l.Outcome()
	if !said {
		return l, nil, nil
	}
	return l, []Action{Attest{Outcome: o}}, nil
}

// String says it in a line.
func (o Outcome) String() string {
	disk := "disk kept"
	if o.DiskAt > 0 {
		disk = "disk destroyed"
	}
	for _, c := range o.Cards {
		disk += fmt.Sprintf(", card %d: %d bytes overwritten", c.Index, c.Bytes)
		if c.Why != "" {
			disk += " (" + Printable(c.Why) + ")"
		}
	}
	return disk
}

// Follows reports whether o says all that old said, and is not older: a rig cannot take a statement back. What was paused may
// end, and what has ended may be disputed later.
func (o Outcome) Follows(old Outcome) bool {
	result := old.Result == "" || o.Result == old.Result || o.Result == ResultDisputed
	return o.Lease == old.Lease && o.At >= old.At && (old.DiskAt == 0 || o.DiskAt == old.DiskAt) && len(o.Cards) >= len(old.Cards) && result
}

// AcceptOutcome adds the renter's signature, or a deputy's, to an outcome: it agrees with the result. The caller has opened it.
func AcceptOutcome(s Sealed, renter ed25519.PrivateKey) Sealed { return s.Sign(RoleRenter, renter) }

// After returns the end of a rig's chain of accepted outcomes after one more: the hash is that of the end before and of the
// outcome. A lease counts once. Whoever is shown all hashes of a chain can tell whether its own are among them: see Chained.
func (c ChainEnd) After(outcome Hash) ChainEnd {
	return ChainEnd{Count: c.Count + 1, Hash: HashOf(append(c.Hash[:], outcome[:]...))}
}

// Chained returns the end of a chain that holds these outcomes in this order.
func Chained(outcomes []Hash) ChainEnd {
	var end ChainEnd
	for _, h := range outcomes {
		end = end.After(h)
	}
	return end
}

// SealOutcome signs an outcome as its rig.
func SealOutcome(network string, rig ed25519.PrivateKey, o Outcome) Sealed {
	return seal(network, KindOutcome, RoleRig, rig, o)
}

// OpenOutcome verifies the rig's signature under an outcome, and the renter's where there is one (see Sealed.SignedBy): its word
// that it accepts the result. It decodes and validates it.
func OpenOutcome(network string, raw []byte, t Terms) (Outcome, Sealed, error) {
	var o Outcome
	s, err := DecodeSealed(raw)
	if err != nil {
		return o, s, err
	}
	signer, err := s.open(network, KindOutcome, RoleRig, &o, decodeStrict)
	switch {
	case err != nil:
		return o, s, err
	case signer != t.Rig:
		return o, s, NewError(CodeBadSignature, "kind", string(KindOutcome), "role", string(RoleRig))
	case s.SignedBy(RoleRenter):
		signer, err = s.Verify(RoleRenter)
		if err == nil && !t.SignsAsRenter(signer) {
			err = NewError(CodeBadSignature, "kind", string(KindOutcome), "role", string(RoleRenter))
		}
		if err != nil {
			return o, s, err
		}
	}
	return o, s, o.validate()
}

func (o Outcome) validate() error {
	bad := func(why string) error { return NewError(CodeBadRecord, "kind", string(KindOutcome), "why", why) }
	switch o.Result {
	case "", ResultCompleted, ResultRenter, ResultRig, ResultFault, ResultUnpaid, ResultDisputed, ResultVoid:
	default:
		return bad("its result is unknown")
	}
	if o.Chain != nil && (o.Chain.Count < 0 || (o.Chain.Count == 0) != o.Chain.Hash.IsZero()) {
		return bad("its chain has no end")
	}
	if o.At <= 0 || o.DiskAt < 0 || len(o.Cards) > MaxSlots {
		return bad("a time or the number of its cards is out of range")
	}
	for _, c := range o.Cards {
		if c.Bytes < 0 || len(c.Why) > maxWipeText {
			return bad("what it says of card " + strconv.Itoa(int(c.Index)) + " is out of bounds")
		}
	}
	return nil
}
