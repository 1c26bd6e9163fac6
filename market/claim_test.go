package market_test

import (
	"slices"
	"strings"
	"testing"

	"haggle/market"
	"haggle/market/markettest"
)

func TestAClaimIsReadAsItsNameWants(t *testing.T) {
	for _, c := range []struct{ name, text, shown string }{
		{"nvlink", "true", "true"},
		{"interconnect", "infiniband", "infiniband"},
		{"interconnect_gbps", "400", "400"},
		{"tflops_fp32", "82.6", "82.6TFLOPS"},
		{"feeds", "2", "2"},
		{"paint", "red", "red"},
		{"lit", "false", "false"},
	} {
		claim, err := market.NewClaim(c.name, c.text)
		if err != nil || claim.Show() != c.shown {
			t.Errorf("%s=%s is %q: %v", c.name, c.text, claim.Show(), err)
		}
	}
	for _, c := range []struct {
		name, text string
		code       market.Code
	}{
		{"nvlink", "yes", market.CodeBadUnit},
		{"interconnect_gbps", "fast", market.CodeBadUnit},
		{"interconnect_gbps", "99999999", market.CodeBadUnit},
		{"Paint", "red", market.CodeBadClaim},
		{"", "red", market.CodeBadClaim},
		{"paint", "", market.CodeBadUnit},
		{"paint", strings.Repeat("r", 97), market.CodeBadUnit},
		{"paint", "a\x1b[2J", market.CodeBadUnit},
	} {
		if claim, err := market.NewClaim(c.name, c.text); market.CodeOf(err) != c.code {
			t.Errorf("%s=%q is %+v: %v", c.name, c.text, claim, err)
		}
	}
}

func TestEveryRegisteredClaimHasAUnitOrNeedsNone(t *testing.T) {
	claims := market.Claims()
	if !slices.IsSortedFunc(claims, func(a, b market.ClaimKind) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the claims are not in the order of their names")
	}
	for _, c := range claims {
		if (c.Type == "integer") != (c.Unit != "" && c.Most > 0) || c.Help == "" || c.Source != market.ClaimedByOwner && c.Source != market.ClaimedByMaker {
			t.Errorf("%+v", c)
		}
	}
}

func TestAnOfferKeepsItsClaims(t *testing.T) {
	o := markettest.Offer()
	o.Claims = []market.Claim{
		{Name: "feeds", Int: point(int64(2))}, {Name: "nvlink", Bool: point(true)}, {Name: "paint", Text: point("red")},
	}
	read, _, err := market.OpenOffer(markettest.Network, market.SealOffer(markettest.Network, markettest.Rig(), o).Encode())
	if err != nil || len(read.Claims) != 3 || *read.Claims[2].Text != "red" {
		t.Fatalf("%+v: %v", read.Claims, err)
	}
	for _, c := range []struct {
		query string
		fits  bool
	}{
		{"nvlink=true", true},
		{"claim.nvlink!=true", false},
		{"claim.feeds=2", true},
		{"claim.feeds>1", true},
		{"claim.feeds=1..3", true},
		{"claim.feeds=2*", false},
		{"claim.paint=R?d", true},
		{"claim.paint!=blue", true},
		{"claim.paint>1", false},
		{"claim.paint!=1", true},
		{"claim.none=1", false},
		{"claim.none!=1", false},
		{"raid!=raid1", false},
		{"claim.paint in [blue,red]", true},
	} {
		if _, ok := mustParse(t, c.query).Match(read); ok != c.fits {
			t.Errorf("%q: %t", c.query, ok)
		}
	}
}

func TestAnOfferWithBadClaimsIsRefused(t *testing.T) {
	for why, claims := range map[string][]market.Claim{
		"no value":    {{Name: "paint"}},
		"two values":  {{Name: "paint", Text: point("red"), Int: point(int64(1))}},
		"no name":     {{Name: "Paint", Text: point("red")}},
		"order":       {{Name: "b", Text: point("x")}, {Name: "a", Text: point("x")}},
		"twice":       {{Name: "a", Text: point("x")}, {Name: "a", Text: point("x")}},
		"empty":       {{Name: "a", Text: point("")}},
		"long":        {{Name: "a", Text: point(strings.Repeat("x", 97))}},
		"of its type": {{Name: "nvlink", Text: point("true")}},
		"range":       {{Name: "interconnect_gbps", Int: point(int64(-1))}},
		"many": func() (many []market.Claim) {
			for i := range 33 {
				many = append(many, market.Claim{Name: "a" + string(rune('a'+i/26)) + string(rune('a'+i%26)), Int: point(int64(i))})
			}
			return many
		}(),
	} {
		o := markettest.Offer()
		o.Claims = claims
		if err := o.Validate(markettest.Network); market.CodeOf(err) != market.CodeBadRecord {
			t.Errorf("%s: %v", why, err)
		}
	}
}
