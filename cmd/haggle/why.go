package main

import (
	"cmp"
	"strconv"

	"haggle/internal/view"
	"haggle/market"
)

// jobPrice is the whole price of the user's job on an offer, and when it starts.
func jobPrice(o view.Offer, job view.JobShape) string {
	if o.Total == nil {
		return ""
	}
	const hour = 3_600_000
	text := money(*o.Total) + " for " + lasting(cmp.Or(job.DurationMs, hour)) + " of " + cards(max(job.GPUs, 1), o.Model, o.Simulated, o.Isolation)
	if job.Image == "" {
		return text
	}
	switch {
	case o.StartS == nil:
		return text + ", when it starts is not known"
	case *o.StartS == 0:
		return text + ", starts at once"
	}
	return text + ", starts in about " + lasting(*o.StartS*1000)
}

// standsIn says where a rig stands and what speaks for it.
func standsIn(o view.Offer) string {
	if o.Country == "" {
		return ""
	}
	switch market.ResidencyLevel(o.Residency) {
	case market.ResidencyAddress:
		return o.Country + ", and its address lies there"
	case market.ResidencyRoundTrip:
		return o.Country + ", and its address lies there and the round trip fits"
	case market.ResidencyRefuted:
		return o.Country + ", but its address lies elsewhere"
	}
	return o.Country + ", as it claims"
}

// heardFrom says whose word an offer is.
func heardFrom(o view.Offer) string {
	text := o.Source
	switch o.Source {
	case market.SourceOwner:
		text = "from the rig itself"
	case market.SourceSnapshot:
		text = "from another rig's shelf"
	case market.SourceRemembered:
		text = "from this machine's disk"
	}
	if o.AgeS != nil {
		text += ", " + old(*o.AgeS) + " ago"
	}
	if o.Sources > 1 {
		text += "; " + strconv.FormatInt(o.Sources, 10) + " told of it"
	}
	if o.SeenS != nil {
		text += "; its rig is known for " + old(*o.SeenS)
	}
	return text
}

// printClaims shows what only the owner or a maker can state.
func (p *program) printClaims(claims []view.Claim) error {
	if len(claims) == 0 {
		return nil
	}
	rows := make([][]string, 0, len(claims))
	for _, c := range claims {
		name := c.Name
		if !c.Registered {
			name = "claim." + name
		}
		rows = append(rows, []string{name, c.Text})
	}
	p.Show("")
	return p.Table("CLAIM VALUE", rows)
}

// printWhy shows what speaks for an offer, what does not, and the worst case.
func (p *program) printWhy(o view.Offer) error {
	if o.Why == nil {
		return nil
	}
	for _, part := range []struct {
		title string
		facts []market.Fact
	}{{"checked by you", o.Why.Checked}, {"only claimed", o.Why.Claimed}, {"not known", o.Why.Unknown}} {
		if len(part.facts) == 0 {
			continue
		}
		p.Show("")
		p.Show("%s", part.title)
		for _, f := range part.facts {
			p.Show("  %s", clean(f.Text))
		}
	}
	p.Show("")
	p.Show("%s", clean(o.Why.Worst.Text))
	return nil
}
