package market_test

import (
	"strings"
	"testing"

	"haggle/market"
)

func TestASavedQueryStandsWhereItsNameStood(t *testing.T) {
	saved := map[string]string{
		"big": "gpu_ram>=48 OR gpu=H100*", "near": "geo in [DE,NL]", "many": "num_gpus>=4", "none": " ", "loop": "@big dph<1", "bad": "nothing=1",
	}
	for text, want := range map[string]string{
		"@big dph<1":                "(gpu_ram>=48GB OR gpu_name=H100*) dph<1.00",
		"@near":                     "geolocation in [DE,NL]",
		"(@big|@near) @many":        "(gpu_ram>=48GB OR gpu_name=H100* OR geolocation in [DE,NL]) num_gpus>=4",
		"@none dph<1":               "dph<1.00",
		`rig="@big" dph<1`:          "rig=@big dph<1.00",
		"rig=a@big":                 "rig=a@big",
		"":                          "",
		strings.Repeat("@near ", 8): strings.TrimSpace(strings.Repeat("geolocation in [DE,NL] ", 8)),
	} {
		expanded, err := market.ExpandQuery(text, saved)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := mustParse(t, expanded).String(); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	for text, code := range map[string]market.Code{
		"@gone": market.CodeSavedUnknown, "@": market.CodeBadSaved, "@Big": market.CodeBadSaved, "@loop": market.CodeBadQuery, "@bad": market.CodeUnknownField,
		strings.Repeat("@near ", 9): market.CodeBadQuery, strings.Repeat("x", 1000) + " @near": market.CodeBadQuery,
	} {
		if expanded, err := market.ExpandQuery(text, saved); market.CodeOf(err) != code {
			t.Errorf("%q is %q: %v, want %s", text, expanded, err, code)
		}
	}
	if err := market.CheckSavedName("-x"); market.CodeOf(err) != market.CodeBadSaved {
		t.Errorf("a dash in front: %v", err)
	}
}

func FuzzExpandQuery(f *testing.F) {
	f.Add("@big dph<1")
	f.Add(`rig='@big' (@near|@big`)
	saved := map[string]string{"big": "gpu_ram>=48", "near": "geo=DE OR geo=NL"}
	f.Fuzz(func(t *testing.T, text string) {
		expanded, err := market.ExpandQuery(text, saved)
		if err != nil {
			return
		}
		if len(expanded) > 1024 && len(text) <= 1024 {
			t.Fatalf("%d bytes", len(expanded))
		}
		if q, err := market.ParseQuery(text); err == nil && !strings.Contains(text, "@") {
			if again, err := market.ParseQuery(expanded); err != nil || again.String() != q.String() {
				t.Fatalf("%q became %q", text, expanded)
			}
		}
	})
}
