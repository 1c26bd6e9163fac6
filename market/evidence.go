package market

import (
	"strconv"
)

// Bounds of a file of evidence.
const (
	MaxEvidence        = 64 << 20
	maxEvidenceRecords = 200_000
	evidenceMagic      = "haggle-evidence"
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
}

type evidenceHeader struct {
	Magic      string `cbor:"1,keyasint"`
	Version    uint16 `cbor:"2,keyasint"`
	Network    string `cbor:"3,keyasint"`
	Receipts   uint32 `cbor:"4,keyasint"`
	Rejects    uint32 `cbor:"5,keyasint"`
	Outcome    bool   `cbor:"6,keyasint,omitempty"`
	Extensions uint32 `cbor:"7,keyasint,omitempty"`
}

// Encode returns the file's bytes.
func (e Evidence) Encode() []byte {
	out := encode(evidenceHeader{
		Magic: evidenceMagic, Version: 1, Network: e.Network, Extensions: uint32(len(e.Extensions)),
		Receipts: uint32(len(e.Receipts)), Rejects: uint32(len(e.Rejects)), Outcome: e.Outcome != nil,
	})
	var outcome [][]byte
	if e.Outcome != nil {
		outcome = [][]byte{e.Outcome}
	}
	for _, part := range [][][]byte{{e.Offer, e.Bid, e.Lease}, e.Extensions, e.Receipts, e.Rejects, outcome} {
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
	if h.Receipts > maxEvidenceRecords || h.Rejects > maxEvidenceRecords || h.Extensions > MaxExtensions {
		return Evidence{}, bad("it holds too many records")
	}
	e := Evidence{Network: h.Network}
	for _, into := range []*[]byte{&e.Offer, &e.Bid, &e.Lease} {
		if err := items.next(into); err != nil {
			return Evidence{}, err
		}
	}
	var err error
	if e.Extensions, err = items.list(h.Extensions); err != nil {
		return Evidence{}, err
	}
	if e.Receipts, err = items.list(h.Receipts); err != nil {
		return Evidence{}, err
	}
	if e.Rejects, err = items.list(h.Rejects); err != nil {
		return Evidence{}, err
	}
	if h.Outcome {
		if err := items.next(&e.Outcome); err != nil {
			return Evidence{}, err
		}
	}
	if len(items.rest) > 0 {
		return Evidence{}, bad("bytes after the last record")
	}
	return e, nil
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
