package config_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"haggle/internal/config"
)

const payFile = `
probe_interval = "0s"

[budget]
day = "5.00"

[pay]
path = ["/opt/pay"]

[pay.lab]
bank = "/srv/bank"
cap = 20

[pay.hand]
quiet = true
`

func TestPaymentProgramsHaveTablesOfTheirOwn(t *testing.T) {
	dir := home(t, "config.toml", payFile)
	a, err := config.LoadAgent(config.Flags{Home: dir, Env: variables()})
	if err != nil {
		t.Fatal(err)
	}
	want := config.Programs{"lab": {"bank": "/srv/bank", "cap": "20"}, "hand": {"quiet": "true"}}
	if diff := cmp.Diff(want, a.Pay); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if a.Probe != 0 || a.Budget.Day != "5.00" || a.Budget.Month != "" || len(a.PayPath) != 1 {
		t.Errorf("probe %s, budget %+v, path %v", a.Probe, a.Budget, a.PayPath)
	}
	path := filepath.Join(dir, "again.toml")
	if err := config.WriteAgent(path, a); err != nil {
		t.Fatal(err)
	}
	again, err := config.LoadAgent(config.Flags{Home: dir, File: path, Env: variables("HAGGLE_PROBE_INTERVAL", "20s")})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a.Pay, again.Pay); diff != "" || again.Probe != 20*time.Second {
		t.Errorf("what was written reads otherwise (-want +got):\n%s", diff)
	}
	text := again.Values()
	again, err = config.LoadAgent(config.Flags{Home: t.TempDir(), Env: variables("HAGGLE_PAY_NAME", text[len(text)-1].Text)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a.Pay, again.Pay); diff != "" {
		t.Errorf("from the environment (-want +got):\n%s", diff)
	}
}

func TestRefusesSettingsThatNoProgramCanHave(t *testing.T) {
	for name, text := range map[string]string{
		"a list":                  "[pay.lab]\nbank = [1]\n",
		"a table in the table":    "[pay.lab.deep]\nbank = 'x'\n",
		"a program's capital":     "[pay.Lab]\nbank = 'x'\n",
		"a key with a dot":        "[pay.lab]\n'a.b' = 'x'\n",
		"a value without an end":  "[pay.lab]\nbank = '" + strings.Repeat("x", 1025) + "'\n",
		"a key beside the tables": "[pay]\nlab = 'x'\n",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := config.LoadAgent(config.Flags{Home: home(t, "config.toml", text), Env: variables()}); err == nil {
				t.Error("it was taken")
			}
		})
	}
}

func TestARigsPaymentProgramsAreConfiguredInTheSameWay(t *testing.T) {
	dir := home(t, "haggled.toml", `
[rules]
bidders = "trusted"

[pay]
methods = ["hand", "gold"]
path = ["/opt/pay"]

[pay.hand]
text = "Send {amount} {currency} to Ada, reference {reference}."
`)
	r, err := config.LoadRig(config.Flags{Home: dir, Env: variables()})
	if err != nil {
		t.Fatal(err)
	}
	want := config.RigPay{
		Methods: []string{"hand", "gold"}, Path: []string{"/opt/pay"},
		Programs: config.Programs{"hand": {"text": "Send {amount} {currency} to Ada, reference {reference}."}},
	}
	if diff := cmp.Diff(want, r.Pay); diff != "" || r.Rules.Bidders != config.BiddersTrusted {
		t.Errorf("bidders %s (-want +got):\n%s", r.Rules.Bidders, diff)
	}
	_, err = config.LoadRig(config.Flags{Home: home(t, "haggled.toml", "[pay]\nmethods = ['../x']\n"), Env: variables()})
	if err == nil {
		t.Error("a program's name with a path in it was taken")
	}
}
