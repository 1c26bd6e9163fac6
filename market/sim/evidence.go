package sim

import "haggle/market"

// evidence is what a side can show anyone at the end.
func (w *world) evidence() market.Evidence {
	return market.Evidence{Network: netName, Offer: w.deal.offer, Bid: w.deal.bid, Lease: w.deal.sealed}
}

func (w *world) rigEvidence() market.Evidence {
	e, d := w.evidence(), w.rig.disk
	e.Outcome, e.Extensions = d.outcome, d.extensions
	for _, k := range d.receipts {
		e.Receipts = append(e.Receipts, k.raw)
	}
	for _, p := range d.papers {
		if p.Kind == market.KindReject {
			e.Rejects = append(e.Rejects, p.Sealed)
		} else {
			e.Papers = append(e.Papers, p)
		}
	}
	e.Papers = append(e.Papers, w.payments(d.payments)...)
	return e
}

func (w *world) renterEvidence() market.Evidence {
	e, d := w.evidence(), w.renter.disk
	e.Outcome, e.Rejects, e.Extensions = d.outcome, d.rejects, d.extensions
	for _, k := range d.receipts {
		e.Receipts = append(e.Receipts, k.raw)
	}
	for _, raw := range d.refused {
		e.Papers = append(e.Papers, market.Paper{Lease: w.deal.id, Kind: market.KindReceipt, Sealed: raw})
	}
	e.Papers = append(e.Papers, w.payments(d.payments)...)
	return e
}

func (w *world) payments(list []kept) []market.Paper {
	var papers []market.Paper
	for _, p := range list {
		papers = append(papers, market.Paper{Lease: w.deal.id, Kind: market.KindPayment, Seq: p.seq, Sealed: p.raw})
	}
	return papers
}
