package rigcore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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

// credit reads what a trusted owner may owe; 0 leaves it to the network: a lab's is unlimited unless its rig says otherwise.
func credit(cfg config.Rig) (market.Micro, error) {
	if market.IsLab(cfg.Network) && cfg.Origin("rules.credit") == config.FromDefault {
		return 0, nil
	}
	m, err := market.ParseMicro(cfg.Rules.Credit)
	if err != nil {
		return 0, fmt.Errorf("credit: %w", err)
	}
	return m, nil
}

// claims reads what the owner says of the rig, in the order of offers.
func claims(cfg config.Rig) ([]market.Claim, error) {
	var list []market.Claim
	for _, pair := range cfg.ClaimPairs() {
		c, err := market.NewClaim(pair[0], pair[1])
		if err != nil {
			return nil, fmt.Errorf("claims: %w", err)
		}
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b market.Claim) int { return strings.Compare(a.Name, b.Name) })
	for i := range len(list) {
		if i > 0 && list[i-1].Name == list[i].Name {
			return nil, fmt.Errorf("claims: %s is there twice", list[i].Name)
		}
	}
	return list, nil
}

// listCards bounds the time in which a rig's cards are counted.
const listCards = 10 * time.Second

// bandwidth divides what jobs may take of the household's line equally among the cards: bits a second out of a job and into it
// that come with each. 0 promises nothing, as where the line is not known or jobs have no network.
func (r *Rig) bandwidth(ctx context.Context) (up, down int64, err error) {
	line := r.cfg.Rig.Line
	if r.cfg.Rig.JobNetwork() != config.NetworkInternet || line.Up == 0 && line.Down == 0 {
		return 0, 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, listCards)
	defer cancel()
	cards, err := r.cards.Cards(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("count the cards that share the line: %w", err)
	}
	slots := int64(min(len(cards), market.MaxSlots))
	return perSlot(line.Up, line.ShareUp, slots), perSlot(line.Down, line.ShareDown, slots), nil
}

// perSlot is one slot's part of a share, in percent, of a line of bits a second. Less than an engine can limit a job to is
// not promised.
func perSlot(line, share, slots int64) int64 {
	const least = 8000
	if slots == 0 {
		return 0
	}
	if part := line / 100 * share / slots; part >= least {
		return part
	}
	return 0
}

// rules turns the owner's rules into the market's; the host fills in who may bid, and for how much credit.
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
