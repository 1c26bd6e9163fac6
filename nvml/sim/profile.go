package sim

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// profilesJSON is the data of every profile; nothing writes to it.
//
//go:embed profiles.json
var profilesJSON []byte

// profile is what the simulator knows about a model. Each names its source: what is not measured is said to be chosen.
type profile struct {
	Model             string `json:"model"`
	RawName           string `json:"raw_name"`
	MemoryMiB         int64  `json:"memory_mib"`
	ReservedMiB       int64  `json:"reserved_mib"`
	ComputeCapability int    `json:"compute_capability"`
	PCIeGen           int    `json:"pcie_gen"`
	PCIeWidth         int    `json:"pcie_width"`
	ECC               bool   `json:"ecc"`
	MIG               bool   `json:"mig"`
	IdleMilliWatt     int64  `json:"idle_milliwatt"`
	BusyMilliWatt     int64  `json:"busy_milliwatt"`
	IdleMHz           int    `json:"idle_mhz"`
	BaseMHz           int    `json:"base_mhz"`
	BoostMHz          int    `json:"boost_mhz"`
	LimitC            int    `json:"limit_c"`
	MilliCPerWatt     int    `json:"milli_c_per_watt"`
	LagSeconds        int    `json:"lag_seconds"`
	Source            string `json:"source"`
}

// Profiles returns the names of all profiles, which are normalised models such as "RTX_4090".
func Profiles() []string {
	all, err := loadProfiles()
	if err != nil {
		return nil // the data is part of the program; a test reads it
	}
	names := make([]string, 0, len(all))
	for _, p := range all {
		names = append(names, p.Model)
	}
	return names
}

func loadProfiles() ([]profile, error) {
	dec := json.NewDecoder(bytes.NewReader(profilesJSON))
	dec.DisallowUnknownFields()
	var all []profile
	if err := dec.Decode(&all); err != nil {
		return nil, fmt.Errorf("read card profiles: %w", err)
	}
	return all, nil
}

// findProfile returns the profile of that name, in any case.
func findProfile(all []profile, name string) (profile, error) {
	var names []string
	for _, p := range all {
		if strings.EqualFold(p.Model, name) {
			return p, nil
		}
		names = append(names, p.Model)
	}
	return profile{}, fmt.Errorf("no card profile %.64q, there are %s", name, strings.Join(names, ", "))
}

// physics returns the model's laws in a room of that temperature.
func (p profile) physics(ambientC int) physics {
	return physics{
		idle:       p.IdleMilliWatt,
		busy:       p.BusyMilliWatt,
		ambient:    float64(ambientC),
		limit:      float64(p.LimitC),
		resistance: float64(p.MilliCPerWatt) / 1000,
		lag:        time.Duration(p.LagSeconds) * time.Second,
		idleMHz:    p.IdleMHz,
		baseMHz:    p.BaseMHz,
		boostMHz:   p.BoostMHz,
	}
}
