package sim

import (
	"crypto/ed25519"
	"crypto/sha256"
	"math/rand/v2"

	"haggle/market"
)

// netName is the network of every run.
const netName = "lab-sim"

// method is the name of the payment method of every run.
const method = "lab"

// deal is what both sides have agreed to before a run begins, with what proves it.
type deal struct {
	rigKey, renterKey  ed25519.PrivateKey
	offer, bid, sealed []byte // sealed holds both signatures
	terms              market.Terms
	id                 market.LeaseID
}

func keyOf(word string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte("haggle/market/sim " + word))
	return ed25519.NewKeyFromSeed(seed[:])
}

// newDeal draws the terms of a lease: intervals, limits, and whether it is paid ahead, owed within a credit, or owed without one.
func newDeal(rng *rand.Rand, opt Options) deal {
	d := deal{rigKey: keyOf("rig"), renterKey: keyOf("renter")}
	rules := market.Rules{
		MinMs: 1000, MaxMs: 24 * 3_600_000, IntervalMs: 10_000 + 10_000*rng.Int64N(6), FirstMs: 5000 + 5000*rng.Int64N(2),
		GraceMs: 30_000 + 30_000*rng.Int64N(4), NoticeMs: 10_000, MaxUnattended: market.Unlimited, Credit: market.Unlimited,
		Bidders: market.BiddersAnyone,
	}
	offer := sampleOffer(rules)
	sealedOffer := market.SealOffer(netName, d.rigKey, offer)
	bid := market.Bid{
		Offer: sealedOffer.Hash(), Rig: offer.Rig, Renter: market.KeyOf(d.renterKey), Owner: market.KeyOf(d.renterKey),
		Count: 1, Model: "RTX_4090", Mode: market.ModeFirm, Prices: offer.Prices, GoodTill: beginWall + 30_000, Job: market.Hash{1},
		DurationMs: 60_000 * (4 + rng.Int64N(16)), Budget: market.Micro(20_000 + rng.Int64N(200_000)), IntervalMs: rules.IntervalMs,
		Limits: market.Limits{UnsignedMs: rules.IntervalMs + rules.GraceMs, UnattendedMs: 60_000 * (1 + rng.Int64N(8)), Credit: market.Unlimited},
	}
	switch kind := rng.IntN(4); {
	case kind == 0:
		bid.Limits.UnattendedMs = market.Unlimited
	case kind == 1 && opt.Cheat == "":
		bid.Limits.Credit = 20_000 + rng.Int64N(60_000)
	default:
		bid.Pay, bid.Limits.Credit = method, 1000*rng.Int64N(10)
	}
	sealedBid := market.SealBid(netName, d.renterKey, bid)
	slots, err := market.Pick(offer, bid)
	if err != nil {
		panic(err) // the offer and the bid of this file fit together
	}
	d.terms = market.Grant(offer, bid, sealedBid.Hash(), slots, beginWall, market.Nonce{byte(rng.IntN(256))})
	grant := market.SealTerms(netName, d.rigKey, d.terms)
	d.offer, d.bid = sealedOffer.Encode(), sealedBid.Encode()
	d.sealed, d.id = grant.Sign(market.RoleRenter, d.renterKey).Encode(), grant.ID()
	return d
}

// sampleOffer returns an offer of one simulated card at 0.36 an hour: 100 millionths a second, and as much again for each GB of disk
// in ten hours.
func sampleOffer(rules market.Rules) market.Offer {
	memory := int64(24564) << 20
	key := market.KeyOf(keyOf("rig"))
	return market.Offer{
		Rig: key, Owner: key, Name: "rig-1", ID: "main", Seq: beginWall, Issued: beginWall,
		Expires: beginWall + market.MaxOfferLife.Milliseconds(), State: market.OfferOpen,
		Slots: []market.Slot{{
			Kind: market.SlotCard, Card: market.Hash{7}, Vendor: market.VendorSimulated, Model: "RTX_4090",
			RawModel: "Simulated RTX 4090", Memory: memory, Usable: memory, Health: "fit",
		}},
		Host:      market.HostFacts{CPU: "sample", SlotThreads: 4, SlotMemory: 8 << 30, DiskFree: 100e9, Kernel: "6.1", Isolation: "none"},
		Net:       market.NetFacts{Reach: "loopback"},
		Prices:    market.Prices{Currency: "USD", Slot: 360_000, Disk: 36_000},
		Rules:     rules,
		Simulated: true,
		Pays:      []market.PayMethod{{Name: method, Settles: market.SettlesInstantly}},
	}
}
