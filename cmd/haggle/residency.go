package main

import (
	"slices"
	"strings"

	"haggle/internal/cli"
	"haggle/internal/view"
	"haggle/market"
)

// parseResidency reads DE,NL:address; "" is no clause.
func parseResidency(text string) (*view.Residency, error) {
	if text == "" {
		return nil, nil // no clause is none, and no fault
	}
	list, level, given := strings.Cut(text, ":")
	r := &view.Residency{Level: market.ResidencyLevel(level)}
	if !given {
		r.Level = market.ResidencyClaimed
	}
	const hint = "write countries by two letters each and one of claimed, address and round-trip, such as --residency DE,NL:address"
	if !slices.Contains([]market.ResidencyLevel{market.ResidencyClaimed, market.ResidencyAddress, market.ResidencyRoundTrip}, r.Level) {
		return nil, cli.Usage("--residency: "+level+" is no level of proof", hint)
	}
	for _, c := range strings.Split(list, ",") {
		c = strings.ToUpper(strings.TrimSpace(c))
		if len(c) != 2 || strings.Trim(c, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
			return nil, cli.Usage("--residency: "+c+" is no country", hint)
		}
		r.Countries = append(r.Countries, c)
	}
	slices.Sort(r.Countries)
	r.Countries = slices.Compact(r.Countries)
	return r, nil
}

// place says where a job may run, and what spoke for it when the lease was signed.
func place(r *view.Residency) string {
	if r == nil {
		return ""
	}
	in := "in " + strings.Join(r.Countries, ", ") + " only, "
	switch r.Level {
	case market.ResidencyAddress:
		return in + "signed by the rig; its address was there when this side signed"
	case market.ResidencyRoundTrip:
		return in + "signed by the rig; its address was there when this side signed, and the round trip fitted"
	}
	return in + "signed by the rig, on its word"
}

// residencyWords completes levels of proof behind the countries.
func residencyWords(typed string) []string {
	list, _, _ := strings.Cut(typed, ":")
	if list == "" {
		return nil
	}
	return []string{list + ":claimed\tthe rig says so", list + ":address\tits address lies there", list + ":round-trip\tand the round trip fits"}
}
