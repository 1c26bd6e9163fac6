package market

import "slices"

// Redact returns the evidence without what a judge of the bill does not need: the offer, the bid, the receipts before the newest
// that both signed, and the payments before the newest. Receipts and payments that contradict others, or that somebody refused
// or disputed, stay. Every signature that is left holds, and so does the verdict. What cannot be read stays as it is.
func (e Evidence) Redact() Evidence {
	t, s, err := OpenLease(e.Network, e.Lease)
	if err != nil {
		return e
	}
	out := e
	var parts []string
	if len(e.Bid) > 0 {
		out.Bid, parts = nil, append(parts, RedactedBid)
	}
	if len(e.Offer) > 0 {
		out.Offer, parts = nil, append(parts, RedactedOffer)
	}
	if out.Papers = e.redactPayments(t); len(out.Papers) < len(e.Papers) {
		parts = append(parts, RedactedPayments)
	}
	if out.Receipts = e.redactReceipts(t, s.ID()); len(out.Receipts) < len(e.Receipts) {
		parts = append(parts, RedactedReceipts)
	}
	out.Redacted = slices.Compact(slices.Sorted(slices.Values(append(parts, e.Redacted...))))
	return out
}

// redactPayments returns the papers without the payments before the newest that are the only one of their number.
func (e Evidence) redactPayments(t Terms) []Paper {
	numbers, newest := map[uint32]int{}, uint32(0)
	seq := func(p Paper) uint32 {
		if p.Kind != KindPayment {
			return 0
		}
		payment, _, err := OpenPayment(e.Network, p.Sealed, t)
		if err != nil {
			return 0
		}
		return payment.Seq
	}
	for _, p := range e.Papers {
		n := seq(p)
		numbers[n]++
		newest = max(newest, n)
	}
	var kept []Paper
	for _, p := range e.Papers {
		if n := seq(p); n == 0 || n == newest || numbers[n] > 1 {
			kept = append(kept, p)
		}
	}
	return kept
}

// redactReceipts returns the receipts from the newest that both signed on, and those that are named elsewhere.
func (e Evidence) redactReceipts(t Terms, lease LeaseID) [][]byte {
	named := e.named(t, lease)
	numbers, last := map[uint32]int{}, -1
	for i, raw := range e.Receipts {
		r, s, err := OpenReceipt(e.Network, raw, t)
		if err != nil || r.Lease != lease {
			return e.Receipts // invalid: nothing of it is hidden
		}
		numbers[r.Seq]++
		if s.SignedBy(RoleRenter) {
			last = i
		}
	}
	var kept [][]byte
	for i, raw := range e.Receipts {
		s, err := DecodeSealed(raw)
		var r Receipt
		if i >= last || err != nil || decodeStrict(s.Body, &r) != nil || numbers[r.Seq] > 1 || named.hashes[s.Hash()] || named.seqs[r.Seq] {
			kept = append(kept, raw)
		}
	}
	return kept
}

// naming holds which receipts other records name.
type naming struct {
	hashes map[Hash]bool   // by a refusal or a dispute
	seqs   map[uint32]bool // by a receipt that stands beside the chain
}

func (e Evidence) named(t Terms, lease LeaseID) naming {
	n := naming{hashes: map[Hash]bool{}, seqs: map[uint32]bool{}}
	rejects := slices.Clone(e.Rejects)
	for _, p := range e.Papers {
		s, err := DecodeSealed(p.Sealed)
		if err != nil {
			continue
		}
		var d Dispute
		var r Receipt
		switch s.Kind {
		case KindReject:
			rejects = append(rejects, p.Sealed)
		case KindDispute:
			if decodeStrict(s.Body, &d) == nil && d.Lease == lease {
				n.hashes[d.Receipt] = true
			}
		case KindReceipt:
			if decodeStrict(s.Body, &r) == nil && r.Lease == lease {
				n.seqs[r.Seq] = true
			}
		}
	}
	for _, raw := range rejects {
		if r, _, err := OpenReject(e.Network, raw, t); err == nil {
			n.hashes[r.Receipt] = true
		}
	}
	return n
}
