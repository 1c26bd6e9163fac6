package view

import (
	"slices"
	"time"

	"haggle/market"
)

// Money is an amount for people and programs.
type Money struct {
	Micro    int64  `json:"micro"`    // millionths of the unit
	Text     string `json:"text"`     // decimal, such as 0.40
	Currency string `json:"currency"` // such as USD
}

// MoneyOf makes an amount.
func MoneyOf(m market.Micro, currency string) Money {
	return Money{Micro: int64(m), Text: m.String(), Currency: market.Printable(currency)}
}

// Offer is one offer as a list shows it. Everything in it is claimed by the rig, but for what stands behind Source.
type Offer struct {
	ID          string             `json:"id" doc:"first digits of the offer's hash; changes when the rig renews it"`
	Hash        string             `json:"hash"`
	Rig         string             `json:"rig" doc:"the rig's own name"`
	RigKey      string             `json:"rig_key"`
	Owner       string             `json:"owner_key" doc:"of the rig: what is owed is owed to it"`
	Model       string             `json:"gpu_name"`
	Vendor      string             `json:"gpu_vendor"`
	Slots       int                `json:"slots" doc:"slots of this model"`
	Free        int                `json:"free" doc:"slots of this model that are free and match the query"`
	Also        []string           `json:"also,omitempty" doc:"other models of the rig that match; a query by name shows them alone"`
	MemoryGiB   int64              `json:"gpu_ram_gib"`
	Price       Money              `json:"price" doc:"per slot-hour"`
	DiskPrice   Money              `json:"disk_price" doc:"per GB-hour"`
	InPrice     Money              `json:"traffic_in_price" doc:"per GB"`
	OutPrice    Money              `json:"traffic_out_price" doc:"per GB"`
	Reach       string             `json:"reach"`
	Country     string             `json:"geolocation,omitempty"`
	Isolation   string             `json:"isolation"`
	Images      []string           `json:"images"`
	Bidders     string             `json:"bidders" doc:"who may bid: anyone, or trusted: owners whose key the rig's owner trusts"`
	Pays        []market.PayMethod `json:"pays" doc:"ways in which a lease can be paid ahead"`
	OnCredit    bool               `json:"on_credit" doc:"a lease may be owed and settled later"`
	Shown       int64              `json:"accepted_outcomes,omitempty" doc:"ended leases whose outcome both signed, as the rig counts them; their renters are unknown to you"`
	Egress      bool               `json:"egress" doc:"jobs reach the internet"`
	Content     string             `json:"content,omitempty" doc:"what the rig's owner allows"`
	Protections []string           `json:"protections,omitempty" doc:"what stands between a job and the machine and was seen to hold"`
	Weak        []string           `json:"weak,omitempty" doc:"what does not hold"`
	Simulated   bool               `json:"simulated"`
	Rentable    bool               `json:"rentable" doc:"bids are taken; otherwise the cards are only shown"`
	ExpiresIn   int64              `json:"expires_in_s"`
	Claims      []Claim            `json:"claims,omitempty" doc:"what only the owner or a maker can state"`
	Source      string             `json:"source" doc:"who told this agent: owner, snapshot for another's shelf, remembered for its own disk; claimed where it does not say"`
	AgeS        *int64             `json:"age_s,omitempty" doc:"since the owner's word was last had; absent where it is unknown"`
	Sources     int64              `json:"sources,omitempty" doc:"that hold the offer"`
	SeenS       *int64             `json:"seen_s,omitempty" doc:"since its owner was first seen; absent where it is unknown"`
	GivenName   string             `json:"given_name,omitempty" doc:"that you gave the rig or its owner"`
	RTTMs       *float64           `json:"rtt_ms,omitempty" doc:"shortest round trip; absent where it is unknown"`
	Leases      int64              `json:"leases,omitempty" doc:"that you had with its owner"`
	Checked     bool               `json:"checked,omitempty" doc:"you measured a card, and its speed was as claimed"`
	Residency   string             `json:"residency_proof,omitempty" doc:"what speaks for its country: refuted, claimed, address or round-trip"`
	Total       *Money             `json:"total,omitempty" doc:"whole price of your job: slots, disk and traffic for its time"`
	StartS      *int64             `json:"start_s,omitempty" doc:"until your job starts, rounded up; absent where it is unknown"`
	Why         *Why               `json:"why,omitempty"`
	SlotDetail  []market.Slot      `json:"slot_detail,omitempty"`
	Host        market.HostFacts   `json:"host,omitzero"`
	Rules       market.Rules       `json:"rules,omitzero"`
}

