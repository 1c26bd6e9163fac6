package market_test

import (
	"testing"

	"haggle/market"
	"haggle/market/markettest"
)

func TestWhatSpeaksForACountry(t *testing.T) {
	rtt := func(us int64) *int64 { return &us }
	for _, c := range []struct {
		country string
		s       *market.Standing
		want    market.ResidencyLevel
	}{
		{"", &market.Standing{AddressCountry: "DE"}, ""},
		{"DE", nil, market.ResidencyClaimed},
		{"DE", &market.Standing{RTT: rtt(1000)}, market.ResidencyClaimed},
		{"DE", &market.Standing{AddressCountry: "NL", RTT: rtt(1000)}, market.ResidencyRefuted},
		{"de", &market.Standing{AddressCountry: "DE"}, market.ResidencyAddress},
		{"DE", &market.Standing{AddressCountry: "DE", RTT: rtt(10_001)}, market.ResidencyAddress},
		{"DE", &market.Standing{AddressCountry: "DE", RTT: rtt(10_000)}, market.ResidencyRoundTrip},
	} {
		o := marketOffer("attic", marketSlot(0, "RTX_4090", 24564))
		o.Net.Country = c.country
		r := market.Row{Offer: &o, Standing: c.s}
		if got := r.Residency(); got != c.want {
			t.Errorf("%q with %+v: %q, want %q", c.country, c.s, got, c.want)
		}
		if _, ok := mustParse(t, "residency_proof>=address").MatchRow(r); ok != (c.want == market.ResidencyAddress || c.want == market.ResidencyRoundTrip) {
			t.Errorf("%q with %+v: the query says %t", c.country, c.s, ok)
		}
	}
}

func TestAResidencyClauseBindsBothSides(t *testing.T) {
	o := markettest.Offer()
	o.Net.Country = "DE"
	sealed := market.SealOffer(markettest.Network, markettest.Rig(), o)
	b := markettest.Bid()
	b.Offer, b.Residency = sealed.Hash(), &market.Residency{Countries: []string{"DE", "NL"}, Level: market.ResidencyAddress}
	if err := market.Admit(o, b.Offer, b, markettest.Now); err != nil {
		t.Fatalf("a rig in one of the countries: %v", err)
	}
	bid := market.SealBid(markettest.Network, markettest.Renter(), b)
	if read, _, err := market.OpenBid(markettest.Network, bid.Encode()); err != nil || read.Residency == nil || read.Residency.Level != market.ResidencyAddress {
		t.Fatalf("the bid was read as %+v: %v", read.Residency, err)
	}
	slots, err := market.Pick(o, b)
	if err != nil {
		t.Fatal(err)
	}
	terms := market.Grant(o, b, bid.Hash(), slots, markettest.Now, market.Nonce{1})
	if err := market.CheckGrant(terms, o, b, bid.Hash(), markettest.Now); err != nil {
		t.Errorf("the grant: %v", err)
	}
	read, _, err := market.OpenGrant(markettest.Network, market.SealTerms(markettest.Network, markettest.Rig(), terms).Encode())
	if err != nil || read.Residency == nil || len(read.Residency.Countries) != 2 {
		t.Errorf("the terms were read as %+v: %v", read.Residency, err)
	}
	for name, other := range map[string]*market.Residency{"none": nil, "less": {Countries: []string{"DE", "NL"}, Level: market.ResidencyClaimed}} {
		forged := terms
		forged.Residency = other
		if err := market.CheckGrant(forged, o, b, bid.Hash(), markettest.Now); market.Public(err).Arg("field") != "residency" {
			t.Errorf("a grant with %s: %v", name, err)
		}
	}
	for _, country := range []string{"US", ""} {
		o.Net.Country = country
		if err := market.Admit(o, b.Offer, b, markettest.Now); market.CodeOf(err) != market.CodeResidency {
			t.Errorf("a rig in %q: %v", country, err)
		}
	}
}

func TestARenterAsksForWhatItsClauseSays(t *testing.T) {
	o := marketOffer("attic", marketSlot(0, "RTX_4090", 24564))
	row := market.Row{Offer: &o, Standing: &market.Standing{AddressCountry: "DE"}}
	for level, want := range map[market.ResidencyLevel]bool{
		market.ResidencyClaimed: true, market.ResidencyAddress: true, market.ResidencyRoundTrip: false,
	} {
		if got := (&market.Residency{Countries: []string{"DE"}, Level: level}).Proves(row); got != want {
			t.Errorf("%s: %t", level, got)
		}
	}
	var none *market.Residency
	if !none.Proves(row) || (&market.Residency{Countries: []string{"NL"}, Level: market.ResidencyClaimed}).Proves(row) {
		t.Error("no clause asks nothing, and one of another country is not met")
	}
	row.Standing.AddressCountry = "FR"
	if (&market.Residency{Countries: []string{"DE"}, Level: market.ResidencyClaimed}).Proves(row) {
		t.Error("a refuted claim passes")
	}
}

func TestABadResidencyClauseIsRefused(t *testing.T) {
	for name, r := range map[string]market.Residency{
		"no country": {Level: market.ResidencyClaimed}, "order": {Countries: []string{"NL", "DE"}, Level: market.ResidencyClaimed},
		"small": {Countries: []string{"de"}, Level: market.ResidencyClaimed}, "level": {Countries: []string{"DE"}, Level: "sure"},
		"refuted": {Countries: []string{"DE"}, Level: market.ResidencyRefuted}, "twice": {Countries: []string{"DE", "DE"}, Level: market.ResidencyClaimed},
	} {
		b := markettest.Bid()
		b.Residency = &r
		if err := b.Validate(); market.CodeOf(err) != market.CodeBadRecord {
			t.Errorf("%s: %v", name, err)
		}
	}
}
