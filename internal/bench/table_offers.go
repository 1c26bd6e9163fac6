package main

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"time"

	"haggle/internal/index"
	"haggle/market"
	"haggle/market/markettest"
)

// snapshotSize is the offers of a snapshot.
const snapshotSize = 5000

// snapshotVerified compares opening a page of offers on all cores with verifying as many signatures alone.
func snapshotVerified(ctx context.Context) (ours, theirs float64, err error) {
	raws := make([][]byte, snapshotSize)
	random := rand.New(rand.NewPCG(3, 3))
	for n := range raws {
		o := newOffer(random, n)
		private := markettest.Private(strconv.Itoa(n))
		o.Rig, o.Owner = market.KeyOf(private), market.KeyOf(private)
		raws[n] = market.SealOffer(markettest.Network, private, o).Encode()
	}
	message := make([]byte, 64)
	key, sig := market.KeyOf(markettest.Rig()), ed25519.Sign(markettest.Rig(), message)
	for range 5 {
		if ctx.Err() != nil {
			return 0, 0, ctx.Err()
		}
		begun := time.Now()
		for _, s := range index.Open(markettest.Network, raws, 0) {
			if s == nil {
				return 0, 0, errors.New("an offer of the snapshot is not valid")
			}
		}
		ours = max(ours, snapshotSize/time.Since(begun).Seconds())
		begun = time.Now()
		onAllCores(snapshotSize, func() { ed25519.Verify(key[:], message, sig) })
		theirs = max(theirs, snapshotSize/time.Since(begun).Seconds())
	}
	return ours, theirs, nil
}

func onAllCores(count int, job func()) {
	var group sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for range workers {
		group.Go(func() {
			for range count / workers {
				job()
			}
		})
	}
	group.Wait()
}

// madeAtOnce is how many offers are made before they are put: memory of the making side is not counted, but must be there.
const madeAtOnce = 10_000

// made is an offer that is ready to be put.
type made struct {
	offer    market.Offer
	raw      []byte
	standing market.Standing
}

// makeOffers makes offers on all cores. which chooses the rig of each.
func makeOffers(seed uint64, count int, which func(*rand.Rand, int) int) []made {
	list := make([]made, count)
	workers := runtime.GOMAXPROCS(0)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(w)))
			for i := w; i < count; i += workers {
				o := newOffer(random, which(random, i))
				list[i] = made{o, sealedAs(random, &o), newStanding(random, &o)}
			}
		})
	}
	group.Wait()
	return list
}

// makeChanges renews some of the offers with other prices and other free slots.
func makeChanges(seed uint64) []made {
	return makeOffers(1<<40+seed, tableChanges, func(random *rand.Rand, _ int) int { return random.IntN(tableOffers) })
}

// hash is the same for the same number: keys and cards stay when an offer is renewed.
func hash(words ...int) market.Hash {
	var b []byte
	for _, w := range words {
		b = binary.AppendVarint(b, int64(w))
	}
	return market.HashOf(b)
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// newOffer makes the offer of a rig: some models are frequent, most rigs have one or two cards, some images are on many of them. What a rig
// is stays; its price, its disk and its leases change from one call to the next.
func newOffer(random *rand.Rand, rig int) market.Offer {
	is := rand.New(rand.NewPCG(uint64(rig), 1)) // what the rig is
	o := markettest.Offer()
	o.Rig, o.Name, o.Simulated = market.Key(hash(rig, 1)), "rig-"+strconv.Itoa(rig), false
	o.Owner = o.Rig
	o.Issued = markettest.Now + random.Int64N(time.Minute.Milliseconds())
	o.Seq, o.Expires = o.Issued, o.Issued+market.MaxOfferLife.Milliseconds()
	card := pick(is, card{"RTX_4090", 24564, 89, 450}, card{"RTX_4080", 16376, 89, 320}, card{"RTX_3090", 24576, 86, 350},
		card{"RTX_3060", 12288, 86, 170}, card{"H100", 81559, 90, 700}, card{"A100", 81920, 80, 400}, card{"L40S", 46068, 89, 350},
		card{"GTX_1060", 6144, 61, 120})
	o.Slots = nil
	for i := range pick(is, 1, 1, 1, 1, 2, 2, 4, 8) {
		s := card.slot(uint8(i), hash(rig, 2, i))
		if random.IntN(2) == 0 {
			s.LeasedUntil = o.Issued + random.Int64N(24*time.Hour.Milliseconds())
		}
		o.Slots = append(o.Slots, s)
	}
	o.Host = market.HostFacts{
		CPU: pick(is, "AMD Ryzen 9 7950X", "AMD Ryzen 5 3600", "AMD EPYC 7763", "Intel Xeon Gold 6338"), SlotThreads: pick[int64](is, 4, 8, 16),
		SlotMemory: pick[int64](is, 8, 16, 32, 64) << 30, DiskFree: random.Int64N(4e12), Kernel: "6." + strconv.Itoa(is.IntN(15)) + ".0-13-amd64",
		Driver: pick(is, "550.54.15", "560.35.03", "570.86.10"), CUDA: pick(is, "12.4", "12.6", "12.8"), Isolation: "runc-userns",
		Protections: []string{"capabilities", "disk-quota", "memory", "network", "no-new-privs", "pids", "seccomp", "user-namespace"},
	}
	for range is.IntN(4) {
		image := is.IntN(1 + is.IntN(200)) // the first ones are on most rigs
		o.Host.Images = append(o.Host.Images, market.ImageName{
			Name: "image-" + strconv.Itoa(image), Digest: "sha256:" + hash(3, image).String(), Size: int64(image+1) * 100_000_000,
		})
	}
	o.Net = market.NetFacts{Reach: pick(is, "direct", "direct", "punched", "relayed"), Country: pick(is, "DE", "NL", "US", "US", "FR", "PL", "SE", "KR", "JP")}
	o.Prices = market.Prices{Currency: "USD", Slot: market.Rate(1000 * (100 + random.Int64N(1000))), Disk: 100}
	o.History = &market.ChainEnd{Count: is.Int64N(200) + 1, Hash: hash(rig, 4)}
	return o
}

type card struct {
	model           string
	mib, cc, powerW int64
}

func (c card) slot(index uint8, id market.Hash) market.Slot {
	gen, width, power, off := int64(4), int64(16), c.powerW*1000, false
	return market.Slot{
		Index: index, Kind: market.SlotCard, Card: id, Vendor: "NVIDIA", Model: c.model, RawModel: "NVIDIA GeForce " + c.model, Memory: c.mib << 20,
		Usable: (c.mib - 300) << 20, Compute: &c.cc, PCIeGen: &gen, PCIeWidth: &width, PowerLimit: &power, ECC: &off, Display: &off, Health: "fit",
	}
}

// sealedAs returns an offer as it travels, with a signature that is as random as a real one.
func sealedAs(random *rand.Rand, o *market.Offer) []byte {
	s := market.SealOffer(markettest.Network, markettest.Rig(), *o)
	for at := range s.Sigs[0].Bytes {
		s.Sigs[0].Bytes[at] = byte(random.Uint32())
	}
	s.Sigs[0].Key = o.Rig
	return s.Encode()
}

func newStanding(random *rand.Rand, o *market.Offer) market.Standing {
	return market.Standing{
		Source: pick(random, market.SourceSnapshot, market.SourceSnapshot, market.SourceOwner), Sources: 1 + random.Int64N(3), Heard: o.Issued,
		FirstSeen: markettest.Now - random.Int64N(30*24*time.Hour.Milliseconds()),
	}
}
