package market

import (
	"cmp"
	"slices"
	"strconv"
)

// maxOutcomes bounds the outcomes of one file.
const maxOutcomes = 16

// papers returns the papers of a kind.
func (j *judge) papers(kind Kind) [][]byte {
	var list [][]byte
	for _, p := range j.e.Papers {
		if p.Kind == kind {
			list = append(list, p.Sealed)
		}
	}
	return list
}

// known reports papers that do not belong into a file of evidence.
func (j *judge) known() {
	kinds := []Kind{KindReceipt, KindReject, KindExtend, KindOutcome, KindPayment, KindNotice, KindGuarantee, KindDispute}
	for _, p := range j.e.Papers {
		if !slices.Contains(kinds, p.Kind) {
			j.check("every paper is of a known kind", NewError(CodeBadRecord, "kind", string(p.Kind), "why", "it does not belong here"))
		}
	}
}

// receipt checks the next receipt of the chain.
func (j *judge) receipt(raw []byte) {
	r, s, err := OpenReceipt(j.e.Network, raw, j.Terms)
	name := "receipt " + strconv.FormatUint(uint64(r.Seq), 10)
	if !j.check(name+" is signed", belongs(err, KindReceipt, r.Lease == j.Lease)) || !j.w.receipt(r, s) {
		return
	}
	signed := s.SignedBy(RoleRenter)
	j.Claim = max(j.Claim, r.Bill.Total)
	if !signed && j.refused[s.Hash()] {
		j.beside[s.Hash()] = r // it waits for nobody's signature, and may be wrong
		return
	}
	if j.Head.Seq != j.chain.Seq && !j.check("receipt "+strconv.FormatUint(uint64(j.chain.Seq), 10)+" is signed by both", unsigned(j.chain.Seq)) {
		return
	}
	head := j.chain
	if j.e.LeavesOut(RedactedReceipts) && r.Seq > head.Seq+1 && head.Kind != ReceiptFinal {
		head.Seq, head.Hash = r.Seq-1, r.Prev // those between are left out: the numbers are cumulative
	}
	if !j.check(name+" follows and adds up", CheckReceipt(j.Lease, j.Terms, head, r, Unlimited)) {
		return
	}
	j.chain = HeadOf(r, s.Hash())
	if !signed {
		j.open = true
		return
	}
	j.open = false
	j.Head, j.Bill, j.Gaps, j.Exit = j.chain, r.Bill, r.Gaps, r.Exit
	j.Receipts++
}

// unsigned is the error for a receipt that has a successor and lacks the renter's signature: a rig drafts the next one only
// after that.
func unsigned(seq uint32) error {
	return NewError(CodeReceiptChain, "seq", strconv.FormatUint(uint64(seq), 10), "why", "the renter has not signed it")
}

// rejects checks what the renter refused.
func (j *judge) rejects() {
	for _, raw := range slices.Concat(j.e.Rejects, j.papers(KindReject)) {
		r, s, err := OpenReject(j.e.Network, raw, j.Terms)
		name := "the refusal of receipt " + strconv.FormatUint(uint64(r.Seq), 10) + " is signed"
		if !j.check(name, belongs(err, KindReject, r.Lease == j.Lease)) {
			continue
		}
		if signer, ok := s.signer(RoleRenter); ok {
			j.w.reject(r, signer.Key)
		}
		j.refused[r.Receipt] = true
		j.Refusals = append(j.Refusals, Refusal{Reject: r})
	}
}

// outcomes finds the rig's newest word, and whether the renter's side accepted it.
func (j *judge) outcomes() {
	list := j.papers(KindOutcome)
	if j.e.Outcome != nil {
		list = append([][]byte{j.e.Outcome}, list...)
	}
	if len(list) > maxOutcomes {
		j.check("the outcomes can be counted", named(false, KindOutcome, "there are too many"))
		return
	}
	for _, raw := range list {
		o, s, err := OpenOutcome(j.e.Network, raw, j.Terms)
		if !j.check("the outcome is signed by the rig", belongs(err, KindOutcome, o.Lease == j.Lease)) {
			continue
		}
		j.w.outcome(o, s)
		if j.Outcome != nil && !o.Follows(*j.Outcome) {
			continue
		}
		again := j.Outcome != nil && j.Outcome.Result == o.Result // the renter accepts a result, and no other word of it
		j.Outcome, j.Accepted = &o, s.SignedBy(RoleRenter) || again && j.Accepted
	}
}

