// Package markettest makes small, valid market records for tests: two keys, an offer, a bid, terms and a chain of
// receipts, all signed.
package markettest

import (
	"crypto/ed25519"
	"crypto/sha256"

	"haggle/market"
)

// Network is the network of all samples.
const Network = "lab-sample"

// Now is the wall time at which the samples begin, in Unix milliseconds.
const Now = int64(1_700_000_000_000)

// Rig and Renter return the samples' keys. They are the same in every run.
func Rig() ed25519.PrivateKey { return Private("rig") }

// Renter is the renter's key.
func Renter() ed25519.PrivateKey { return Private("renter") }

// Private returns a key made from a word.
func Private(word string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(word))
	return ed25519.NewKeyFromSeed(seed[:])
}

// Offer returns an open offer of two simulated RTX 4090 at 0.36 an hour: 100 millionths a second.
func Offer() market.Offer {
	memory := int64(24564) << 20
	o := market.Offer{
		Rig: market.KeyOf(Rig()), Owner: market.KeyOf(Rig()), Name: "rig-1", ID: "main", Seq: Now, Issued: Now,
		Expires: Now + market.MaxOfferLife.Milliseconds(), State: market.OfferOpen,
		Host:      market.HostFacts{CPU: "sample", SlotThreads: 4, SlotMemory: 8 << 30, DiskFree: 100e9, Kernel: "6.1", Isolation: "runc", Images: []market.ImageName{{Name: "lab", Digest: Image, Size: 1}}},
		Net:       market.NetFacts{Reach: "loopback"},
		Prices:    market.Prices{Currency: "USD", Slot: 360_000},
		Rules:     Rules(),
		Simulated: true,
	}
	for i := range 2 {
		o.Slots = append(o.Slots, market.Slot{
			Index: uint8(i), Kind: market.SlotCard, Card: market.HashOf([]byte{byte(i)}), Vendor: market.VendorSimulated,
			Model: "RTX_4090", RawModel: "Simulated RTX 4090", Memory: memory, Usable: memory, Health: "fit",
		})
	}
	return o
}

// Image is the digest of the samples' image.
const Image = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// Rules returns the design's defaults: first receipt at 10 s, then every minute, 120 s to sign.
func Rules() market.Rules {
	return market.Rules{
		MinMs: 1000, MaxMs: 7 * 24 * 3_600_000, IntervalMs: 60_000, FirstMs: 10_000, GraceMs: 120_000, NoticeMs: 10_000,
		MaxUnattended: market.Unlimited, Credit: market.Unlimited, Bidders: market.BiddersAnyone,
	}
}

// Job returns a small job without an environment.
func Job() market.Job {
	salt := market.Nonce{1, 2, 3}
	return market.Job{Salt: salt, Image: Image, Args: []string{"train"}, EnvHash: market.Env{}.Hash(salt)}
}

// Bid returns a bid for one slot of the sample offer: ten minutes, a budget of one dollar.
func Bid() market.Bid {
	o := Offer()
	return market.Bid{
		Offer: market.SealOffer(Network, Rig(), o).Hash(), Rig: o.Rig, Renter: market.KeyOf(Renter()), Owner: market.KeyOf(Renter()),
		Count: 1, Model: "RTX_4090", Mode: market.ModeFirm, Prices: o.Prices, GoodTill: Now + 30_000, Job: Job().Hash(),
		DurationMs: 600_000, Budget: 1_000_000, IntervalMs: 60_000,
		Limits: market.Limits{UnsignedMs: 180_000, UnattendedMs: 600_000, Credit: market.Unlimited},
	}
}

// Terms returns what the sample rig grants for the sample bid.
func Terms() market.Terms {
	o, b := Offer(), Bid()
	slots, err := market.Pick(o, b)
	if err != nil {
		panic(err) // the samples fit together
	}
	return market.Grant(o, b, market.SealBid(Network, Renter(), b).Hash(), slots, Now, market.Nonce{9})
}

