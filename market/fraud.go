package market

// maxFrauds is how many frauds a judgement lists at most: one is enough.
const maxFrauds = 16

// Fraud is a proof that one key signed two statements that exclude each other: whoever holds them can show it to anyone.
type Fraud struct {
	Guilty Key     `json:"guilty_key"`
	Role   Role    `json:"role"` // as whom the key signed
	Kind   Kind    `json:"kind"`
	Seq    uint32  `json:"seq"`   // of the records within their kind; 0 where the kind has no numbers
	Why    string  `json:"why"`   // in words
	Proof  [2]Hash `json:"proof"` // of the two records; equal where one was both signed and refused
}

// witness remembers who signed what, and finds out who signed what excludes it. All that it is told has good signatures.
type witness struct {
	rig      Key
	byNumber map[numbered]Hash // what the rig, or a key of the renter's side, signed under a number
	signed   map[signing]bool  // receipts that a key of the renter's side signed
	refused  map[signing]bool  // receipts that it refused
	outcomes []told            // of the rig, by what they say
	frauds   []Fraud
	accused  map[numbered]bool
}

type numbered struct {
	kind Kind
	seq  uint32
	by   Key
}

type signing struct {
	receipt Hash
	by      Key
}

type told struct {
	outcome Outcome
	hash    Hash
}

func newWitness(rig Key) *witness {
	return &witness{
		rig: rig, byNumber: map[numbered]Hash{}, signed: map[signing]bool{}, refused: map[signing]bool{}, accused: map[numbered]bool{},
	}
}

// once notes that a key signed a record under a number, and reports whether it signed no other under it.
func (w *witness) once(n numbered, role Role, hash Hash, why string) bool {
	first, known := w.byNumber[n]
	if !known {
		w.byNumber[n] = hash
	}
	if !known || first == hash {
		return true
	}
	w.accuse(n, role, why, [2]Hash{first, hash})
	return false
}

func (w *witness) accuse(n numbered, role Role, why string, proof [2]Hash) {
	if w.accused[n] || len(w.frauds) >= maxFrauds {
		return
	}
	w.accused[n] = true
	w.frauds = append(w.frauds, Fraud{Guilty: n.by, Role: role, Kind: n.kind, Seq: n.seq, Why: why, Proof: proof})
}

// receipt notes a receipt, and reports whether the rig signed no other of its number. Two that different keys of the renter's
// side signed prove nothing against that side: a rig can show each of them another.
func (w *witness) receipt(r Receipt, s Sealed) bool {
	once := w.once(numbered{KindReceipt, r.Seq, w.rig}, RoleRig, s.Hash(), "the rig signed two receipts of one number")
	renter, ok := s.signer(RoleRenter)
	if !ok {
		return once
	}
	w.once(numbered{KindReceipt, r.Seq, renter.Key}, RoleRenter, s.Hash(), "the renter's side signed two receipts of one number")
	w.signed[signing{s.Hash(), renter.Key}] = true
	w.contradicts(signing{s.Hash(), renter.Key}, r.Seq)
	return once
}

// reject notes a refusal.
func (w *witness) reject(r Reject, by Key) {
	w.refused[signing{r.Receipt, by}] = true
	w.contradicts(signing{r.Receipt, by}, r.Seq)
}

func (w *witness) contradicts(s signing, seq uint32) {
	if w.signed[s] && w.refused[s] {
		w.accuse(numbered{KindReject, seq, s.by}, RoleRenter, "the renter's side both signed and refused one receipt", [2]Hash{s.receipt, s.receipt})
	}
}

// extension notes an extension. The renter may propose another after one that the rig declined; the rig consents once.
func (w *witness) extension(e Extension, s Sealed) {
	if s.SignedBy(RoleRig) {
		w.once(numbered{KindExtend, e.Seq, w.rig}, RoleRig, s.Hash(), "the rig consented to two extensions of one number")
	}
}

// payment notes a payment, and reports whether the rig signed no other of its number.
func (w *witness) payment(p Payment, s Sealed) bool {
	return w.once(numbered{KindPayment, p.Seq, w.rig}, RoleRig, s.Hash(), "the rig signed two payments of one number")
}

// outcome notes an outcome of the rig.
func (w *witness) outcome(o Outcome, s Sealed) {
	for _, old := range w.outcomes {
		if !o.Follows(old.outcome) && !old.outcome.Follows(o) {
			w.accuse(numbered{kind: KindOutcome, by: w.rig}, RoleRig, "the rig signed two outcomes that exclude each other", [2]Hash{old.hash, s.Hash()})
		}
	}
	w.outcomes = append(w.outcomes, told{o, s.Hash()})
}
