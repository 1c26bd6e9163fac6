package market_test

import (
	"crypto/ed25519"
	"strings"
	"testing"

	"haggle/market"
)

func point[T any](v T) *T { return &v }

// marketKey returns the public key of a seed of equal bytes.
func marketKey(seed byte) market.Key {
	return market.KeyOf(ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune(seed&0x7f)), ed25519.SeedSize))))
}

// marketSlot returns a free card with nothing left unsaid. Memory is in MiB, as drivers tell it.
func marketSlot(index uint8, model string, mib int64) market.Slot {
	return market.Slot{
		Index: index, Kind: market.SlotCard, Vendor: "NVIDIA", Model: model, RawModel: "NVIDIA GeForce " + model,
		Memory: mib << 20, Usable: mib << 20, Compute: point(int64(89)), PCIeGen: point(int64(4)), PCIeWidth: point(int64(16)),
		PowerLimit: point(int64(450_000)), ECC: point(false), Display: point(false), Health: "fit",
	}
}

// marketOffer returns a valid open offer of a rig in Germany at 0.40 USD.
func marketOffer(name string, slots ...market.Slot) market.Offer {
	return market.Offer{
		Rig: marketKey(1), Owner: marketKey(1), Name: name, ID: name + "-1", Seq: 1, Issued: 1, Expires: 600_001,
		State: market.OfferOpen, Slots: slots,
		Host: market.HostFacts{
			CPU: "AMD Ryzen 9", SlotThreads: 8, SlotMemory: 32 << 30, DiskFree: 500_000_000_000, Kernel: "6.12",
			Driver: "550.54.15", CUDA: "12.4", Isolation: "runc",
			Images: []market.ImageName{{Name: "train", Digest: "sha256:0", Size: 1}, {Name: "bench", Digest: "sha256:1", Size: 1}},
		},
		Net:    market.NetFacts{Reach: "direct", Country: "DE"},
		Prices: market.Prices{Currency: "USD", Slot: 400_000, Disk: 100},
		Rules: market.Rules{
			MinMs: 60_000, MaxMs: 86_400_000, IntervalMs: 60_000, FirstMs: 10_000, GraceMs: 120_000,
			NoticeMs: 60_000, Egress: true, Bidders: market.BiddersAnyone,
		},
	}
}

func mustParse(t testing.TB, text string) market.Query {
	t.Helper()
	q, err := market.ParseQuery(text)
	if err != nil {
		t.Fatalf("ParseQuery(%q): %v (%s)", text, err, market.Explain(err).Hint)
	}
	return q
}
