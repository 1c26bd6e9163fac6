package market

import (
	"crypto/ed25519"
	"strconv"
)

// ReceiptKind says whether more receipts follow.
type ReceiptKind string

// Kinds of receipts.
const (
	ReceiptInterval ReceiptKind = "interval"
	ReceiptFinal    ReceiptKind = "final" // closes the chain
)

// Receipt is a rig's cumulative statement of a lease's use so far. The newest that both sides signed is the whole debt;
// older ones are evidence only. Times are milliseconds.
type Receipt struct {
	Lease      LeaseID     `cbor:"1,keyasint"`
	Seq        uint32      `cbor:"2,keyasint"` // 1, 2, 3, …
	Prev       Hash        `cbor:"3,keyasint"` // of the body before it; zero for the first
	Kind       ReceiptKind `cbor:"4,keyasint"`
	BilledMs   int64       `cbor:"5,keyasint"` // observed running time since the job's start
	UnbilledMs int64       `cbor:"6,keyasint"` // time in which a job should run that is not billed: faults, the rig's downtime
	Usage      Usage       `cbor:"7,keyasint"` // what BilledMs and traffic come to
	Bill       Bill        `cbor:"8,keyasint"` // Usage priced by the terms
	Slots      []SlotUse   `cbor:"9,keyasint,omitempty"`
	Exit       *Exit       `cbor:"10,keyasint,omitempty"` // on the final receipt
	WallMs     int64       `cbor:"11,keyasint"`           // the rig's wall clock; information, no rule reads it
	KeptMs     int64       `cbor:"12,keyasint,omitempty"` // for which the disk was kept at its price while no job ran
	Gaps       []Unbilled  `cbor:"13,keyasint,omitempty"` // what is not billed, by reason, ascending; evidence, not priced
	Paid       Micro       `cbor:"14,keyasint,omitempty"` // payments that the rig had signed then; evidence
}

// SlotUse is evidence about one slot, cumulative; it is not priced. An absent number is unknown.
type SlotUse struct {
	Index          uint8  `cbor:"1,keyasint" json:"index"`
	UtilPermilleMs *int64 `cbor:"2,keyasint,omitempty" json:"util_permille_ms"` // utilisation in permille, integrated over milliseconds
	EnergyMJ       *int64 `cbor:"3,keyasint,omitempty" json:"energy_mj"`        // millijoules
	PeakMemory     *int64 `cbor:"4,keyasint,omitempty" json:"peak_memory_bytes"`
	ECCUncorrected *int64 `cbor:"5,keyasint,omitempty" json:"ecc_uncorrected"`
	LastXid        *int64 `cbor:"6,keyasint,omitempty" json:"last_xid"`
}

// Exit is how a job ended.
type Exit struct {
	Reason Reason `cbor:"1,keyasint" json:"reason"`
	Code   int64  `cbor:"2,keyasint" json:"code"` // the job's own exit code, or 128 plus the signal that ended it
}

// Head is the end of a receipt chain: what must be known to go on with it.
type Head struct {
	Seq      uint32      `cbor:"1,keyasint" json:"seq"` // 0 is a chain without receipts
	Hash     Hash        `cbor:"2,keyasint" json:"hash"`
	Kind     ReceiptKind `cbor:"3,keyasint,omitempty" json:"kind,omitempty"`
	BilledMs int64       `cbor:"4,keyasint" json:"billed_ms"`
	Unbilled int64       `cbor:"5,keyasint" json:"unbilled_ms"`
	Usage    Usage       `cbor:"6,keyasint" json:"usage"`
	Total    Micro       `cbor:"7,keyasint" json:"total"`
	KeptMs   int64       `cbor:"8,keyasint,omitempty" json:"kept_ms,omitempty"`
	Gaps     []Unbilled  `cbor:"9,keyasint,omitempty" json:"gaps,omitempty"`
}

