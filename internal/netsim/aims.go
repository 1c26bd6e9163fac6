package netsim

import (
	"errors"
	"fmt"
)

// Aims of every network, and of one of 100 000 rigs beside one of 1 000.
const (
	maxP95      = 3000.0 // ms
	maxGrowth   = 1.5    // of the median first screen from 1 000 to 100 000 rigs
	maxIdle     = 2000.0 // B/s, both directions together
	maxMessages = 100.0
	maxScreenKB = 200.0
	maxBusiest  = 5.0
	minFound    = 99.0 // %
)

// Judge returns the aims that measurements miss.
func Judge(all []*Measurement) error {
	var errs []error
	small := 0.0
	for _, m := range all {
		atMost := func(name string, value, aim float64) {
			if !(value <= aim) {
				errs = append(errs, fmt.Errorf("%d rigs: %s is %.1f, aim at most %.1f", m.Rigs, name, value, aim))
			}
		}
		atMost(ScreenP95, m.Get(ScreenP95), maxP95)
		atMost(ScreenMsgs, m.Get(ScreenMsgs), maxMessages)
		atMost(ScreenKB, m.Get(ScreenKB), maxScreenKB)
		atMost(IdleMean, m.Get(IdleMean), maxIdle)
		atMost(Busiest, m.Get(Busiest), maxBusiest)
		if found := m.Get(Hostile); !(found >= minFound) {
			errs = append(errs, fmt.Errorf("%d rigs: %s: %.2f %%, aim at least %.0f", m.Rigs, Hostile, found, minFound))
		}
		switch m.Rigs {
		case 1000:
			small = m.Get(ScreenP50)
		case 100_000:
			if small > 0 {
				atMost("growth of the first screen since 1000 rigs", m.Get(ScreenP50)/small, maxGrowth)
			}
		}
	}
	return errors.Join(errs...)
}
