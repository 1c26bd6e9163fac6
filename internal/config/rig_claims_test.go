package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"haggle/internal/config"
)

func TestReadsWhatOnlyTheOwnerCanSay(t *testing.T) {
	dir := home(t, "haggled.toml", "country = \"DE\"\nclaims = [\"nvlink=true\", \"cooling=water = good\"]\n")
	r, err := config.LoadRig(config.Flags{Home: dir, Env: variables()})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][2]string{{"nvlink", "true"}, {"cooling", "water = good"}}, r.ClaimPairs()); diff != "" || r.Country != "DE" {
		t.Errorf("country %q, claims %s", r.Country, diff)
	}
	for _, bad := range []string{`country = "de"`, `country = "GER"`, `claims = ["nvlink"]`, `claims = ["NVLink=true"]`, `claims = ["x="]`} {
		dir := home(t, "haggled.toml", bad+"\n")
		if _, err := config.LoadRig(config.Flags{Home: dir, Env: variables()}); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}
