package nvml

import (
	"fmt"
	"strings"
	"time"
)

// Bounds beyond which a reading is taken for garbage.
const (
	maxMilliWatt int64 = 10_000_000
	maxClockMHz        = 20_000
	maxCount     int64 = 1 << 60
)

// Sample is what a card did at one moment. Counters are cumulative, so a lost sample costs nothing.
type Sample struct {
	// UUID names the card.
	UUID string `json:"uuid"`
	// At is the time since the driver was opened, by the driver's own monotonic clock. It never goes back.
	At time.Duration `json:"at_ns"`
	// UtilPermille is the share of time in which the card computed, 0 to 1000.
	UtilPermille Opt[int] `json:"util_permille,omitzero"`
	// MemUsedBytes is the memory in use, by whomever.
	MemUsedBytes Opt[int64] `json:"mem_used_bytes,omitzero"`
	// PowerMilliWatt is the power drawn now.
	PowerMilliWatt Opt[int64] `json:"power_mw,omitzero"`
	// EnergyMilliJoule is the energy drawn since the driver was opened or earlier; it never falls while it is open.
	EnergyMilliJoule Opt[int64] `json:"energy_mj,omitzero"`
	// TemperatureC is the processor's temperature in degrees Celsius.
	TemperatureC Opt[int] `json:"temperature_c,omitzero"`
	// ClockMHz is the processors' clock.
	ClockMHz Opt[int] `json:"clock_mhz,omitzero"`
	// ThrottleReasons says what holds the clock down.
	ThrottleReasons Opt[Throttle] `json:"throttle_reasons,omitzero"`
	// ECCUncorrected and ECCCorrected count memory errors since the card's last reset.
	ECCUncorrected Opt[int64] `json:"ecc_uncorrected,omitzero"`
	ECCCorrected   Opt[int64] `json:"ecc_corrected,omitzero"`
}

// Validate returns an error when a reading lies outside what any card can do.
func (s Sample) Validate() error {
	if err := validText(s.UUID); err != nil {
		return fmt.Errorf("sample: uuid %w", err)
	}
	if s.At < 0 {
		return fmt.Errorf("sample of %s: taken at %s", s.UUID, s.At)
	}
	if t := s.ThrottleReasons; t.State > Stale || t.Value&^throttleAll != 0 {
		return fmt.Errorf("sample of %s: throttle reasons %d in state %d", s.UUID, uint32(t.Value), uint8(t.State))
	}
	for _, f := range []struct {
		name   string
		value  Opt[int]
		lo, hi int
	}{
		{"utilisation", s.UtilPermille, 0, 1000},
		{"temperature", s.TemperatureC, -60, 250},
		{"clock", s.ClockMHz, 0, maxClockMHz},
	} {
		if err := inRange(f.value, f.lo, f.hi); err != nil {
			return fmt.Errorf("sample of %s: %s %w", s.UUID, f.name, err)
		}
	}
	for _, f := range []struct {
		name  string
		value Opt[int64]
		hi    int64
	}{
		{"memory in use", s.MemUsedBytes, maxCount},
		{"power", s.PowerMilliWatt, maxMilliWatt},
		{"energy", s.EnergyMilliJoule, maxCount},
		{"uncorrected errors", s.ECCUncorrected, maxCount},
		{"corrected errors", s.ECCCorrected, maxCount},
	} {
		if err := inRange(f.value, 0, f.hi); err != nil {
			return fmt.Errorf("sample of %s: %s %w", s.UUID, f.name, err)
		}
	}
	return nil
}

// Throttle is a set of reasons for a lowered clock; zero means that nothing holds the card down. In JSON it is the
// names joined by "+", or "none".
type Throttle uint32

// The reasons. Only HeatHard and PowerBrake mean that the card cannot do what it was sold for.
const (
	// ThrottleIdle: nothing to do.
	ThrottleIdle Throttle = 1 << iota
	// ThrottlePowerCap: the power limit is reached, as is normal under full load.
	ThrottlePowerCap
	// ThrottleSetting: somebody asked for a lower clock.
	ThrottleSetting
	// ThrottleHeatSoft: the driver lowers the clock to stay cool.
	ThrottleHeatSoft
	// ThrottleHeatHard: the card itself slows down because it is too hot.
	ThrottleHeatHard
	// ThrottlePowerBrake: the power supply told the card to slow down.
	ThrottlePowerBrake
	// ThrottleOther: a reason that is none of the above.
	ThrottleOther

	throttleAll = ThrottleOther<<1 - 1
)

func throttleNames() [7]string {
	return [...]string{"idle", "power_cap", "setting", "heat_soft", "heat_hard", "power_brake", "other"}
}

// Degrades reports whether one of the reasons takes away speed that the card was sold with.
func (t Throttle) Degrades() bool { return t&(ThrottleHeatHard|ThrottlePowerBrake) != 0 }

// String returns the names of the reasons joined by "+", or "none".
func (t Throttle) String() string {
	var names []string
	for i, name := range throttleNames() {
		if t&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if rest := t &^ throttleAll; rest != 0 {
		names = append(names, fmt.Sprintf("%#x", uint32(rest)))
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, "+")
}

// MarshalText writes what String returns; unknown bits are an error.
func (t Throttle) MarshalText() ([]byte, error) {
	if t&^throttleAll != 0 {
		return nil, fmt.Errorf("unknown throttle reasons %#x", uint32(t&^throttleAll))
	}
	return []byte(t.String()), nil
}

// UnmarshalText reads what MarshalText writes.
func (t *Throttle) UnmarshalText(text []byte) error {
	if len(text) > maxText {
		return fmt.Errorf("throttle reasons longer than %d bytes", maxText)
	}
	*t = 0
	if string(text) == "none" {
		return nil
	}
next:
	for part := range strings.SplitSeq(string(text), "+") {
		for i, name := range throttleNames() {
			if part == name {
				*t |= 1 << i
				continue next
			}
		}
		return fmt.Errorf("unknown throttle reason %q", part)
	}
	return nil
}
