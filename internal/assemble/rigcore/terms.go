package rigcore

import (
	"fmt"

	"haggle/internal/config"
	"haggle/market"
	"haggle/nvml"
	"haggle/nvml/sim"
)

// SimulatedCards opens the simulated cards that a configuration asks for; it takes them on lab networks only.
func SimulatedCards(cfg config.Rig, rig market.Key) (nvml.Driver, error) {
	asked := sim.Config{Serial: rig.String()}
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
