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

// Refusal is a renter's refusal of a receipt.
type Refusal struct {
	Reject
	// Wrong is what is wrong with the receipt under the terms, in words; "" where nothing is, or the file does not hold it.
	Wrong string
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
	Bill     Bill    // what the head comes to, by line
	Gaps     []Unbilled
	Exit     *Exit
	Claim    Micro    // total of the rig's newest receipt, whether the renter signed it or not
	Outcome  *Outcome // the rig's newest word on what became of what the job left behind, if the file has one
	Accepted bool     // the renter's side signed that outcome

	Payments  []Payment // that the rig signed, by number
	Paid      Micro
	Due       Micro // of what both signed, or of what the guarantor decided: not paid
	Balance   Micro // paid and not used
	Notices   []Notice
	Refusals  []Refusal
	Disputes  []Dispute
	Guarantee *Guarantee
	Decided   *Dispute // the guarantor's newest: its total is the verdict
	Redacted  []string // what the file leaves out

	Frauds []Fraud
	Guilty Key     // of the first fraud, on VerdictFraud
	Proof  [2]Hash // of the first fraud: the two records
}

// judge is a judgement while it is made.
type judge struct {
	Judgement
	e       Evidence
	w       *witness
	failed  *Check // the first check that failed; after it only frauds are looked for
	open    bool   // something waits for a signature
	chain   Head   // of the newest receipt, whether both signed it or not
	refused map[Hash]bool
	beside  map[Hash]Receipt // that do not belong to the chain
}

// Judge checks a file of evidence from its bytes alone: every signature, every link, every line of the bill. The first check
// that fails decides, unless a key signed two statements that exclude each other: that is told first.
func Judge(data []byte) Judgement {
	j := &judge{Judgement: Judgement{Verdict: VerdictInvalid}, refused: map[Hash]bool{}, beside: map[Hash]Receipt{}}
	e, err := DecodeEvidence(data)
	if j.check("the file is whole and canonical", err) {
		j.e, j.Network, j.Redacted = e, e.Network, e.Redacted
		if j.check("the network's name is well formed", CheckNetwork(e.Network)) && j.terms() {
			j.records()
		}
	}
	return j.verdict()
}

// check notes a check and reports whether it held.
func (j *judge) check(name string, err error) bool {
	if err == nil {
		if j.failed == nil {
			j.Checks = append(j.Checks, Check{Name: name, OK: true})
		}
		return true
	}
	if j.failed == nil {
		j.failed = &Check{Name: name, Detail: Explain(err).Message}
	}
	return false
}

// terms checks that offer, bid and lease are signed and fit together.
func (j *judge) terms() bool {
	e := j.e
	var offer Offer
	var bid Bid
	var sealedOffer, sealedBid Sealed
	var err error
	noOffer, noBid := e.LeavesOut(RedactedOffer), e.LeavesOut(RedactedBid)
	if noOffer && len(e.Offer) > 0 || noBid && len(e.Bid) > 0 {
		return j.check("nothing is there that was left out", named(false, "evidence", "it holds what it says that it leaves out"))
	}
	if !noOffer {
		if offer, sealedOffer, err = OpenOffer(e.Network, e.Offer); !j.check("the offer is signed by the rig", err) {
			return false
		}
	}
	if !noBid {
		if bid, sealedBid, err = OpenBid(e.Network, e.Bid); !j.check("the bid is signed by the renter", err) {
			return false
		}
	}
	terms, sealed, err := OpenLease(e.Network, e.Lease)
	if !j.check("the lease is signed by both", err) {
		return false
	}
	j.Terms, j.Lease, j.w = terms, sealed.ID(), newWitness(terms.Rig)
	if noOffer || noBid { // what both signed in the lease stands by itself, and names what is left out
		return (noOffer || j.check("the lease is for the offer", named(sealedOffer.Hash() == terms.Offer, KindLease, "it is for another offer"))) &&
			(noBid || j.check("the lease is for the bid", named(sealedBid.Hash() == terms.Bid, KindLease, "it is for another bid")))
	}
	return j.check("the bid fits the offer", Admit(offer, sealedOffer.Hash(), bid, terms.Issued)) &&
		j.check("the lease echoes the bid", CheckGrant(terms, offer, bid, sealedBid.Hash(), terms.Issued))
}

// named is an error where a record is not what it must be.
func named(ok bool, kind Kind, why string) error {
	if ok {
		return nil
	}
	return NewError(CodeBadRecord, "kind", string(kind), "why", why)
}

// records checks everything that followed the lease. Each part is looked at, even after a check has failed.
func (j *judge) records() {
	j.extensions()
	j.rejects()
	for _, raw := range j.papers(KindReceipt) {
		r, s, err := OpenReceipt(j.e.Network, raw, j.Terms)
		if j.check("a receipt beside the chain is signed", belongs(err, KindReceipt, r.Lease == j.Lease)) {
			j.beside[s.Hash()] = r
			j.w.receipt(r, s)
		}
	}
	for _, raw := range j.e.Receipts {
		j.receipt(raw)
	}
	j.outcomes()
	j.money()
	j.known()
}

// extensions applies what both sides agreed to later.
func (j *judge) extensions() {
	var last *Extension
	for i, raw := range j.e.Extensions {
		x, s, err := OpenExtension(j.e.Network, raw, j.Terms)
		if err == nil && !s.SignedBy(RoleRig) {
			err = NewError(CodeBadSignature, "kind", string(KindExtend), "role", string(RoleRig))
		}
		name := "extension " + strconv.Itoa(i+1)
		if !j.check(name+" is signed by both", err) {
			continue
		}
		if x.Lease == j.Lease {
			j.w.extension(x, s)
		}
		if j.check(name+" follows", CheckExtension(j.Lease, j.Terms, last, x)) {
			last = &x
		}
	}
	for _, raw := range j.papers(KindExtend) {
		x, s, err := OpenExtension(j.e.Network, raw, j.Terms)
		if j.check("an extension beside the others is signed", belongs(err, KindExtend, x.Lease == j.Lease)) {
			j.w.extension(x, s)
		}
	}
	j.Terms = j.Terms.Extended(last)
}

// belongs is the error of a record that cannot be opened, or is of another lease.
func belongs(err error, kind Kind, ok bool) error {
	if err != nil {
		return err
	}
	return named(ok, kind, "it belongs to another lease")
}

// verdict ends a judgement.
func (j *judge) verdict() Judgement {
	switch {
	case j.w != nil && len(j.w.frauds) > 0:
		j.Verdict, j.Frauds = VerdictFraud, j.w.frauds
		j.Guilty, j.Proof = j.Frauds[0].Guilty, j.Frauds[0].Proof
		f := j.Frauds[0]
		name := string(f.Kind)
		if f.Seq > 0 {
			name += " " + strconv.FormatUint(uint64(f.Seq), 10)
		}
		j.Checks = append(j.Checks, Check{Name: name + " exists once", Detail: f.Why})
	case j.failed != nil:
		j.Verdict, j.Checks = VerdictInvalid, append(j.Checks, *j.failed)
	case j.open || j.Head.Kind != ReceiptFinal:
		j.Verdict = VerdictOpen
	default:
		j.Verdict = VerdictAgreed
	}
	return j.Judgement
}
