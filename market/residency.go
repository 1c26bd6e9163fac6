package market

import (
	"slices"
	"strings"
)

// ResidencyLevel says what speaks for the country in which a rig stands.
type ResidencyLevel string

// Levels of proof, from the least. A country is never proven to a machine: an address can be routed on, and a round trip bounds a
// distance and not a border.
const (
	// ResidencyRefuted: the address at which I reached the rig lies in another country than it claims.
	ResidencyRefuted ResidencyLevel = "refuted"
	// ResidencyClaimed: the rig says so.
	ResidencyClaimed ResidencyLevel = "claimed"
	// ResidencyAddress: the public address at which I reached the rig itself lies there, by a table.
	ResidencyAddress ResidencyLevel = "address"
	// ResidencyRoundTrip: and the round trip bounds its distance from me to ResidencyKm at most.
	ResidencyRoundTrip ResidencyLevel = "round-trip"
)

const (
	// ResidencyKm is the distance in km within which a round trip says something about a country: 10 ms.
	ResidencyKm = 1000
	// kmPerMs is the distance that one millisecond of a round trip allows at most: light in fibre does 200 km a millisecond, one way.
	kmPerMs = 100
)

func residencyLevels() []ResidencyLevel {
	return []ResidencyLevel{ResidencyRefuted, ResidencyClaimed, ResidencyAddress, ResidencyRoundTrip}
}

// Residency returns what speaks for an offer's country; "" where it claims none.
func (r *Row) Residency() ResidencyLevel {
	if v := residencyValue(r); v.known {
		return residencyLevels()[v.num]
	}
	return ""
}

// residencyValue is the place of the level among all.
func residencyValue(r *Row) value {
	s := r.Standing
	switch country := r.Offer.Net.Country; {
	case country == "":
		return value{}
	case s == nil || s.AddressCountry == "":
		return number(1)
	case !strings.EqualFold(country, s.AddressCountry):
		return number(0)
	}
	if within := s.within(); within.known && within.num <= ResidencyKm {
		return number(3)
	}
	return number(2)
}

// within is the distance in km that the round trip does not let the rig exceed.
func (s *Standing) within() value {
	if s.RTT == nil || *s.RTT < 0 {
		return value{}
	}
	return number(*s.RTT/1000*kmPerMs + (*s.RTT%1000*kmPerMs+999)/1000)
}

// Residency is the clause of a bid and of its lease about where the job runs.
type Residency struct {
	Countries []string       `cbor:"1,keyasint" json:"countries"` // two capital letters each, ascending; at least one
	Level     ResidencyLevel `cbor:"2,keyasint" json:"level"`     // what the renter asked for: claimed, address or round-trip
}

// maxCountries bounds a residency clause: there are fewer than 256 countries' names, and a list that long asks nothing.
const maxCountries = 64

// validate says what is wrong with a clause, or "". nil is fine: there is none then.
func (r *Residency) validate() string {
	switch {
	case r == nil:
		return ""
	case len(r.Countries) == 0 || len(r.Countries) > maxCountries:
		return "its residency names no country or too many"
	case r.Level == ResidencyRefuted || !slices.Contains(residencyLevels(), r.Level):
		return "its residency has an unknown level of proof"
	}
	for i, c := range r.Countries {
		if len(c) != 2 || strings.Trim(c, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" || i > 0 && c <= r.Countries[i-1] {
			return "its residency's countries are not in order or not two capital letters"
		}
	}
	return ""
}

func (r *Residency) equal(s *Residency) bool {
	if r == nil || s == nil {
		return r == s
	}
	return r.Level == s.Level && slices.Equal(r.Countries, s.Countries)
}

// Admits reports whether an offer claims to stand in one of the countries. nil admits every offer.
func (r *Residency) Admits(o Offer) bool {
	return r == nil || slices.Contains(r.Countries, strings.ToUpper(o.Net.Country))
}

// Proves reports whether a renter sees enough to sign: the country is one of the clause's, and what speaks for it is at least its level.
// nil asks nothing.
func (r *Residency) Proves(row Row) bool {
	if r == nil {
		return true
	}
	level := slices.Index(residencyLevels(), row.Residency())
	return r.Admits(*row.Offer) && level >= slices.Index(residencyLevels(), r.Level)
}
