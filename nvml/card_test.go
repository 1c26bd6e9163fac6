package nvml_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"haggle/nvml"
)

func goodCard() nvml.Card {
	return nvml.Card{
		UUID: "GPU-1f3a", Vendor: nvml.VendorNVIDIA, Model: "RTX_4090", RawName: "NVIDIA GeForce RTX 4090",
		PCIBusID: "0000:01:00.0", MemoryBytes: 24 << 30, MemoryUsableBytes: nvml.Some[int64](23 << 30),
		ComputeCapability: nvml.Some(89), ECC: nvml.None[bool](nvml.NotSupported),
	}
}

func TestCardIsCheckedBeforeItIsBelieved(t *testing.T) {
	if err := goodCard().Validate(); err != nil {
		t.Fatalf("a good card is refused: %v", err)
	}
	for name, spoil := range map[string]func(*nvml.Card){
		"no uuid":                    func(c *nvml.Card) { c.UUID = "" },
		"a long name":                func(c *nvml.Card) { c.RawName = strings.Repeat("x", 97) },
		"a terminal escape":          func(c *nvml.Card) { c.RawName = "RTX\x1b[2J" },
		"no memory":                  func(c *nvml.Card) { c.MemoryBytes = 0 },
		"more usable than there is":  func(c *nvml.Card) { c.MemoryUsableBytes = nvml.Some[int64](25 << 30) },
		"an odd compute capability":  func(c *nvml.Card) { c.ComputeCapability = nvml.Some(8) },
		"a negative power limit":     func(c *nvml.Card) { c.PowerLimitMilliWatt = nvml.Some[int64](-1) },
		"a state that is none":       func(c *nvml.Card) { c.PCIeGen = nvml.Opt[int]{State: 200} },
		"a simulated flag alone":     func(c *nvml.Card) { c.Simulated = true },
		"a simulated vendor alone":   func(c *nvml.Card) { c.Vendor = nvml.VendorSimulated },
		"a simulated uuid alone":     func(c *nvml.Card) { c.UUID = "SIM-1f3a" },
		"a simulated uuid, no flag":  func(c *nvml.Card) { c.UUID, c.Vendor = "SIM-1f3a", nvml.VendorSimulated },
		"a real uuid, the rest sim.": func(c *nvml.Card) { c.Simulated, c.Vendor = true, nvml.VendorSimulated },
	} {
		c := goodCard()
		spoil(&c)
		if err := c.Validate(); err == nil {
			t.Errorf("a card with %s passes", name)
		}
	}
}

func TestSampleIsCheckedBeforeItIsBelieved(t *testing.T) {
	good := nvml.Sample{UUID: "GPU-1", UtilPermille: nvml.Some(1000), TemperatureC: nvml.Some(60)}
	if err := good.Validate(); err != nil {
		t.Fatalf("a good sample is refused: %v", err)
	}
	for name, spoil := range map[string]func(*nvml.Sample){
		"no uuid":               func(s *nvml.Sample) { s.UUID = "" },
		"time before the start": func(s *nvml.Sample) { s.At = -1 },
		"more than all load":    func(s *nvml.Sample) { s.UtilPermille = nvml.Some(1001) },
		"a burning card":        func(s *nvml.Sample) { s.TemperatureC = nvml.Some(1000) },
		"negative energy":       func(s *nvml.Sample) { s.EnergyMilliJoule = nvml.Some[int64](-1) },
		"a power station":       func(s *nvml.Sample) { s.PowerMilliWatt = nvml.Some[int64](1 << 40) },
		"unknown reasons":       func(s *nvml.Sample) { s.ThrottleReasons = nvml.Some(nvml.Throttle(1 << 30)) },
		"stale nonsense":        func(s *nvml.Sample) { s.ClockMHz = nvml.Some(-5).Aged() },
	} {
		s := good
		spoil(&s)
		if err := s.Validate(); err == nil {
			t.Errorf("a sample with %s passes", name)
		}
	}
}

func TestSaltedHashHidesTheUUID(t *testing.T) {
	h := nvml.SaltedHash([]byte("salt"), "GPU-1f3a")
	// printf 'haggle/card\0\0\0\0\0\0\0\0\4saltGPU-1f3a' | sha256sum
	const want = "a73a8d338278b0f1d0ef3855d36f30c105fca6cab4e76d2f050d722db1d2b5fe"
	if got := hex.EncodeToString(h[:]); got != want {
		t.Errorf("hash %s, want %s", got, want)
	}
	if nvml.SaltedHash([]byte("salt"), "GPU-1f3b") == h || nvml.SaltedHash([]byte("pepper"), "GPU-1f3a") == h {
		t.Error("another card or another salt gives the same hash")
	}
	if nvml.SaltedHash([]byte("saltG"), "PU-1f3a") == h {
		t.Error("the border between salt and uuid does not count")
	}
}
