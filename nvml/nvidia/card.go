//go:build linux && cgo

package nvidia

import (
	"fmt"

	nv "github.com/NVIDIA/go-nvml/pkg/nvml"

	"haggle/nvml"
)

// Bounds beyond which a reading of the library is taken for garbage; those of nvml.Card.
const (
	maxClockMHz  = 20_000
	maxMilliWatt = 10_000_000
	maxCount     = int64(1) << 60
)

// describe asks a card what it is. It returns an error for a card that does not tell its memory.
func describe(p *probe, dev nv.Device, uuid string) (*nvml.Card, error) {
	c := &nvml.Card{UUID: uuid, Vendor: nvml.VendorNVIDIA, RawName: nvml.UnknownModel, PCIBusID: "unknown"}
	if name, ok := ask(p, "GetName", dev.GetName).Get(); ok && name != "" {
		c.RawName = printable(name, maxUUID)
	}
	c.Model = nvml.NormaliseModel(c.RawName)
	if pci, ok := ask(p, "GetPciInfo", dev.GetPciInfo).Get(); ok {
		c.PCIBusID = fmt.Sprintf("%04x:%02x:%02x.0", pci.Domain, pci.Bus, pci.Device)
	}
	if err := describeMemory(p, dev, c); err != nil {
		return nil, err
	}
	c.ComputeCapability = within(ask(p, "GetCudaComputeCapability", func() (int, nv.Return) {
		major, minor, ret := dev.GetCudaComputeCapability()
		return 10*major + minor, ret
	}), 10, 999)
	c.MaxClockMHz = within(ask(p, "GetMaxClockInfo", func() (uint32, nv.Return) {
		return dev.GetMaxClockInfo(nv.CLOCK_SM)
	}), 1, maxClockMHz)
	// The enforced limit, since cards of laptops do not tell the one that was set.
	c.PowerLimitMilliWatt = within(ask(p, "GetEnforcedPowerLimit", dev.GetEnforcedPowerLimit), 1, int64(maxMilliWatt))
	c.PCIeGen = within(ask(p, "GetCurrPcieLinkGeneration", dev.GetCurrPcieLinkGeneration), 1, 16)
	c.PCIeGenMax = within(ask(p, "GetMaxPcieLinkGeneration", dev.GetMaxPcieLinkGeneration), 1, 16)
	c.PCIeWidth = within(ask(p, "GetCurrPcieLinkWidth", dev.GetCurrPcieLinkWidth), 1, 64)
	c.PCIeWidthMax = within(ask(p, "GetMaxPcieLinkWidth", dev.GetMaxPcieLinkWidth), 1, 64)
	c.ECC = as(ask(p, "GetEccMode", func() (nv.EnableState, nv.Return) {
		now, _, ret := dev.GetEccMode()
		return now, ret
	}), enabled)
	c.MIG = as(ask(p, "GetMigMode", func() (int, nv.Return) {
		now, _, ret := dev.GetMigMode()
		return now, ret
	}), func(mode int) (bool, bool) { return enabled(nv.EnableState(mode)) })
	c.DisplayAttached = as(ask(p, "GetDisplayMode", dev.GetDisplayMode), enabled)
	return c, nil
}

// describeMemory fills in the card's memory. Only the newer of the two calls tells what the driver keeps for itself.
func describeMemory(p *probe, dev nv.Device, c *nvml.Card) error {
	v2 := ask(p, "GetMemoryInfo_v2", dev.GetMemoryInfo_v2)
	if m, ok := v2.Get(); ok && m.Total > 0 && m.Total <= uint64(maxCount) {
		c.MemoryBytes = int64(m.Total)
		c.MemoryUsableBytes = nvml.None[int64](nvml.Failed)
		if m.Reserved < m.Total {
			c.MemoryUsableBytes = nvml.Some(int64(m.Total - m.Reserved))
		}
		return nil
	}
	v1 := ask(p, "GetMemoryInfo", dev.GetMemoryInfo)
	m, ok := v1.Get()
	if !ok || m.Total == 0 || m.Total > uint64(maxCount) {
		return fmt.Errorf("its memory is %s", v1.State)
	}
	c.MemoryBytes = int64(m.Total)
	c.MemoryUsableBytes = nvml.None[int64](v2.State)
	return nil
}

func enabled(s nv.EnableState) (on, ok bool) {
	return s == nv.FEATURE_ENABLED, s == nv.FEATURE_ENABLED || s == nv.FEATURE_DISABLED
}