// Evidence returns the evidence of a lease that ran for 70 seconds and ended with code 0, every record signed by both.
func Evidence() market.Evidence {
	lease := market.SealTerms(Network, Rig(), Terms()).Sign(market.RoleRenter, Renter())
	e := market.Evidence{
		Network: Network,
		Offer:   market.SealOffer(Network, Rig(), Offer()).Encode(),
		Bid:     market.SealBid(Network, Renter(), Bid()).Encode(),
		Lease:   lease.Encode(),
	}
	var head market.Head
	for _, billed := range []int64{10_000, 70_000} {
		r := Receipt(lease.ID(), head, billed, market.ReceiptInterval)
		e.Receipts, head = append(e.Receipts, both(r)), market.HeadOf(r, market.HashOf(r.Body()))
	}
	return market.Evidence{
		Network: e.Network, Offer: e.Offer, Bid: e.Bid, Lease: e.Lease,
		Receipts: append(e.Receipts, both(Receipt(lease.ID(), head, 70_000, market.ReceiptFinal))),
		Outcome:  market.SealOutcome(Network, Rig(), Outcome(lease.ID())).Encode(),
	}
}

// Extension returns the next extension of a lease of the sample terms: ten minutes and half a dollar more.
func Extension(lease market.LeaseID, last *market.Extension) market.Extension {
	return Terms().Extend(lease, last, 600_000, 500_000, Now+5000)
}

// Consented returns an extension's bytes with the signatures of both.
func Consented(e market.Extension) []byte {
	return market.Consent(market.SealExtension(Network, Renter(), e), Rig()).Encode()
}

// Kept returns the evidence of a lease that was extended twice, ran for 10 seconds, was paused for an hour, and ran until 700 seconds
// were billed, which is more than was leased at first.
func Kept() market.Evidence {
	e := Evidence()
	lease, err := market.DecodeSealed(e.Lease)
	if err != nil {
		panic(err) // the samples fit together
	}
	first := Extension(lease.ID(), nil)
	e.Extensions = [][]byte{Consented(first), Consented(Extension(lease.ID(), &first))}
	e.Receipts = nil
	var head market.Head
	for i, billed := range []int64{10_000, 10_000, 700_000} {
		kind := market.ReceiptInterval
		if i == 2 {
			kind = market.ReceiptFinal
		}
		r := Receipt(lease.ID(), head, billed, kind)
		if i > 0 {
			r.KeptMs = 3_600_000
			r.Usage = Terms().UsedBy(billed, r.KeptMs, 0, 0)
		}
		e.Receipts, head = append(e.Receipts, both(r)), market.HeadOf(r, market.HashOf(r.Body()))
	}
	return e
}

// Outcome returns what the sample rig says at last: the card's memory is overwritten and the disk destroyed.
func Outcome(lease market.LeaseID) market.Outcome {
	at := Now + 80_000 + market.RetentionMs
	return market.Outcome{Lease: lease, At: at, DiskAt: at, Cards: []market.CardWipe{{Index: 0, Bytes: int64(24564) << 20}}}
}

// Receipt returns the receipt that follows a head at a billed time, under the sample terms.
func Receipt(lease market.LeaseID, head market.Head, billedMs int64, kind market.ReceiptKind) market.Receipt {
	t := Terms()
	r := market.Receipt{Lease: lease, Seq: head.Seq + 1, Prev: head.Hash, Kind: kind, BilledMs: billedMs, Usage: t.UsageAt(billedMs, 0, 0), WallMs: Now + billedMs}
	bill, err := t.Prices.Bill(r.Usage)
	if err != nil {
		panic(err) // the samples fit together
	}
	r.Bill = bill
	if kind == market.ReceiptFinal {
		r.Exit = &market.Exit{Reason: market.ReasonCompleted}
	}
	return r
}

func both(r market.Receipt) []byte {
	return market.SealReceipt(Network, Rig(), r).Sign(market.RoleRenter, Renter()).Encode()
}
