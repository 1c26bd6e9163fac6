package view_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"haggle/internal/view"
	"haggle/market"
	"haggle/market/markettest"
)

func viewRow() market.Row {
	o := markettest.PaidOffer()
	red, rtt := "r\x1bed", int64(12_300)
	o.Claims = []market.Claim{{Name: "paint", Text: &red}}
	return market.Row{
		Offer: &o, Now: markettest.Now, Job: &market.JobShape{Slots: 1, DurationMs: 3_600_000},
		Standing: &market.Standing{
			FirstSeen: markettest.Now - 7200_000, Heard: markettest.Now - 1500, RTT: &rtt, Source: market.SourceSnapshot, Sources: 2, Name: "anna's",
		},
	}
}

func TestAnOfferIsSeenWithWhatTheRenterKnows(t *testing.T) {
	r := viewRow()
	v := view.OfferOfRow(r, market.Hash{1}, r.Offer.Free(), false)
	switch {
	case v.Source != "snapshot" || v.Sources != 2 || *v.AgeS != 1 || *v.SeenS != 7200 || *v.RTTMs != 12.3 || v.GivenName != "anna's":
		t.Errorf("standing: %+v", v)
	case v.Total == nil || v.Total.Micro == 0 || v.StartS == nil || *v.StartS != 0:
		t.Errorf("job: total %+v, start %v", v.Total, v.StartS)
	case len(v.Claims) != 1 || v.Claims[0] != view.Claim{Name: "paint", Text: "red"}:
		t.Errorf("claims %+v", v.Claims)
	case v.Why == nil || !strings.HasPrefix(v.Why.Worst.Text, "worst case you lose ") || v.Why.Worst.Money == nil:
		t.Errorf("why %+v", v.Why)
	}
	bare := view.OfferOfRow(market.Row{Offer: r.Offer}, market.Hash{1}, nil, false)
	if bare.AgeS != nil || bare.SeenS != nil || bare.RTTMs != nil || bare.Total != nil || bare.StartS != nil || bare.Source != "claimed" {
		t.Errorf("what nobody told is there: %+v", bare)
	}
	if plain := view.OfferOf(*r.Offer, market.Hash{1}, nil, time.UnixMilli(r.Now), false); plain.Why != nil {
		t.Error("an offer alone has reasons")
	}
}

func TestAPlanIsSeenWithItsOffers(t *testing.T) {
	rows := []market.Row{viewRow()}
	offer := func(row int, slots []uint8) view.Offer {
		return view.OfferOfRow(rows[row], market.Hash{1}, slots, false)
	}
	job := market.JobShape{Slots: 1, DurationMs: 3_600_000}
	p := view.PlanOf(market.PlanFor(market.Query{}, rows, 5_000_000, "USD", job), offer)
	if p.Fitting != 1 || p.Cheapest == nil || p.Cheapest.Offer.Rig == "" || p.Cheapest.Total.Text == "" || p.Nearest != nil {
		t.Errorf("%+v", p)
	}
	p = view.PlanOf(market.PlanFor(market.Query{}, rows, 1, "USD", job), offer)
	if p.Fitting != 0 || p.Nearest == nil || p.Nearest.Offer == nil || p.Nearest.Total == nil {
		t.Errorf("%+v", p.Nearest)
	}
	q, err := market.ParseQuery("gpu=NOTHING")
	if err != nil {
		t.Fatal(err)
	}
	p = view.PlanOf(market.PlanFor(q, rows, 1, "USD", job), offer)
	if f := p.Nearest.Funnel; f == nil || f.Known != 1 || !strings.Contains(f.Nearest, " misses gpu_name=NOTHING (it is ") {
		t.Errorf("%+v", f)
	}
	if _, err := json.Marshal(p); err != nil {
		t.Error(err)
	}
}
