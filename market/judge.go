package market

import "strconv"

// Verdict is the result of judging evidence; it is also the exit code of `haggle verify`.
type Verdict int

// Verdicts.
const (
	VerdictAgreed  Verdict = 0 // both sides signed everything, the final receipt included
	VerdictOpen    Verdict = 1 // everything is valid, and something still waits for a signature
	VerdictInvalid Verdict = 2 // a check failed
	VerdictFraud   Verdict = 3 // one key signed two statements that exclude each other
)

// String returns the verdict in a word.
func (v Verdict) String() string {
	return [...]string{"agreed", "open", "invalid", "fraud"}[v]
}

// Check is one thing that was checked, in words, and whether it held.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
}

// Judgement is what evidence proves.
type Judgement struct {
	Verdict  Verdict
	Network  string
	Lease    LeaseID
	Terms    Terms   // with the extensions that the file holds
	Checks   []Check // in order; the last is the one that failed, if any did
	Receipts int     // that both sides signed
	Head     Head    // of the newest that both sides signed
	Exit     *Exit
	Outcome  *Outcome // the rig's word on what became of what the job left behind, if the file has one
	Guilty   Key      // who signed twice, on VerdictFraud
}

// Judge checks a file of evidence from its bytes alone: every signature, every link, every line of the bill. It stops at
// the first check that fails.
func Judge(data []byte) Judgement {
	j := &Judgement{Verdict: VerdictInvalid}
	e, err := DecodeEvidence(data)
	if !j.check("the file is whole and canonical", err) {
		return *j
	}
	j.Network = e.Network
	if !j.check("the network's name is well formed", CheckNetwork(e.Network)) || !j.terms(e) {
		return *j
	}
	return j.receipts(e)
}

// check notes a check and reports whether it held.
func (j *Judgement) check(name string, err error) bool {
	c := Check{Name: name, OK: err == nil}
	if err != nil {
		c.Detail = Explain(err).Message
	}
	j.Checks = append(j.Checks, c)
	return c.OK
}

// terms checks that offer, bid and lease are signed and fit together.
func (j *Judgement) terms(e Evidence) bool {
	offer, sealedOffer, err := OpenOffer(e.Network, e.Offer)
	if !j.check("the offer is signed by the rig", err) {
		return false
	}
	bid, sealedBid, err := OpenBid(e.Network, e.Bid)
	if !j.check("the bid is signed by the renter", err) {
		return false
	}
	terms, sealed, err := OpenLease(e.Network, e.Lease)
	if !j.check("the lease is signed by both", err) {
		return false
	}
	j.Terms, j.Lease = terms, sealed.ID()
	return j.check("the bid fits the offer", Admit(offer, sealedOffer.Hash(), bid, terms.Issued)) &&
		j.check("the lease echoes the bid", CheckGrant(terms, offer, bid, sealedBid.Hash(), terms.Issued)) &&
		j.extensions(e)
}

// extensions applies what both sides agreed to later.
func (j *Judgement) extensions(e Evidence) bool {
	var last *Extension
	for i, raw := range e.Extensions {
		x, s, err := OpenExtension(e.Network, raw, j.Terms)
		if err == nil && !s.SignedBy(RoleRig) {
			err = NewError(CodeBadSignature, "kind", string(KindExtend), "role", string(RoleRig))
		}
		name := "extension " + strconv.Itoa(i+1)
		if !j.check(name+" is signed by both", err) || !j.check(name+" follows", CheckExtension(j.Lease, j.Terms, last, x)) {
			return false
		}
		last = &x
	}
	j.Terms = j.Terms.Extended(last)
	return true
}

// receipts checks the chain of receipts and gives the verdict.
func (j *Judgement) receipts(e Evidence) Judgement {
	open := false
	for _, raw := range e.Receipts {
		r, s, err := OpenReceipt(e.Network, raw, j.Terms)
		name := "receipt " + strconv.FormatUint(uint64(r.Seq), 10)
		if !j.check(name+" is signed", err) {
			return *j
		}
		if r.Seq == j.Head.Seq && r.Seq > 0 && s.Hash() != j.Head.Hash {
			return j.fork(name, s)
		}
		if open && !j.check("receipt "+strconv.FormatUint(uint64(j.Head.Seq), 10)+" is signed by both", unsigned(j.Head.Seq)) {
			return *j
		}
		if !j.check(name+" follows and adds up", CheckReceipt(j.Lease, j.Terms, j.Head, r, Unlimited)) {
			return *j
		}
		open = !s.SignedBy(RoleRenter)
		j.Head, j.Exit = HeadOf(r, s.Hash()), r.Exit
		if !open {
			j.Receipts++
		}
	}
	for _, raw := range e.Rejects {
		r, _, err := OpenReject(e.Network, raw, j.Terms)
		if err == nil && r.Lease != j.Lease {
			err = NewError(CodeBadRecord, "kind", string(KindReject), "why", "it belongs to another lease")
		}
		if !j.check("the refusal of receipt "+strconv.FormatUint(uint64(r.Seq), 10)+" is signed", err) {
			return *j
		}
		open = true
	}
	if e.Outcome != nil {
		o, _, err := OpenOutcome(e.Network, e.Outcome, j.Terms)
		if err == nil && o.Lease != j.Lease {
			err = NewError(CodeBadRecord, "kind", string(KindOutcome), "why", "it belongs to another lease")
		}
		if !j.check("the outcome is signed by the rig", err) {
			return *j
		}
		j.Outcome = &o
	}
	if open || j.Head.Kind != ReceiptFinal {
		j.Verdict = VerdictOpen
		return *j
	}
	j.Verdict = VerdictAgreed
	return *j
}

// fork notes that two different receipts bear one number. Both are signed by the rig, or the file would have failed before.
func (j *Judgement) fork(name string, second Sealed) Judgement {
	key, err := second.Verify(RoleRig)
	if err != nil {
		return *j
	}
	j.check(name+" exists once", NewError(CodeReceiptChain, "seq", name, "why", "the rig signed two"))
	j.Verdict, j.Guilty = VerdictFraud, key
	return *j
}

// unsigned is the error for a receipt that has a successor and lacks the renter's signature: a rig drafts the next one only
// after that.
func unsigned(seq uint32) error {
	return NewError(CodeReceiptChain, "seq", strconv.FormatUint(uint64(seq), 10), "why", "the renter has not signed it")
}
