package config

import (
	"fmt"
	"regexp"
	"strings"
)

// countryForm and claimForm are compiled once and never written to.
var (
	countryForm = regexp.MustCompile(`^[A-Z]{2}$`)
	claimForm   = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}=.{1,96}$`)
)

// claimTable has the knobs of what only a rig's owner can say.
func claimTable() []spec[Rig] {
	return []spec[Rig]{
		{
			Knob: Knob{
				Name: "country", Kind: KindText,
				Doc: "The country that the rig stands in, as two capital letters such as DE. None: the offer does not say, and no query by country finds it.",
			},
			field: func(r *Rig) any { return &r.Country }, check: orNothing(checkCountry),
		},
		{
			Knob: Knob{
				Name: "claims", Kind: KindList,
				Doc: "What only you can say of the rig, such as nvlink=true or interconnect=infiniband. Renters see that it is a claim.",
			},
			field: func(r *Rig) any { return &r.Claims }, check: checkClaim,
		},
	}
}

func checkCountry(s string) error {
	if !countryForm.MatchString(s) {
		return fmt.Errorf("is %.20q, which is not a country as two capital letters", s)
	}
	return nil
}

func checkClaim(s string) error {
	if !claimForm.MatchString(s) {
		return fmt.Errorf("holds %.80q, which is not a claim such as nvlink=true", s)
	}
	return nil
}

// ClaimPairs returns the claims as names and values.
func (r Rig) ClaimPairs() [][2]string {
	pairs := make([][2]string, len(r.Claims))
	for i, c := range r.Claims {
		name, value, _ := strings.Cut(c, "=")
		pairs[i] = [2]string{name, value}
	}
	return pairs
}
