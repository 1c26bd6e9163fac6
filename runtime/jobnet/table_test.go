//go:build linux

package jobnet_test

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"haggle/runtime/jobnet"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestTheTableReadsLikeItsDocumentation(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  jobnet.Config
		jobs map[string]int
		used uint64
		ways []string
	}{
		{name: "empty"},
		{
			name: "home",
			cfg: jobnet.Config{Profile: jobnet.Profile{
				MonthlyBytes: 500e9,
				Reject:       []netip.Prefix{netip.MustParsePrefix("203.0.113.7/32"), netip.MustParsePrefix("2001:db8::/32")},
			}},
			jobs: map[string]int{"5f1c-a": 1, "alpha": 0},
			used: 1e9,
			ways: []string{"eth0"},
		},
		{
			name: "spent",
			cfg: jobnet.Config{Name: "second", Pool: netip.MustParsePrefix("44.1.2.0/28"), Profile: jobnet.Profile{
				MonthlyBytes: 1e9, BlockedPorts: []uint16{465, 25, 587, 25},
			}},
			jobs: map[string]int{"job": 7},
			used: 1e9,
		},
		{name: "bare", cfg: jobnet.Config{Without: jobnet.Protections()}, jobs: map[string]int{"job": 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.cfg.Dir = t.TempDir()
			got, err := jobnet.TableText(c.cfg, c.jobs, "2026-11", c.used, c.ways)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", c.name+".nft")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatTheKernelAddsByItselfIsNoChange(t *testing.T) {
	const quiet = "table inet x {\n\tset a {\n\t\ttype ipv4_addr\n\t\tflags dynamic,timeout\n\t\ttimeout 1m\n\t}\n" +
		"\tset b {\n\t\telements = { 1.1.1.1,\n\t\t\t     2.2.2.2 }\n\t}\n}\n"
	busy := strings.Replace(quiet, "timeout 1m\n", "timeout 1m\n\t\telements = { 3.3.3.3 limit rate over 2/second burst 5 packets,\n"+
		"\t\t\t     4.4.4.4 limit rate over 2/second burst 5 packets }\n", 1)
	if diff := cmp.Diff(quiet, jobnet.Steady(busy)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(quiet, jobnet.Steady(quiet)); diff != "" {
		t.Error(diff)
	}
}

func TestTheLineIsSharedFairly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Int64Range(0, 1<<50).Draw(t, "total")
		limits := rapid.SliceOfN(rapid.Int64Range(0, 1<<50), 1, 20).Draw(t, "limits")
		given := jobnet.Shares(total, limits)
		if total == 0 {
			if !cmp.Equal(given, limits) {
				t.Fatalf("an unknown line bounds: %v", given)
			}
			return
		}
		var sum, largest int64
		for _, g := range given {
			sum, largest = sum+g, max(largest, g)
		}
		if sum > max(total, int64(len(limits))) {
			t.Fatalf("%d of %d are given away: %v", sum, total, given)
		}
		for i, g := range given {
			if g < 1 || (limits[i] > 0 && g > limits[i]) {
				t.Fatalf("job %d has %d, its limit is %d", i, g, limits[i])
			}
			// Who has less than another has all that it wants; division leaves a bit.
			if g < largest-int64(len(limits)) && g != limits[i] {
				t.Fatalf("job %d has %d beside %d: %v", i, g, largest, limits)
			}
		}
	})
}

func TestACounterNeverGoesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var total, raw, sum uint64
		for _, step := range rapid.SliceOf(rapid.Uint64Range(0, 1<<40)).Draw(t, "steps") {
			now := raw + step
			if rapid.Bool().Draw(t, "reset") {
				now = min(step, raw)
				if now == raw {
					step = 0
				} else {
					step = now
				}
			}
			sum += step
			if jobnet.Count(&total, &raw, now); total != sum || raw != now {
				t.Fatalf("%d, not %d", total, sum)
			}
		}
	})
}

func TestInterfaceNamesFitAndDiffer(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"haggle", "haggle2", "hag_gle", "hag_gl_e", "averyverylongname", "averyverylongnamf", "a"} {
		got := jobnet.InterfaceName(name)
		if len(got)+5 > 15 || !strings.HasSuffix(got, "-") || seen[got] != "" {
			t.Errorf("%s: %s, also of %q", name, got, seen[got])
		}
		seen[got] = name
	}
}

func TestAConfigurationIsChecked(t *testing.T) {
	good := jobnet.Config{Dir: t.TempDir(), Clock: time.Now}
	for _, c := range []struct {
		name   string
		change func(*jobnet.Config)
	}{
		{"a name with a dash", func(c *jobnet.Config) { c.Name = "a-b" }},
		{"no folder", func(c *jobnet.Config) { c.Dir = "" }},
		{"a pool of IPv6", func(c *jobnet.Config) { c.Pool = netip.MustParsePrefix("fd00::/64") }},
		{"a pool too large", func(c *jobnet.Config) { c.Pool = netip.MustParsePrefix("10.0.0.0/8") }},
		{"a pool with host bits", func(c *jobnet.Config) { c.Pool = netip.MustParsePrefix("10.0.0.1/24") }},
		{"a resolver in the house", func(c *jobnet.Config) { c.Resolvers = []netip.Addr{netip.MustParseAddr("192.168.1.1")} }},
		{"a resolver of IPv6", func(c *jobnet.Config) { c.Resolvers = []netip.Addr{netip.MustParseAddr("2620:fe::fe")} }},
		{"a resolver that is rejected", func(c *jobnet.Config) {
			c.Profile.Reject = []netip.Prefix{netip.MustParsePrefix("9.0.0.0/8")}
		}},
		{"a share above all", func(c *jobnet.Config) { c.Profile.ShareUpPermille = 1001 }},
		{"a cap below zero", func(c *jobnet.Config) { c.Profile.MonthlyBytes = -1 }},
		{"no prefix", func(c *jobnet.Config) { c.Profile.Reject = []netip.Prefix{{}} }},
		{"an unknown protection", func(c *jobnet.Config) { c.Without = []string{"everything"} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := good
			c.change(&cfg)
			if _, err := jobnet.New(cfg); err == nil {
				t.Error("it is accepted")
			}
		})
	}
	n, err := jobnet.New(good)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(n.ResolvConf()); got != "nameserver 9.9.9.9\nnameserver 1.1.1.1\n" {
		t.Errorf("%q", got)
	}
	if got := string(n.Hosts("job")); got != "127.0.0.1 localhost\n127.0.1.1 job\n" {
		t.Errorf("%q", got)
	}
}
