package market

import (
	"slices"
	"strconv"
)

// Bounds of a file of evidence.
const (
	MaxEvidence        = 64 << 20
	maxEvidenceRecords = 200_000
	evidenceMagic      = "haggle-evidence"
)

// Parts of a file of evidence that Redact leaves out.
const (
	RedactedBid      = "bid"
	RedactedOffer    = "offer"
	RedactedPayments = "payments" // all but the newest
	RedactedReceipts = "receipts" // before the newest that both signed
)

// Evidence is everything about one lease that both sides signed. Anyone can judge it with Judge: no agent, no network, no
// trust. On disk it is a CBOR sequence: a header that counts, then every sealed record as a byte string.
type Evidence struct {
	Network    string
	Offer      []byte
	Bid        []byte
	Lease      []byte
	Extensions [][]byte // by number, signed by both
	Receipts   [][]byte // by number
	Rejects    [][]byte
	Outcome    []byte // nil where there is none
	// Papers are the other records, in any order: payments, notices, disputes, the guarantee that the terms name, and receipts,
	// extensions, refusals and outcomes that stand beside those above. Of each only Kind and Sealed count.
	Papers []Paper
	// Redacted names the parts that were left out, ascending. What is left is as valid as before.
	Redacted []string
}

type evidenceHeader struct {
	Magic      string `cbor:"1,keyasint"`
	Version    uint16 `cbor:"2,keyasint"`
	Network    string `cbor:"3,keyasint"`
	Receipts   uint32 `cbor:"4,keyasint"`
	Rejects    uint32 `cbor:"5,keyasint"`
	Outcome    bool   `cbor:"6,keyasint,omitempty"`
	Extensions uint32 `cbor:"7,keyasint,omitempty"`
	Papers     uint32 `cbor:"8,keyasint,omitempty"`

	Redacted []string `cbor:"9,keyasint,omitempty"`
}

// Encode returns the file's bytes.
func (e Evidence) Encode() []byte {
	out := encode(evidenceHeader{
		Magic: evidenceMagic, Version: 1, Network: e.Network, Extensions: uint32(len(e.Extensions)),
		Receipts: uint32(len(e.Receipts)), Rejects: uint32(len(e.Rejects)), Outcome: e.Outcome != nil,
		Papers: uint32(len(e.Papers)), Redacted: e.Redacted,
	})
	var outcome [][]byte
	if e.Outcome != nil {
		outcome = [][]byte{e.Outcome}
	}
	papers := make([][]byte, 0, len(e.Papers))
	for _, p := range e.Papers {
		papers = append(papers, p.Sealed)
	}
	for _, part := range [][][]byte{{e.Offer, e.Bid, e.Lease}, e.Extensions, e.Receipts, e.Rejects, outcome, papers} {
		for _, record := range part {
			out = append(out, encode(record)...)
		}
	}
	return out
}

// DecodeEvidence reads a file's bytes into its records, checking form and bounds only.
func DecodeEvidence(data []byte) (Evidence, error) {
	bad := func(why string) error { return NewError(CodeBadRecord, "kind", "evidence", "why", why) }
	if len(data) > MaxEvidence {
		return Evidence{}, NewError(CodeTooLarge, "limit", strconv.Itoa(MaxEvidence))
	}
	items := sequence{rest: data}
	var h evidenceHeader
	if err := items.next(&h); err != nil {
		return Evidence{}, err
	}
	if h.Magic != evidenceMagic || h.Version != 1 {
		return Evidence{}, bad("it is not a file of evidence, or of a newer version")
	}
	if max(h.Receipts, h.Rejects, h.Papers) > maxEvidenceRecords || h.Extensions > MaxExtensions {
		return Evidence{}, bad("it holds too many records")
	}
	if !redactable(h.Redacted) {
		return Evidence{}, bad("what it leaves out is unknown, or out of order")
	}
	e := Evidence{Network: h.Network, Redacted: h.Redacted}
	if err := items.evidence(h, &e); err != nil {
		return Evidence{}, err
	}
	if len(items.rest) > 0 {
		return Evidence{}, bad("bytes after the last record")
	}
	return e, nil
}

// redactable reports whether a list names parts that can be left out, ascending, each once, or is empty and absent.
func redactable(parts []string) bool {
	known := []string{RedactedBid, RedactedOffer, RedactedPayments, RedactedReceipts}
	for i, p := range parts {
		if !slices.Contains(known, p) || i > 0 && parts[i-1] >= p {
			return false
		}
	}
	return true
}

// LeavesOut reports whether a part was left out: one of the Redacted constants.
func (e Evidence) LeavesOut(part string) bool { return slices.Contains(e.Redacted, part) }

// evidence reads the records that a header counts.
func (s *sequence) evidence(h evidenceHeader, e *Evidence) error {
	for _, into := range []*[]byte{&e.Offer, &e.Bid, &e.Lease} {
		if err := s.next(into); err != nil {
			return err
		}
	}
	outcomes := uint32(0)
	if h.Outcome {
		outcomes = 1
	}
	var outcome, papers [][]byte
	for _, part := range []struct {
		into  *[][]byte
		count uint32
	}{{&e.Extensions, h.Extensions}, {&e.Receipts, h.Receipts}, {&e.Rejects, h.Rejects}, {&outcome, outcomes}, {&papers, h.Papers}} {
		var err error
		if *part.into, err = s.list(part.count); err != nil {
			return err
		}
	}
	if h.Outcome {
		e.Outcome = outcome[0]
	}
	for _, raw := range papers {
		sealed, err := DecodeSealed(raw)
		if err != nil {
			return err
		}
		e.Papers = append(e.Papers, Paper{Kind: sealed.Kind, Sealed: raw})
	}
	return nil
}

// sequence reads the items of a CBOR sequence one after the other.
type sequence struct{ rest []byte }

func (s *sequence) next(into any) error {
	w := walker{data: s.rest}
	if why := w.item(0); why != "" {
		return NewError(CodeBadEncoding, "why", why)
	}
	item := s.rest[:w.at]
	s.rest = s.rest[w.at:]
	return decodeStrict(item, into)
}

func (s *sequence) list(count uint32) ([][]byte, error) {
	var list [][]byte
	for range count {
		var record []byte
		if err := s.next(&record); err != nil {
			return nil, err
		}
		list = append(list, record)
	}
	return list, nil
}
