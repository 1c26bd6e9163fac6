//go:build linux

package rig

import (
	"errors"

	"haggle/internal/assemble/rigcore"
	"haggle/internal/config"
	"haggle/market"
	"haggle/nvml"
)

// ErrNoCards says that the rig has nothing to offer.
var ErrNoCards = errors.New("no cards: this version offers simulated cards in labs only; set cards.simulated and a network that begins with lab-")

// openCards opens the driver of the rig's cards. Simulated ones are never a fallback: they are asked for by name, and the
// configuration takes them on lab networks only.
func openCards(cfg config.Rig, key market.Key) (nvml.Driver, error) {
	if len(cfg.Cards.Simulated) == 0 {
		return nil, ErrNoCards
	}
	return rigcore.SimulatedCards(cfg, key)
}
