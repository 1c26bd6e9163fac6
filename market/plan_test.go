package market_test

import (
	"testing"

	"pgregory.net/rapid"

	"haggle/market"
)

func TestAPlanNamesTheCheapestTheQuickestAndTheSafest(t *testing.T) {
	rows := []market.Row{
		standingRow("cheap", 100_000, nil, func(o *market.Offer) { o.Host.Images, o.Rules.Brings, o.Prices.Disk = nil, true, 0 }),
		standingRow("quick", 300_000, nil, func(o *market.Offer) { o.Net.Reach = "relayed" }),
		standingRow("safe", 500_000, &market.Standing{Leases: 4, Link: point(int64(8_000_000))}, func(o *market.Offer) { o.Host.Images, o.Rules.Brings = nil, true }),
		standingRow("dear", 9_000_000, &market.Standing{Checked: true}, nil),
		standingRow("euro", 10, &market.Standing{Checked: true}, func(o *market.Offer) { o.Prices.Currency = "EUR" }),
		standingRow("listed", 10, &market.Standing{Checked: true}, func(o *market.Offer) { o.State = market.OfferListed }),
	}
	job := market.JobShape{Slots: 1, DurationMs: 7_200_000, Image: "train", ImageBytes: point(int64(1_000_000_000))}
	p := market.PlanFor(mustParse(t, "gpu=RTX_4090"), rows, 2_000_000, "USD", job)
	if p.Matching != 6 || p.Fitting != 3 || p.Nearest != nil {
		t.Fatalf("%+v", p)
	}
	if p.Cheapest.Row != 0 || p.Cheapest.Total != 200_000 || p.Cheapest.StartMs != nil || p.Cheapest.LastsMs != 72_000_000 {
		t.Errorf("cheapest %+v", p.Cheapest)
	}
	if p.Quickest.Row != 1 || *p.Quickest.StartMs != 0 || p.Quickest.Why != "nothing must be sent first, and its card does 82.6TFLOPS" {
		t.Errorf("quickest %+v", p.Quickest)
	}
	if p.Safest.Row != 2 || p.Safest.Why != "you had a lease or a measurement there" || *p.Safest.StartMs != 1_000_000 {
		t.Errorf("safest %+v", p.Safest)
	}
	job.DurationMs = 0
	p = market.PlanFor(market.Query{}, rows, 2_000_000, "USD", job)
	if p.Cheapest.Row != 0 || p.Cheapest.RunMs != 72_000_000 || p.Cheapest.Total > 2_000_000 {
		t.Errorf("for as long as it lasts: %+v", p.Cheapest)
	}
}

func TestAPlanWithoutATimeTakesTheCheaperOfTwoThatAreEquallySafe(t *testing.T) {
	rows := []market.Row{standingRow("dear", 2_700_001, nil, nil), standingRow("cheap", 190_000, nil, nil)}
	p := market.PlanFor(market.Query{}, rows, 2_000_000, "USD", market.JobShape{Slots: 1})
	if p.Safest == nil || p.Safest.Row != 1 {
		t.Errorf("safest: %+v", p.Safest)
	}
}

func TestAPlanForTooLittleSaysWhatIsNearest(t *testing.T) {
	rows := []market.Row{standingRow("a", 500_000, nil, nil), standingRow("b", 400_000, nil, nil)}
	job := market.JobShape{Slots: 1, DurationMs: 36_000_000}
	p := market.PlanFor(mustParse(t, "gpu=RTX_4090"), rows, 2_000_000, "USD", job)
	if p.Fitting != 0 || p.Cheapest != nil || p.Nearest == nil || p.Nearest.Row != 1 ||
		p.Nearest.Why != "the job costs 4.01 USD there; the budget lasts 5 hours" {
		t.Errorf("too dear: %+v %+v", p, p.Nearest)
	}
	p = market.PlanFor(mustParse(t, "gpu=H100"), rows, 2_000_000, "USD", job)
	if p.Matching != 0 || p.Nearest == nil || p.Nearest.Funnel == nil || p.Nearest.Funnel.Nearest.Missed[0].Value != "RTX_4090" {
		t.Errorf("no match: %+v", p.Nearest)
	}
	p = market.PlanFor(market.Query{}, nil, 2_000_000, "USD", job)
	if p.Nearest == nil || p.Nearest.Row != -1 {
		t.Errorf("no offers: %+v", p.Nearest)
	}
}

func TestNoChoiceOfAPlanIsBeyondItsBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.Custom(drawRow), 0, 5).Draw(t, "rows")
		budget := market.Micro(rapid.Int64Range(1, 3_000_000).Draw(t, "budget"))
		job := market.JobShape{Slots: rapid.IntRange(0, 3).Draw(t, "slots"), DurationMs: rapid.Int64Range(0, 10).Draw(t, "hours") * 3_600_000}
		p := market.PlanFor(market.Query{}, rows, budget, "USD", job)
		if (p.Fitting > 0) != (p.Cheapest != nil && p.Quickest != nil && p.Safest != nil) || (p.Fitting > 0) == (p.Nearest != nil) {
			t.Fatalf("%+v", p)
		}
		for _, c := range []*market.Choice{p.Cheapest, p.Quickest, p.Safest} {
			if c == nil {
				continue
			}
			priced := job
			priced.DurationMs = c.RunMs
			row := rows[c.Row]
			row.Job = &priced
			total, known := row.Total()
			if !known || total != c.Total || total > budget || c.RunMs == 0 || c.RunMs > row.Offer.Rules.MaxMs || total < p.Cheapest.Total && job.DurationMs > 0 {
				t.Fatalf("%+v costs %s of %s", c, total, budget)
			}
		}
	})
}
