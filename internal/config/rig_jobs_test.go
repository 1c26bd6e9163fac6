package config_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haggle/internal/config"
)

func TestReadsWhatJobsMayBeAndTakeOfTheLine(t *testing.T) {
	dir := home(t, "haggled.toml", `
[jobs]
network = "internet"
allow_images = ["pytorch*", "sha256:abc"]
deny_images = ["miner*"]
content = "research only"
images = "listed"
max_image = "20GiB"
power = 250

[line]
up = "40Mbit"
down = "1Gbit"
share_up = 50
monthly = "500GB"
blocked_ports = ["25", "465"]
connections = 20
reject = ["203.0.113.0/24"]
resolvers = ["9.9.9.9"]
pool = "10.219.0.0/16"
`)
	r, err := config.LoadRig(config.Flags{Home: dir, Env: variables()})
	if err != nil {
		t.Fatal(err)
	}
	jobs := config.Jobs{
		Network: "internet", AllowImages: []string{"pytorch*", "sha256:abc"}, DenyImages: []string{"miner*"}, Content: "research only", Images: config.ImagesListed,
		MaxImage: 20 << 30, Power: 250,
	}
	line := config.Line{
		Up: 40e6, Down: 1e9, ShareUp: 50, ShareDown: 90, Monthly: 500e9, BlockedPorts: []string{"25", "465"}, Connections: 20,
		Reject: []string{"203.0.113.0/24"}, Resolvers: []string{"9.9.9.9"}, Pool: "10.219.0.0/16",
	}
	if d := cmp.Diff(jobs, r.Jobs); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(line, r.Line); d != "" {
		t.Error(d)
	}
}

func TestALabsJobsStayOnTheirMachineUnlessToldOtherwise(t *testing.T) {
	for _, c := range []struct{ network, asked, want string }{
		{"main", "", config.NetworkInternet},
		{"main", "none", config.NetworkNone},
		{"lab-1", "", config.NetworkNone},
		{"lab-1", "internet", config.NetworkInternet},
	} {
		r := config.Rig{Network: c.network, Jobs: config.Jobs{Network: c.asked}}
		if got := r.JobNetwork(); got != c.want {
			t.Errorf("on %s with %q jobs reach %s, want %s", c.network, c.asked, got, c.want)
		}
	}
}

func TestRefusesALineThatCannotBe(t *testing.T) {
	for name, value := range map[string]string{
		"jobs.network":       "lan",
		"jobs.images":        "some",
		"jobs.max_image":     "1KiB",
		"jobs.power":         "-1",
		"line.up":            "40Mb",
		"line.share_up":      "101",
		"line.blocked_ports": "0",
		"line.reject":        "203.0.113.0",
		"line.resolvers":     "dns.example",
		"line.pool":          "10.219.0.0/28",
		"cards.hooks":        "all",
		"cards.cdi":          "etc/cdi",
		"rules.credit":       "-5",
	} {
		_, err := config.LoadRig(config.Flags{Home: t.TempDir(), Env: variables(), Values: map[string]string{name: value}})
		var fault *config.Error
		if !errors.As(err, &fault) || fault.Key != name {
			t.Errorf("%s = %s: got %v", name, value, err)
		}
	}
}