// HeadOf returns the head that a receipt makes of a chain.
func HeadOf(r Receipt, hash Hash) Head {
	return Head{
		Seq: r.Seq, Hash: hash, Kind: r.Kind, BilledMs: r.BilledMs, Unbilled: r.UnbilledMs, Usage: r.Usage, Total: r.Bill.Total,
		KeptMs: r.KeptMs, Gaps: r.Gaps,
	}
}

// SealReceipt signs a receipt as its rig.
func SealReceipt(network string, rig ed25519.PrivateKey, r Receipt) Sealed {
	return seal(network, KindReceipt, RoleRig, rig, r)
}

// Body returns the bytes of the receipt that are signed and hashed.
func (r Receipt) Body() []byte { return encode(r) }

// OpenReceipt verifies the rig's signature under a receipt of the terms, and the renter's or a deputy's where there is one, and
// decodes it. It does not check the receipt against the chain: see CheckReceipt.
func OpenReceipt(network string, raw []byte, t Terms) (Receipt, Sealed, error) {
	var r Receipt
	s, err := DecodeSealed(raw)
	if err != nil {
		return r, s, err
	}
	signer, err := s.open(network, KindReceipt, RoleRig, &r, decodeStrict)
	if err == nil && signer != t.Rig {
		err = NewError(CodeBadSignature, "kind", string(KindReceipt), "role", string(RoleRig))
	}
	if err != nil || !s.SignedBy(RoleRenter) {
		return r, s, err
	}
	signer, err = s.Verify(RoleRenter)
	if err == nil && !t.SignsAsRenter(signer) {
		err = NewError(CodeBadSignature, "kind", string(KindReceipt), "role", string(RoleRenter))
	}
	return r, s, err
}

// Tolerances of a renter's own count of time: both sides' clocks may differ in speed, and the start is seen late.
const (
	timeSlackMs     = int64(2000)
	timeSlackPerMil = int64(1)
)

// CheckReceipt reports whether a receipt follows a chain's head under the terms of a lease: the link, the arithmetic and
// the budget. elapsedMs is the longest time for which the job can have run as the renter saw it, or Unlimited where
// nobody watched (evidence on disk). The error names the first check that failed.
func CheckReceipt(lease LeaseID, t Terms, head Head, r Receipt, elapsedMs int64) error {
	seq := strconv.FormatUint(uint64(r.Seq), 10)
	chain := func(why string) error { return NewError(CodeReceiptChain, "seq", seq, "why", why) }
	switch {
	case r.Lease != lease:
		return chain("it belongs to another lease")
	case head.Kind == ReceiptFinal:
		return chain("the chain is closed")
	case r.Seq != head.Seq+1:
		return chain("its number is not the next")
	case r.Prev != head.Hash:
		return chain("it links to other bytes")
	case r.Kind != ReceiptInterval && r.Kind != ReceiptFinal:
		return chain("its kind is unknown")
	case (r.Kind == ReceiptFinal) != (r.Exit != nil):
		return chain("an exit belongs to the final receipt only")
	case r.BilledMs < head.BilledMs || r.UnbilledMs < head.Unbilled || r.Usage.InBytes < head.Usage.InBytes || r.Usage.OutBytes < head.Usage.OutBytes || r.KeptMs < head.KeptMs:
		return chain("a cumulative number falls")
	case r.Paid < 0 || r.Paid > maxMoney:
		return chain("what was paid is out of range")
	case r.BilledMs > t.DurationMs:
		return NewError(CodeReceiptTime, "seq", seq, "billed", span(r.BilledMs), "seen", span(t.DurationMs))
	}
	if why := checkGaps(head.Gaps, r.Gaps); why != "" {
		return chain(why)
	}
	if err := checkBill(t, r, seq); err != nil {
		return err
	}
	if elapsedMs != Unlimited && r.BilledMs > elapsedMs+elapsedMs*timeSlackPerMil/1000+timeSlackMs {
		return NewError(CodeReceiptTime, "seq", seq, "billed", span(r.BilledMs), "seen", span(elapsedMs))
	}
	return nil
}

