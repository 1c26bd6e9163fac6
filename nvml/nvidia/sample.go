//go:build linux && cgo

package nvidia

import (
	nv "github.com/NVIDIA/go-nvml/pkg/nvml"

	"haggle/nvml"
)

// read asks a card how it fares. The parent stamps the sample: the clock is its own.
func read(p *probe, dev nv.Device, uuid string) *nvml.Sample {
	s := &nvml.Sample{UUID: uuid}
	util := ask(p, "GetUtilizationRates", dev.GetUtilizationRates)
	s.UtilPermille = as(util, func(u nv.Utilization) (int, bool) { return 10 * int(u.Gpu), u.Gpu <= 100 })
	memory := ask(p, "GetMemoryInfo", dev.GetMemoryInfo)
	s.MemUsedBytes = as(memory, func(m nv.Memory) (int64, bool) {
		return int64(m.Used), m.Used <= m.Total && m.Used <= uint64(maxCount)
	})
	s.PowerMilliWatt = within(ask(p, "GetPowerUsage", dev.GetPowerUsage), 0, int64(maxMilliWatt))
	s.EnergyMilliJoule = within(ask(p, "GetTotalEnergyConsumption", dev.GetTotalEnergyConsumption), 0, maxCount)
	s.TemperatureC = within(ask(p, "GetTemperature", func() (uint32, nv.Return) {
		return dev.GetTemperature(nv.TEMPERATURE_GPU)
	}), 0, 250)
	s.ClockMHz = within(ask(p, "GetClockInfo", func() (uint32, nv.Return) {
		return dev.GetClockInfo(nv.CLOCK_SM)
	}), 0, maxClockMHz)
	reasons := ask(p, "GetCurrentClocksEventReasons", dev.GetCurrentClocksEventReasons)
	if reasons.State == nvml.NoSymbol {
		reasons = ask(p, "GetCurrentClocksThrottleReasons", dev.GetCurrentClocksThrottleReasons)
	}
	s.ThrottleReasons = as(reasons, throttle)
	s.ECCUncorrected = within(ask(p, "GetTotalEccErrors", func() (uint64, nv.Return) {
		return dev.GetTotalEccErrors(nv.MEMORY_ERROR_TYPE_UNCORRECTED, nv.VOLATILE_ECC)
	}), 0, maxCount)
	s.ECCCorrected = within(ask(p, "GetTotalEccErrors", func() (uint64, nv.Return) {
		return dev.GetTotalEccErrors(nv.MEMORY_ERROR_TYPE_CORRECTED, nv.VOLATILE_ECC)
	}), 0, maxCount)
	return s
}

// throttle translates the library's reasons for a lowered clock.
func throttle(bits uint64) (nvml.Throttle, bool) {
	var t nvml.Throttle
	for _, x := range []struct {
		bit    uint64
		reason nvml.Throttle
	}{
		{nv.ClocksEventReasonGpuIdle, nvml.ThrottleIdle},
		{nv.ClocksEventReasonSwPowerCap, nvml.ThrottlePowerCap},
		{nv.ClocksEventReasonApplicationsClocksSetting, nvml.ThrottleSetting},
		{nv.ClocksEventReasonSyncBoost, nvml.ThrottleSetting},
		{nv.ClocksEventReasonDisplayClockSetting, nvml.ThrottleSetting},
		{nv.ClocksEventReasonSwThermalSlowdown, nvml.ThrottleHeatSoft},
		{nv.ClocksThrottleReasonHwThermalSlowdown, nvml.ThrottleHeatHard},
		{nv.ClocksThrottleReasonHwPowerBrakeSlowdown, nvml.ThrottlePowerBrake},
		{nv.ClocksEventReasonBoardLimit, nvml.ThrottlePowerCap},
		{nv.ClocksEventReasonReliability, nvml.ThrottleOther},
	} {
		if bits&x.bit != 0 {
			t |= x.reason
			bits &^= x.bit
		}
	}
	// The card slows itself down. With heat or brake beside it, it says nothing more; alone it means that the power drawn
	// was too much, at once.
	if bits&uint64(nv.ClocksThrottleReasonHwSlowdown) != 0 && !t.Degrades() {
		t |= nvml.ThrottlePowerBrake
	}
	if bits&^uint64(nv.ClocksThrottleReasonHwSlowdown) != 0 {
		t |= nvml.ThrottleOther
	}
	return t, true
}
