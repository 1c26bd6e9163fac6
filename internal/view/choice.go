package view

import (
	"strings"

	"haggle/market"
)

// Claim is something that only a rig's owner or a card's maker can state.
type Claim struct {
	Name string `json:"name"`
	Text string `json:"text" doc:"the value, with its unit where the claim is a registered one"`
	// Registered claims have a unit and a meaning that everybody shares.
	Registered bool `json:"registered"`
}

// Why is why an offer stands where it stands.
type Why struct {
	Checked []market.Fact `json:"checked" doc:"what this agent saw itself"`
	Claimed []market.Fact `json:"claimed" doc:"what only the rig says"`
	Unknown []market.Fact `json:"unknown" doc:"what nobody told"`
	Worst   Worst         `json:"worst" doc:"the most that can be lost to a rig that takes the money and does nothing"`
}

// Worst is the worst case of a lease by its own rules.
type Worst struct {
	Known bool   `json:"known"`
	Money *Money `json:"money,omitempty" doc:"absent where it is not known"`
	Ms    int64  `json:"ms"`
	Text  string `json:"text" doc:"such as: worst case you lose 0.06 USD and 10 minutes"`
}

// WhyOf makes the view of reasons.
func WhyOf(r market.Reasons) Why {
	v := Why{Checked: r.Checked, Claimed: r.Claimed, Unknown: r.Unknown, Worst: Worst{Known: r.Worst.Known, Ms: r.Worst.Ms, Text: r.Worst.Text}}
	if r.Worst.Known {
		m := MoneyOf(r.Worst.Money, r.Worst.Currency)
		v.Worst.Money = &m
	}
	return v
}

// Facet counts the values of one field among the offers that the rest of a query leaves.
type Facet = market.Facet

// PlanRequest asks what a budget buys.
type PlanRequest struct {
	Query       string `json:"query"`
	BudgetMicro int64  `json:"budget_micro"`
	Currency    string `json:"currency,omitempty" doc:"USD by default"`
	GPUs        int    `json:"gpus,omitempty" doc:"slots, 1 by default"`
	DurationMs  int64  `json:"duration_ms,omitempty" doc:"running time; none: as long as the budget lasts"`
	DiskMB      int64  `json:"disk_mb,omitempty"`
	InMB        int64  `json:"in_mb,omitempty" doc:"traffic into the job"`
	OutMB       int64  `json:"out_mb,omitempty" doc:"traffic out of the job"`
	Image       string `json:"image,omitempty"`
	ImageBytes  int64  `json:"image_bytes,omitempty" doc:"size of the image where it would be sent; 0 is unknown"`
}

// Plan answers a PlanRequest: three ways of spending the budget. Two of them may be one offer.
type Plan struct {
	Budget   Money     `json:"budget"`
	Matching int       `json:"matching" doc:"offers that match the query"`
	Fitting  int       `json:"fitting" doc:"of them, those on which the job fits the budget and the rules"`
	Cheapest *Choice   `json:"cheapest,omitempty"`
	Quickest *Choice   `json:"quickest,omitempty"`
	Safest   *Choice   `json:"safest,omitempty"`
	Nearest  *PlanMiss `json:"nearest,omitempty" doc:"where nothing fits"`
}

// Choice is one offer of a plan.
type Choice struct {
	Offer   Offer  `json:"offer"`
	Total   Money  `json:"total" doc:"what the job costs"`
	RunMs   int64  `json:"run_ms" doc:"for which it runs at that price"`
	LastsMs int64  `json:"lasts_ms" doc:"for which the whole budget would last"`
	StartMs *int64 `json:"start_ms,omitempty" doc:"until it starts; absent where it is unknown"`
	Why     string `json:"why"`
}

// PlanMiss is what comes nearest where nothing fits.
type PlanMiss struct {
	Offer  *Offer  `json:"offer,omitempty"`
	Why    string  `json:"why"`
	Total  *Money  `json:"total,omitempty"`
	Funnel *Funnel `json:"funnel,omitempty" doc:"where no offer matches the query at all"`
}

// PlanOf makes the view of a plan; offer makes that of one row that was asked, by its index and the slots that match.
func PlanOf(p market.Plan, offer func(row int, slots []uint8) Offer) Plan {
	choice := func(c *market.Choice) *Choice {
		if c == nil {
			return nil
		}
		return &Choice{
			Offer: offer(c.Row, c.Slots), Total: MoneyOf(c.Total, p.Currency), RunMs: c.RunMs, LastsMs: c.LastsMs, StartMs: c.StartMs, Why: c.Why,
		}
	}
	v := Plan{
		Budget: MoneyOf(p.Budget, p.Currency), Matching: p.Matching, Fitting: p.Fitting,
		Cheapest: choice(p.Cheapest), Quickest: choice(p.Quickest), Safest: choice(p.Safest),
	}
	if n := p.Nearest; n != nil {
		v.Nearest = &PlanMiss{Why: n.Why}
		if n.Row >= 0 {
			o := offer(n.Row, nil)
			v.Nearest.Offer = &o
		}
		if n.Funnel != nil {
			v.Nearest.Funnel = FunnelOf(*n.Funnel, func(row int) string { return offer(row, nil).Rig })
		}
		if n.Total > 0 {
			m := MoneyOf(n.Total, p.Currency)
			v.Nearest.Total = &m
		}
	}
	return v
}

// FunnelOf makes the view of a funnel; name is that of one offer that was asked, by its index, safe to print.
func FunnelOf(told market.Funnel, name func(row int) string) *Funnel {
	v := &Funnel{Known: told.Offers, Steps: []FunnelStep{}}
	for _, s := range told.Steps {
		v.Steps = append(v.Steps, FunnelStep{Clause: s.Clause, Left: s.Left})
	}
	if miss := told.Nearest; miss != nil {
		parts := make([]string, len(miss.Missed))
		for i, m := range miss.Missed {
			parts[i] = m.Clause + " (it is " + m.Value + ")"
		}
		v.Nearest = name(miss.Offer) + " misses " + strings.Join(parts, ", ")
	}
	return v
}