// OfferOfRow makes the view of an offer as one renter sees it, with the free slots that match a query. detail adds slots, host and rules.
func OfferOfRow(r market.Row, hash market.Hash, free []uint8, detail bool) Offer {
	v := OfferOf(*r.Offer, hash, free, time.UnixMilli(r.Now), detail)
	why := WhyOf(market.Why(r))
	v.Why, v.Residency = &why, string(r.Residency())
	if total, known := r.Total(); known {
		m := MoneyOf(total, r.Offer.Prices.Currency)
		v.Total = &m
	}
	if ms, known := r.StartMs(); known {
		v.StartS = seconds(ms + 999)
	}
	s := r.Standing
	if s == nil {
		return v
	}
	v.Sources, v.GivenName, v.Leases, v.Checked = s.Sources, market.Printable(s.Name), s.Leases, s.Checked
	if s.Source != "" {
		v.Source = market.Printable(s.Source)
	}
	if s.Heard > 0 {
		v.AgeS = seconds(r.Now - s.Heard)
	}
	if s.FirstSeen > 0 {
		v.SeenS = seconds(r.Now - s.FirstSeen)
	}
	if s.RTT != nil {
		ms := float64(*s.RTT) / 1000
		v.RTTMs = &ms
	}
	return v
}

func seconds(ms int64) *int64 {
	s := max(0, ms) / 1000
	return &s
}

// OfferOf makes the view of an offer with the free slots that match a query. detail adds slots, host and rules.
func OfferOf(o market.Offer, hash market.Hash, free []uint8, now time.Time, detail bool) Offer {
	first := o.Slots[0]
	if len(free) > 0 {
		for _, s := range o.Slots {
			if s.Index == free[0] {
				first = s
			}
		}
	}
	v := Offer{
		ID: hash.String()[:8], Hash: hash.String(), Rig: market.Printable(o.Name), RigKey: o.Rig.String(), Owner: o.Owner.String(),
		Model: market.Printable(first.Model), Vendor: market.Printable(first.Vendor),
		MemoryGiB: (first.Memory + 1<<29) >> 30,
		Price:     MoneyOf(market.Micro(o.Prices.Slot), o.Prices.Currency), DiskPrice: MoneyOf(market.Micro(o.Prices.Disk), o.Prices.Currency),
		InPrice: MoneyOf(market.Micro(o.Prices.In), o.Prices.Currency), OutPrice: MoneyOf(market.Micro(o.Prices.Out), o.Prices.Currency),
		Reach: market.Printable(o.Net.Reach), Country: market.Printable(o.Net.Country), Isolation: market.Printable(o.Host.Isolation),
		Images: []string{}, Simulated: o.Simulated, Rentable: o.State == market.OfferOpen, ExpiresIn: (o.Expires - now.UnixMilli()) / 1000, Source: "claimed",
	}
	v.Bidders, v.Egress, v.Content = market.Printable(o.Rules.Bidders), o.Rules.Egress, market.Printable(o.Rules.Content)
	v.Pays, v.OnCredit = append([]market.PayMethod{}, o.Pays...), o.Rules.Credit != 0
	if o.History != nil {
		v.Shown = o.History.Count
	}
	for _, c := range o.Claims {
		v.Claims = append(v.Claims, Claim{Name: market.Printable(c.Name), Text: c.Show(), Registered: c.IsRegistered()})
	}
	v.Protections, v.Weak = o.Host.Protections, o.Host.Weak // names, by the offer's own rules
	v.count(o, first.Model, free)
	for _, i := range o.Host.Images {
		v.Images = append(v.Images, market.Printable(i.Name))
	}
	if detail {
		v.SlotDetail, v.Host, v.Rules = o.Slots, o.Host, o.Rules
	}
	return v
}

// count counts the slots of the model that stands for the offer, and names the others that match.
func (v *Offer) count(o market.Offer, model string, free []uint8) {
	for _, s := range o.Slots {
		matches := slices.Contains(free, s.Index)
		switch {
		case s.Model == model:
			v.Slots++
			if matches {
				v.Free++
			}
		case matches && !slices.Contains(v.Also, market.Printable(s.Model)):
			v.Also = append(v.Also, market.Printable(s.Model))
		}
	}
}
