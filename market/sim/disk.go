package sim

import (
	"cmp"
	"maps"
	"slices"

	"haggle/market"
)

// kept is a sealed record on a disk.
type kept struct {
	seq    uint32
	hash   market.Hash
	raw    []byte
	agreed bool // a receipt that both signed
}

// rigDisk is what a rig has stored. A write is whole or it is not there.
type rigDisk struct {
	instance byte
	state    market.Lease
	receipts []kept // by number; the last may be a draft
	payments []kept
	paidFor  map[uint32]uint32 // slices to the payments that answer them
	papers   []market.Paper
	outcome  []byte

	extensions [][]byte // by number, signed by both
}

func (d rigDisk) clone() rigDisk {
	d.receipts, d.payments, d.papers = slices.Clone(d.receipts), slices.Clone(d.payments), slices.Clone(d.papers)
	d.paidFor, d.extensions = maps.Clone(d.paidFor), slices.Clone(d.extensions)
	return d
}

// keep files a receipt under its number.
func (d *rigDisk) keep(r kept) {
	for i := range d.receipts {
		if d.receipts[i].seq == r.seq {
			d.receipts[i] = r
			return
		}
	}
	i, _ := slices.BinarySearchFunc(d.receipts, r.seq, func(k kept, seq uint32) int { return cmp.Compare(k.seq, seq) })
	d.receipts = slices.Insert(d.receipts, i, r)
}

// pay files a payment.
func (d *rigDisk) pay(p market.Payment, raw []byte) {
	d.payments = append(d.payments, kept{seq: p.Seq, raw: raw})
	d.paidFor[p.Slice] = p.Seq
}

// renterDisk is what a renter has stored.
type renterDisk struct {
	instance byte
	job      market.JobState
	attempt  uint32
	head     market.Head
	disputed bool
	acked    bool
	void     bool
	keeps    bool
	paid     market.Micro
	paidSeq  uint32
	sent     market.Micro
	paying   *paying
	slices   uint32 // the newest slice that is paid
	measure  market.Measure
	receipts []kept // by number
	payments []kept
	rejects  [][]byte
	refused  [][]byte // receipts of the rig that were refused: a fork's proof
	outcome  []byte

	extension  *market.Extension
	extensions [][]byte // by number, signed by both
	asking     []byte   // an extension that the rig has not signed yet
}

// paying is a slice on its way.
type paying struct {
	slice  market.Slice
	amount market.Micro
	sent   bool
}

func (d renterDisk) clone() renterDisk {
	d.receipts, d.payments = slices.Clone(d.receipts), slices.Clone(d.payments)
	d.extensions = slices.Clone(d.extensions)
	d.rejects, d.refused = slices.Clone(d.rejects), slices.Clone(d.refused)
	return d
}

// over reports whether nothing is left to do.
func (d *renterDisk) over() bool {
	return d.void || d.job == market.JobEnded && (d.disputed || d.acked) && d.paying == nil
}

// receiptOf returns the record of a number: a receipt or a payment.
func receiptOf(list []kept, seq uint32) *kept {
	i := slices.IndexFunc(list, func(k kept) bool { return k.seq == seq })
	if i < 0 {
		return nil
	}
	return &list[i]
}