// money checks payments, notices, the guarantee and disputes, and counts what is due.
func (j *judge) money() {
	j.payments()
	for _, raw := range j.papers(KindNotice) {
		n, _, err := OpenNotice(j.e.Network, raw, j.Terms)
		if j.check("notice "+strconv.FormatUint(uint64(n.Seq), 10)+" is signed by the rig", belongs(err, KindNotice, n.Lease == j.Lease)) {
			j.Notices = append(j.Notices, n)
		}
	}
	guarantor := j.guarantee()
	for _, raw := range j.papers(KindDispute) {
		d, _, err := OpenDispute(j.e.Network, raw, j.Terms, guarantor)
		if !j.check("a dispute is signed", belongs(err, KindDispute, d.Lease == j.Lease)) {
			continue
		}
		j.Disputes = append(j.Disputes, d)
		if d.By == RoleGuarantor && (j.Decided == nil || d.Wall > j.Decided.Wall) {
			j.Decided = &d
		}
	}
	j.open = j.open || len(j.Refusals) > 0 || len(j.Disputes) > 0
	j.refusals()
	total := j.Head.Total
	if j.Decided != nil {
		total = min(j.Decided.Total, j.Terms.Budget) // nobody consented to more
	}
	j.Due, j.Balance = max(0, total-j.Paid), max(0, j.Paid-total)
}

// payments checks the chain of payments: each number once, and the sums.
func (j *judge) payments() {
	seen := map[Hash]bool{}
	for _, raw := range j.papers(KindPayment) {
		p, s, err := OpenPayment(j.e.Network, raw, j.Terms)
		name := "payment " + strconv.FormatUint(uint64(p.Seq), 10) + " is signed by the rig"
		if !j.check(name, belongs(err, KindPayment, p.Lease == j.Lease)) || !j.w.payment(p, s) || seen[s.Hash()] {
			continue
		}
		seen[s.Hash()] = true
		j.Payments = append(j.Payments, p)
	}
	slices.SortFunc(j.Payments, func(a, b Payment) int { return cmp.Compare(a.Seq, b.Seq) })
	var seq uint32
	for i, p := range j.Payments {
		if i == 0 && j.e.LeavesOut(RedactedPayments) {
			seq, j.Paid = p.Seq-1, p.Total-p.Amount
		}
		if !j.check("payment "+strconv.FormatUint(uint64(p.Seq), 10)+" adds up", CheckPayment(j.Lease, seq, j.Paid, p)) {
			return
		}
		seq, j.Paid = p.Seq, p.Total
	}
}

// guarantee checks the guarantee that the terms name, where the file has it, and returns its guarantor.
func (j *judge) guarantee() Key {
	for _, raw := range j.papers(KindGuarantee) {
		g, s, err := OpenGuarantee(j.e.Network, raw)
		if err == nil {
			err = named(s.Hash() == j.Terms.Guarantee, KindGuarantee, "the lease does not name it")
		}
		if err == nil {
			err = g.Covers(j.Terms.RigOwner, j.Terms.RenterOwner, j.Terms.Prices.Currency, j.Terms.Issued)
		}
		if j.check("the guarantee is signed and covers the lease", err) {
			j.Guarantee = &g
		}
	}
	if j.Guarantee == nil {
		return Key{}
	}
	return j.Guarantee.Guarantor
}

// refusals says what is wrong with the receipts that were refused and that the file holds.
func (j *judge) refusals() {
	for i, refusal := range j.Refusals {
		r, held := j.beside[refusal.Receipt]
		if !held || r.Seq != j.Head.Seq+1 {
			continue
		}
		if err := CheckReceipt(j.Lease, j.Terms, j.Head, r, Unlimited); err != nil {
			j.Refusals[i].Wrong = Explain(err).Message
		}
	}
}