func checkBill(t Terms, r Receipt, seq string) error {
	if r.Usage.InBytes < 0 || r.Usage.OutBytes < 0 || r.BilledMs < 0 || r.UnbilledMs < 0 || len(r.Slots) > MaxSlots ||
		r.KeptMs < 0 || r.KeptMs > maxLeaseTime.Milliseconds() {
		return NewError(CodeReceiptChain, "seq", seq, "why", "a number is out of range")
	}
	usage := t.UsedBy(r.BilledMs, r.KeptMs, r.Usage.InBytes, r.Usage.OutBytes)
	bill, err := t.Prices.Bill(usage)
	switch {
	case err != nil:
		return err
	case r.Usage != usage:
		return NewError(CodeReceiptMath, "seq", seq, "said", r.Usage.words(), "right", usage.words())
	case r.Bill != bill:
		return NewError(CodeReceiptMath, "seq", seq, "said", r.Bill.Total.String(), "right", bill.Total.String())
	case bill.Total > t.Budget:
		return NewError(CodeReceiptBudget, "seq", seq, "budget", t.Budget.String())
	}
	return nil
}

// words says what a running time and a kept disk come to.
func (u Usage) words() string {
	return strconv.FormatInt(u.SlotMs, 10) + " slot-ms and " + strconv.FormatInt(u.DiskMBMs, 10) + " MB-ms of disk"
}

// CheckKept reports whether a renter can believe the time for which a receipt says that only the disk was kept. seenMs is the
// longest time for which the lease can have been paused as the renter saw it, over all pauses. It stands beside CheckReceipt.
func CheckKept(r Receipt, seenMs int64) error {
	if r.KeptMs > seenMs+seenMs*timeSlackPerMil/1000+timeSlackMs {
		return NewError(CodeReceiptTime, "seq", strconv.FormatUint(uint64(r.Seq), 10), "billed", span(r.KeptMs)+" of disk", "seen", span(seenMs))
	}
	return nil
}

// CheckCeiling reports whether a renter that knows of so much money that it sent, or that the rig has signed for, can owe what a
// receipt says. It stands beside CheckReceipt.
func CheckCeiling(t Terms, r Receipt, paid Micro) error {
	if most := t.Ceiling(paid); r.Bill.Total > most {
		return NewError(CodeReceiptPaid, "seq", strconv.FormatUint(uint64(r.Seq), 10), "said", r.Bill.Total.String(), "most", most.String())
	}
	return nil
}

// Reject is a renter's signed refusal of a receipt, with the values that it holds right.
type Reject struct {
	Lease     LeaseID `cbor:"1,keyasint"`
	Seq       uint32  `cbor:"2,keyasint"`
	Receipt   Hash    `cbor:"3,keyasint"`
	Code      Code    `cbor:"4,keyasint"`
	ElapsedMs int64   `cbor:"5,keyasint"` // running time as the renter saw it
	Total     Micro   `cbor:"6,keyasint"` // what the renter agrees to
}

// SealReject signs a reject as its renter.
func SealReject(network string, renter ed25519.PrivateKey, r Reject) Sealed {
	return seal(network, KindReject, RoleRenter, renter, r)
}

// OpenReject verifies and decodes a sealed reject of the terms' renter, or of one of its deputies.
func OpenReject(network string, raw []byte, t Terms) (Reject, Sealed, error) {
	var r Reject
	s, err := DecodeSealed(raw)
	if err != nil {
		return r, s, err
	}
	signer, err := s.open(network, KindReject, RoleRenter, &r, decodeStrict)
	if err == nil && !t.SignsAsRenter(signer) {
		err = NewError(CodeBadSignature, "kind", string(KindReject), "role", string(RoleRenter))
	}
	return r, s, err
}
