package market

import "strconv"

// Rental is what a renter knows of its lease when it answers a receipt. It is a value.
type Rental struct {
	Lease     LeaseID
	Terms     Terms      // as they were signed
	Extension *Extension // the newest that both signed
	Head      Head       // of the newest receipt that both signed
	Paid      Micro      // by the newest payment that the rig signed
	Sent      Micro      // what this side has sent, in all
	Disputed  bool       // a receipt was refused
	Keeps     bool       // the renter ordered its disk to be kept
	Theirs    uint32     // the newest receipt with both signatures that the rig said it has, on this connection
}

// AnswerKind says what a renter does with a receipt.
type AnswerKind string

// Answers to a receipt. A shell stores first and sends then.
const (
	AnswerSign   AnswerKind = "sign"   // sign it, store it with Head, send it
	AnswerKeep   AnswerKind = "keep"   // it came with both signatures, which this side had lost: store it with Head
	AnswerAgain  AnswerKind = "again"  // send the one of this number that is stored
	AnswerKnown  AnswerKind = "known"  // nothing: both sides have it
	AnswerRefuse AnswerKind = "refuse" // sign Reject, store it with the dispute, send it; from then on nothing is signed
	AnswerStored AnswerKind = "stored" // send the refusal that is stored
	AnswerBroken AnswerKind = "broken" // end the conversation for Why: signing anything would be wrong
)

// Answer is a renter's decision about a receipt.
type Answer struct {
	Kind   AnswerKind
	Head   Head    // of the chain with it, where Kind is AnswerSign or AnswerKeep
	Reject *Reject // where Kind is AnswerRefuse
	Why    error   // where Kind is AnswerRefuse or AnswerBroken
}

// Answer decides about a receipt whose signatures were verified. hash names it; signed says that the renter's side has signed it
// before; stored is the hash of the receipt of the same number that is kept, nil where there is none. A receipt that follows and
// that this side can believe is signed; one that was signed before gets the same answer again; any other is refused, once: after
// that, nothing of the lease is signed any more. What this side has signed is never refused.
func (r Rental) Answer(receipt Receipt, hash Hash, signed bool, stored *Hash, seen Seen) Answer {
	switch {
	case r.Disputed:
		return Answer{Kind: AnswerStored}
	case receipt.Lease == r.Lease && receipt.Seq > 0 && receipt.Seq <= r.Head.Seq:
		return r.again(receipt, hash, signed, stored, seen)
	}
	believed := seen
	if signed {
		believed = Seen{RanMs: Unlimited, SinceMs: Unlimited} // this side's store was lost
	}
	if err := r.check(receipt, signed, believed); err != nil {
		if signed {
			return Answer{Kind: AnswerBroken, Why: err}
		}
		return r.refuse(receipt, hash, seen, err)
	}
	kind := AnswerSign
	if signed {
		kind = AnswerKeep
	}
	return Answer{Kind: kind, Head: HeadOf(receipt, hash)}
}

// check reports whether a receipt follows, adds up, and can be believed.
func (r Rental) check(receipt Receipt, signed bool, seen Seen) error {
	if err := CheckReceipt(r.Lease, r.Terms.Extended(r.Extension), r.Head, receipt, seen.RanMs); err != nil {
		return err
	}
	if signed {
		return nil
	}
	if err := CheckCeiling(r.Terms.Extended(r.Extension), receipt, max(r.Paid, r.Sent)); err != nil {
		return err
	}
	kept := int64(0)
	if r.Keeps || r.Head.KeptMs > 0 || r.Terms.Pay != "" { // a lease that ran out of what was paid is paused by the rig
		if seen.SinceMs == Unlimited {
			return nil
		}
		kept = max(0, seen.SinceMs-receipt.BilledMs)
	}
	return CheckKept(receipt, kept)
}

// again answers a receipt of a number that was signed before.
func (r Rental) again(receipt Receipt, hash Hash, signed bool, stored *Hash, seen Seen) Answer {
	seq := strconv.FormatUint(uint64(receipt.Seq), 10)
	switch {
	case stored == nil:
		return Answer{Kind: AnswerBroken, Why: NewError(CodeReceiptChain, "seq", seq, "why", "the one that was signed is not in the store")}
	case *stored == hash && signed:
		return Answer{Kind: AnswerKnown}
	case *stored == hash, r.Theirs < receipt.Seq:
		// A rig whose store is older than what both signed has drafted no fork: it gets the one that was agreed.
		return Answer{Kind: AnswerAgain}
	}
	return r.refuse(receipt, hash, seen, NewError(CodeReceiptChain, "seq", seq, "why", "another one of this number is signed"))
}

func (r Rental) refuse(receipt Receipt, hash Hash, seen Seen, why error) Answer {
	return Answer{Kind: AnswerRefuse, Why: why, Reject: &Reject{
		Lease: r.Lease, Seq: receipt.Seq, Receipt: hash, Code: CodeOf(why), ElapsedMs: max(0, seen.RanMs), Total: r.fair(receipt, seen),
	}}
}

// fair is the total that this side agrees to: what was signed, and the rest by its own count of the time.
func (r Rental) fair(receipt Receipt, seen Seen) Micro {
	t := r.Terms.Extended(r.Extension)
	ms := min(receipt.BilledMs, t.DurationMs)
	if seen.RanMs != Unlimited {
		ms = min(ms, seen.RanMs)
	}
	ms = max(r.Head.BilledMs, ms)
	bill, err := t.Prices.Bill(t.UsedBy(ms, r.Head.KeptMs, r.Head.Usage.InBytes, r.Head.Usage.OutBytes))
	if err != nil {
		return r.Head.Total
	}
	return max(r.Head.Total, min(bill.Total, t.Ceiling(max(r.Paid, r.Sent))))
}
