//go:build linux

package rig

import (
	"errors"
	"fmt"

	"haggle/internal/config"
	"haggle/market"
	"haggle/nvml"
	"haggle/nvml/sim"
)

// ErrNoCards says that the rig has nothing to offer.
var ErrNoCards = errors.New("no cards: this version offers simulated cards in labs only; set cards.simulated and a network that begins with lab-")

// openCards opens the driver of the rig's cards. Simulated ones are never a fallback: they are asked for by name, and the
// configuration takes them on lab networks only.
func openCards(cfg config.Rig, key market.Key) (nvml.Driver, error) {
	if len(cfg.Cards.Simulated) == 0 {
		return nil, ErrNoCards
	}
	asked := sim.Config{Serial: key.String()}
	for _, c := range cfg.Cards.Simulated {
		asked.Cards = append(asked.Cards, sim.CardConfig{Profile: c.Profile, Count: c.Count})
	}
	driver, err := sim.New(asked)
	if err != nil {
		return nil, fmt.Errorf("simulated cards: %w", err)
	}
	return driver, nil
}

// prices reads the owner's price list.
func prices(cfg config.Rig) (market.Prices, error) {
	if err := cfg.CheckPrices(); err != nil {
		return market.Prices{}, err
	}
	p := market.Prices{Currency: cfg.Prices.Currency}
	for _, line := range []struct {
		text string
		rate *market.Rate
	}{{cfg.Prices.Slot, &p.Slot}, {cfg.Prices.Disk, &p.Disk}, {cfg.Prices.TrafficIn, &p.In}, {cfg.Prices.TrafficOut, &p.Out}} {
		m, err := market.ParseMicro(line.text)
		if err != nil {
			return market.Prices{}, fmt.Errorf("prices: %w", err)
		}
		*line.rate = market.Rate(m)
	}
	return p, nil
}

// rules turns the owner's rules into the market's. A lab's credit is unlimited; nothing else is granted so far.
func rules(r config.Rules) market.Rules {
	out := market.Rules{
		MinMs: r.Min.Milliseconds(), MaxMs: r.Max.Milliseconds(), IntervalMs: r.Interval.Milliseconds(), FirstMs: r.First.Milliseconds(),
		GraceMs: r.Grace.Milliseconds(), NoticeMs: r.Notice.Milliseconds(), MaxUnattended: r.MaxUnattended.Milliseconds(), Credit: market.Unlimited,
	}
	if r.MaxUnattended == config.Unlimited {
		out.MaxUnattended = market.Unlimited
	}
	return out
}
