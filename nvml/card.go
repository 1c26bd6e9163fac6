package nvml

import (
	"errors"
	"fmt"
	"strings"
)

// The vendors that this package knows by name. A simulated card has no other vendor than VendorSimulated.
const (
	VendorNVIDIA    = "NVIDIA"
	VendorAMD       = "AMD"
	VendorIntel     = "INTEL"
	VendorSimulated = "SIMULATED"
)

// SimPrefix begins the UUID of every simulated card and of no other.
const SimPrefix = "SIM-"

// maxText bounds, in bytes, every text that a card tells about itself.
const maxText = 96

// Card is what a physical card says it is. Nothing in it is proof: a card and its driver can lie.
type Card struct {
	// UUID identifies the card for as long as it lives. Publish it only through SaltedHash.
	UUID string `json:"uuid"`
	// Vendor is one of the Vendor constants, or another vendor's name in capitals.
	Vendor string `json:"vendor"`
	// Model is the normalised model, see NormaliseModel.
	Model string `json:"model"`
	// RawName is the name as the driver tells it.
	RawName string `json:"raw_name"`
	// PCIBusID is the card's place on the bus, such as "0000:01:00.0"; a simulated card's begins with "sim:".
	PCIBusID string `json:"pci_bus_id"`
	// Simulated is true when there is no silicon behind the card.
	Simulated bool `json:"simulated"`
	// MemoryBytes is the card's whole memory. It is never zero: a driver leaves out a card that does not tell it.
	MemoryBytes int64 `json:"memory_bytes"`
	// MemoryUsableBytes is MemoryBytes without what the driver keeps for itself.
	MemoryUsableBytes Opt[int64] `json:"memory_usable_bytes,omitzero"`
	// ComputeCapability is ten times the major version plus the minor one: 89 for 8.9.
	ComputeCapability Opt[int] `json:"compute_capability,omitzero"`
	// MaxClockMHz is the highest clock of the card's processors.
	MaxClockMHz Opt[int] `json:"max_clock_mhz,omitzero"`
	// PowerLimitMilliWatt is the limit that the driver enforces now.
	PowerLimitMilliWatt Opt[int64] `json:"power_limit_mw,omitzero"`
	// PCIeGen and PCIeWidth are the link as it runs now; an idle card lowers them. PCIeGenMax and PCIeWidthMax are
	// what card and slot can do together.
	PCIeGen      Opt[int] `json:"pcie_gen,omitzero"`
	PCIeGenMax   Opt[int] `json:"pcie_gen_max,omitzero"`
	PCIeWidth    Opt[int] `json:"pcie_width,omitzero"`
	PCIeWidthMax Opt[int] `json:"pcie_width_max,omitzero"`
	// ECC says whether error correction is switched on; NotSupported on cards without it.
	ECC Opt[bool] `json:"ecc,omitzero"`
	// MIG says whether the card is in the mode that divides it into slices; NotSupported on cards without it.
	MIG Opt[bool] `json:"mig,omitzero"`
	// DisplayAttached says whether a screen hangs on the card, so that its owner may be looking at it.
	DisplayAttached Opt[bool] `json:"display_attached,omitzero"`
}

// Validate returns an error when the card is incomplete, out of bounds or leaves doubt whether it is simulated: UUID
// prefix, vendor and flag must agree.
func (c Card) Validate() error {
	for _, f := range []struct{ name, text string }{
		{"uuid", c.UUID}, {"vendor", c.Vendor}, {"model", c.Model}, {"raw name", c.RawName}, {"pci bus id", c.PCIBusID},
	} {
		if err := validText(f.text); err != nil {
			return fmt.Errorf("card %.96q: %s %w", c.UUID, f.name, err)
		}
	}
	sim := strings.HasPrefix(c.UUID, SimPrefix)
	if sim != c.Simulated || sim != (c.Vendor == VendorSimulated) {
		return fmt.Errorf("card %s: prefix, vendor %s and simulated=%t disagree", c.UUID, c.Vendor, c.Simulated)
	}
	return c.validNumbers()
}

func (c Card) validNumbers() error {
	if c.MemoryBytes <= 0 {
		return fmt.Errorf("card %s: memory of %d bytes", c.UUID, c.MemoryBytes)
	}
	if v, ok := c.MemoryUsableBytes.Get(); ok && (v <= 0 || v > c.MemoryBytes) {
		return fmt.Errorf("card %s: %d usable of %d bytes", c.UUID, v, c.MemoryBytes)
	}
	for _, f := range []struct {
		name   string
		value  Opt[int]
		lo, hi int
	}{
		{"compute capability", c.ComputeCapability, 10, 999},
		{"maximal clock", c.MaxClockMHz, 1, maxClockMHz},
		{"pcie generation", c.PCIeGen, 1, 16},
		{"maximal pcie generation", c.PCIeGenMax, 1, 16},
		{"pcie width", c.PCIeWidth, 1, 64},
		{"maximal pcie width", c.PCIeWidthMax, 1, 64},
	} {
		if err := inRange(f.value, f.lo, f.hi); err != nil {
			return fmt.Errorf("card %s: %s %w", c.UUID, f.name, err)
		}
	}
	if err := inRange(c.PowerLimitMilliWatt, 1, maxMilliWatt); err != nil {
		return fmt.Errorf("card %s: power limit %w", c.UUID, err)
	}
	return nil
}

// validText accepts what can be shown on a terminal: printable ASCII, not empty, bounded.
func validText(s string) error {
	if s == "" {
		return errors.New("is empty")
	}
	if len(s) > maxText {
		return fmt.Errorf("is longer than %d bytes", maxText)
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return errors.New("has a byte that is not printable ASCII")
		}
	}
	return nil
}

// inRange refuses a usable or stale value outside lo..hi and a state that does not exist.
func inRange[T int | int64](o Opt[T], lo, hi T) error {
	if o.State > Stale {
		return fmt.Errorf("has the unknown state %d", uint8(o.State))
	}
	if (o.State == OK || o.State == Stale) && (o.Value < lo || o.Value > hi) {
		return fmt.Errorf("of %d is outside %d..%d", o.Value, lo, hi)
	}
	return nil
}
