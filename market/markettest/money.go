package markettest

import (
	"crypto/ed25519"

	"haggle/market"
)

// Deputy is the key of the deputy of PaidTerms.
func Deputy() ed25519.PrivateKey { return Private("deputy") }

// Guarantor is the key that stands for the sample renter.
func Guarantor() ed25519.PrivateKey { return Private("guarantor") }

// Guarantee returns the guarantor's promise of five dollars.
func Guarantee() market.Guarantee {
	return market.Guarantee{
		Guarantor: market.KeyOf(Guarantor()), Rig: market.KeyOf(Rig()), Renter: market.KeyOf(Renter()), Currency: "USD",
		Amount: 5_000_000, Issued: Now - 1000, Until: Now + 30*24*3_600_000, Nonce: market.Nonce{7},
	}
}

// PaidOffer returns the sample offer of a rig that takes play money.
func PaidOffer() market.Offer {
	o := Offer()
	o.Pays = []market.PayMethod{{Name: market.PayLab, Settles: market.SettlesInstantly}}
	return o
}

// PaidBid returns a bid that is paid ahead with play money, with a deputy and a guarantee.
func PaidBid() market.Bid {
	b := Bid()
	b.Offer = market.SealOffer(Network, Rig(), PaidOffer()).Hash()
	b.Pay, b.Limits.Credit = market.PayLab, 0
	b.Deputies = []market.Key{market.KeyOf(Deputy())}
	b.Guarantee = market.SealGuarantee(Network, Guarantor(), Guarantee()).Hash()
	return b
}

// PaidTerms returns what the sample rig grants for the bid that is paid ahead.
func PaidTerms() market.Terms {
	o, b := PaidOffer(), PaidBid()
	slots, err := market.Pick(o, b)
	if err != nil {
		panic(err) // the samples fit together
	}
	return market.Grant(o, b, market.SealBid(Network, Renter(), b).Hash(), slots, Now, market.Nonce{9})
}

// PaidLease returns the id of the lease that is paid ahead.
func PaidLease() market.LeaseID { return market.SealTerms(Network, Rig(), PaidTerms()).ID() }

// PaidReceipt returns the receipt that follows a head at a billed time, under the terms that are paid ahead.
func PaidReceipt(head market.Head, billedMs int64, kind market.ReceiptKind) market.Receipt {
	return Receipt(PaidLease(), head, billedMs, kind) // the prices are the same
}

// Payment returns the next payment of the lease that is paid ahead, after one with this number and total.
func Payment(seq uint32, total, amount market.Micro) market.Payment {
	t := PaidTerms()
	return market.Payment{
		Lease: PaidLease(), Seq: seq + 1, Payee: t.RigOwner, Payer: t.RenterOwner, Currency: t.Prices.Currency, Amount: amount,
		Total: total + amount, Method: t.Pay, Reference: "play-1", Wall: Now + 2000, Slice: seq + 1,
	}
}

// Notice returns the rig's word that it takes a card of the lease that is paid ahead back.
func Notice() market.Notice {
	return market.Notice{Lease: PaidLease(), Seq: 1, Reason: market.ReasonTakeback, At: Now + 70_000, KillAt: Now + 80_000}
}

// Dispute returns one party's complaint about the lease that is paid ahead.
func Dispute(by market.Role) market.Dispute {
	return market.Dispute{
		Lease: PaidLease(), By: by, Seq: 3, Receipt: market.Hash{3}, Code: market.CodeReceiptTime, Total: 5000, Words: "it stood still", Wall: Now + 90_000,
	}
}

// PaidOutcome returns what the sample rig says of the lease that is paid ahead, with the end of its chain of accepted outcomes.
func PaidOutcome() market.Outcome {
	o := Outcome(PaidLease())
	end := market.Chained([]market.Hash{{1}, {2}})
	o.Result, o.Chain = market.ResultRig, &end
	return o
}

// Paid returns the evidence of a lease that was paid ahead in two payments, ran for 70 seconds, of which a deputy signed the first
// receipt, and was ended by the rig with notice; the renter accepted the outcome.
func Paid() market.Evidence {
	lease := market.SealTerms(Network, Rig(), PaidTerms()).Sign(market.RoleRenter, Renter())
	e := market.Evidence{
		Network: Network,
		Offer:   market.SealOffer(Network, Rig(), PaidOffer()).Encode(),
		Bid:     market.SealBid(Network, Renter(), PaidBid()).Encode(),
		Lease:   lease.Encode(),
		Outcome: market.AcceptOutcome(market.SealOutcome(Network, Rig(), PaidOutcome()), Renter()).Encode(),
		Papers: []market.Paper{
			{Kind: market.KindGuarantee, Sealed: market.SealGuarantee(Network, Guarantor(), Guarantee()).Encode()},
			{Kind: market.KindPayment, Sealed: market.SealPayment(Network, Rig(), Payment(0, 0, 12_000)).Encode()},
			{Kind: market.KindPayment, Sealed: market.SealPayment(Network, Rig(), Payment(1, 12_000, 60_000)).Encode()},
			{Kind: market.KindNotice, Sealed: market.SealNotice(Network, Rig(), Notice()).Encode()},
		},
	}
	var head market.Head
	for i, billed := range []int64{10_000, 70_000, 70_000} {
		kind, signer := market.ReceiptInterval, Renter()
		switch i {
		case 0:
			signer = Deputy()
		case 2:
			kind = market.ReceiptFinal
		}
		r := PaidReceipt(head, billed, kind)
		r.Paid = 12_000
		if i > 0 {
			r.Paid, r.Gaps = 72_000, []market.Unbilled{{Reason: market.UnbilledPull, Ms: 4000}, {Reason: market.UnbilledStart, Ms: 900}}
		}
		if kind == market.ReceiptFinal {
			r.Exit.Reason = market.ReasonTakeback
		}
		s := market.SealReceipt(Network, Rig(), r).Sign(market.RoleRenter, signer)
		e.Receipts, head = append(e.Receipts, s.Encode()), market.HeadOf(r, s.Hash())
	}
	return e
}
