package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"haggle/internal/config"
)

// variables is an environment.
func variables(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

// home makes a folder with a configuration file in it.
func home(t *testing.T, file, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestEveryKnobHasADefaultThatItTakes(t *testing.T) {
	for _, fault := range config.TableFaults() {
		t.Error(fault)
	}
}

func TestDefaults(t *testing.T) {
	a, err := config.LoadAgent(config.Flags{Home: t.TempDir(), Env: variables()})
	if err != nil {
		t.Fatal(err)
	}
	if a.Network != "main" || a.Currency != "USD" || a.IdleExit != time.Hour || a.LogLevel != "info" || a.LogFormat != "text" || a.Listen != nil {
		t.Errorf("agent's defaults are %+v", a)
	}
	r, err := config.LoadRig(config.Flags{Home: t.TempDir(), Env: variables()})
	if err != nil {
		t.Fatal(err)
	}
	want := config.Rules{
		Min: time.Minute, Max: 7 * 24 * time.Hour, Interval: time.Minute, First: 10 * time.Second,
		Grace: 2 * time.Minute, Notice: 2 * time.Minute, MaxUnattended: 8 * time.Hour, Credit: "5", Bidders: config.BiddersAnyone,
	}
	if r.Rules != want {
		t.Errorf("rules are %+v, want %+v", r.Rules, want)
	}
	if r.Name == "" || r.Containerd != (config.Containerd{Binary: "containerd", Namespace: "haggle"}) || r.Host != (config.Share{}) {
		t.Errorf("rig's defaults are %+v", r)
	}
	var e *config.Error
	if err := r.CheckPrices(); !errors.As(err, &e) || e.Key != "prices.slot" || e.Hint == "" {
		t.Errorf("without a price: got %v", err)
	}
}

func TestAFlagWinsOverTheEnvironmentOverTheFileOverTheDefault(t *testing.T) {
	dir := home(t, "config.toml", "network = 'from-file'\ncurrency = 'EUR'\nlog_level = 'warn'\n")
	a, err := config.LoadAgent(config.Flags{
		Env:    variables("HAGGLE_HOME", dir, "HAGGLE_NETWORK", "from-env", "HAGGLE_CURRENCY", "GBP", "HAGGLE_LOG_FORMAT", ""),
		Values: map[string]string{"network": "from-flag"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []config.Value{
		{"network", "from-flag", config.FromFlag},
		{"bootstrap", "", config.FromDefault},
		{"listen", "", config.FromDefault},
		{"currency", "GBP", config.FromEnvironment},
		{"idle_exit", "1h", config.FromDefault},
		{"log_level", "warn", config.FromFile},
		{"log_format", "text", config.FromDefault},
		{"probe_interval", "15s", config.FromDefault},
		{"budget.day", "", config.FromDefault},
		{"budget.month", "", config.FromDefault},
		{"pay.path", "", config.FromDefault},
		{"pay.NAME", "", config.FromDefault},
	}
	network := []string{"sources.", "reach.", "access.", "members."} // their tables have tests of their own
	got := slices.DeleteFunc(a.Values(), func(v config.Value) bool {
		return slices.ContainsFunc(network, func(table string) bool { return strings.HasPrefix(v.Name, table) })
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if a.Origin("currency") != config.FromEnvironment {
		t.Errorf("currency comes from %s", a.Origin("currency"))
	}
	a, err = config.LoadAgent(config.Flags{Env: variables("HAGGLE_HOME", dir), Home: t.TempDir()})
	if err != nil || a.Network != "main" {
		t.Errorf("the flag's home: network %q, %v", a.Network, err)
	}
}

func TestReadsAWholeRig(t *testing.T) {
	dir := home(t, "haggled.toml", `
network = "lab-x"
name = "attic"
listen = ["/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"]
images = [{name = "lab", archive = "lab.tar"}, {name = "b", archive = "/srv/b.tar"}]
[cards]
simulated = [{profile = "RTX_4090", count = 2}, {profile = "H100", count = 1}]
[prices]
slot = "0.25"
[rules]
max_unattended = "unlimited"
min = "1s"
max = "1d12h"
[host]
memory = "4GiB"
threads = 2
`)
	r, err := config.LoadRig(config.Flags{Home: dir, Env: variables()})
	if err != nil {
		t.Fatal(err)
	}
	cards := []config.Simulated{{"RTX_4090", 2}, {"H100", 1}}
	images := []config.Image{{"lab", filepath.Join(dir, "lab.tar")}, {"b", "/srv/b.tar"}}
	if !cmp.Equal(r.Cards.Simulated, cards) || !cmp.Equal(r.Images, images) || len(r.Listen) != 2 {
		t.Errorf("lists are %v, %v, %v", r.Cards, r.Images, r.Listen)
	}
	if r.Rules.MaxUnattended != config.Unlimited || r.Rules.Max != 36*time.Hour || r.Host.Memory != 4<<30 || r.Host.Threads != 2 || r.Prices.Slot != "0.25" {
		t.Errorf("rules %+v, host %+v, prices %+v", r.Rules, r.Host, r.Prices)
	}
	same, err := config.LoadRig(config.Flags{Home: t.TempDir(), Env: variables("HAGGLED_NETWORK", "lab-x"), Values: map[string]string{
		"cards.simulated": "RTX_4090=2, H100=1", "images": "lab=" + dir + "/lab.tar,b=/srv/b.tar", "host.memory": "4096MiB", "host.threads": "2",
	}})
	if err != nil || !cmp.Equal(same.Cards, r.Cards) || !cmp.Equal(same.Images, r.Images) || same.Host != r.Host {
		t.Errorf("by flags: %v, %v, %v, %v", err, same.Cards, same.Images, same.Host)
	}
	if same.Prices.Slot == "" || same.CheckPrices() != nil {
		t.Errorf("a lab without a price has %q", same.Prices.Slot)
	}
}

func TestRefusesWhatIsWrongAndSaysWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		file          string
		key, problem  string
		hint          string
		environment   []string
		flag, isValue string
	}{
		"an unknown key":              {file: "networx = 'x'", key: "networx", problem: "not a key", hint: "network"},
		"a key of another table":      {file: "[rules]\nslot = '0.40'", key: "rules.slot", problem: "not a key", hint: "prices.slot"},
		"a key outside of its table":  {file: "traffic_in = '0'", key: "traffic_in", problem: "not a key", hint: "prices.traffic_in"},
		"an unknown table":            {file: "[price]\nslot = '0.40'", key: "price", problem: "not a key", hint: "prices"},
		"a text for a table":          {file: "prices = '1'", key: "prices", problem: "table", hint: "[prices]"},
		"not TOML":                    {file: "network main", problem: "line 1", hint: "quotes"},
		"a number for a time":         {file: "[rules]\nmin = 60", key: "rules.min", problem: "quotes"},
		"a time out of bounds":        {file: "[rules]\ninterval = '2h'", key: "rules.interval", problem: "from 1s to 1h"},
		"a time that is none":         {file: "[rules]\ninterval = '60'", key: "rules.interval", problem: "not a time"},
		"no limit where one is due":   {file: "[rules]\nmax = 'unlimited'", key: "rules.max", problem: "not a time"},
		"a float for a price":         {file: "[prices]\nslot = 0.4", key: "prices.slot", problem: "quotes"},
		"a price with seven digits":   {file: "[prices]\nslot = '0.4000001'", key: "prices.slot", problem: "six digits"},
		"a negative price":            {file: "[prices]\nslot = '-1'", key: "prices.slot", problem: "price"},
		"a currency in small letters": {file: "[prices]\ncurrency = 'usd'", key: "prices.currency", problem: "capital"},
		"a network with a slash":      {file: "network = 'a/b'", key: "network", problem: "letters"},
		"a name that rings":           {file: "name = \"a\\u0007\"", key: "name", problem: "not a name"},
		"an address without a key":    {file: "bootstrap = ['/ip4/192.0.2.1/tcp/1']", key: "bootstrap", problem: "/p2p/"},
		"one address for a list":      {file: "listen = 5", key: "listen", problem: "brackets"},
		"too many threads":            {file: "[host]\nthreads = 5000", key: "host.threads", problem: "from 0 to 4096"},
		"a log level that is none":    {file: "log_level = 'loud'", key: "log_level", problem: "one of"},
		"no cards":                    {file: "network='lab-a'\n[cards]\nsimulated = [{profile='X', count=0}]", key: "cards.simulated", problem: "1 to 64"},
		"a card with a third key":     {file: "[cards]\nsimulated = [{profile='X', count=1, mode=2}]", key: "cards.simulated", problem: "profile"},
		"simulated cards for money":   {file: "[cards]\nsimulated = [{profile='X', count=1}]", key: "cards.simulated", problem: "network main", hint: "lab-"},
		"an image without a name":     {file: "images = [{archive='a'}]", key: "images", problem: "name"},
		"two images of one name":      {file: "images = [{name='a', archive='a'}, {name='a', archive='b'}]", key: "images", problem: "two"},
		"min above max":               {file: "[rules]\nmin='2h'\nmax='1h'", key: "rules.min", problem: "longer"},
		"first above interval":        {file: "[rules]\nfirst='2m'", key: "rules.first", problem: "longer"},
		"a variable":                  {environment: []string{"HAGGLED_RULES_MIN", "soon"}, key: "rules.min", problem: "not a time"},
		"a flag":                      {flag: "rules.min", isValue: "soon", key: "rules.min", problem: "not a time"},
		"an unknown flag":             {flag: "rule.min", isValue: "1s", key: "rule.min", problem: "not a key", hint: "rules.min"},
	} {
		t.Run(name, func(t *testing.T) {
			f := config.Flags{Home: home(t, "haggled.toml", c.file), Env: variables(c.environment...)}
			if c.flag != "" {
				f.Values = map[string]string{c.flag: c.isValue}
			}
			_, err := config.LoadRig(f)
			var e *config.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want a config.Error", err)
			}
			if e.Key != c.key || !strings.Contains(e.Problem, c.problem) || !strings.Contains(e.Hint, c.hint) || e.Source == "" {
				t.Errorf("got key %q, problem %q, hint %q, source %q", e.Key, e.Problem, e.Hint, e.Source)
			}
			if strings.ContainsAny(e.Error(), "\n\a") {
				t.Errorf("the message is not one clean line: %q", e.Error())
			}
		})
	}
}

func TestAFileThatWasNamedMustBeThere(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.toml")
	var e *config.Error
	if _, err := config.LoadRig(config.Flags{Home: t.TempDir(), File: missing, Env: variables()}); !errors.As(err, &e) {
		t.Errorf("by a flag: got %v", err)
	}
	if _, err := config.LoadAgent(config.Flags{Home: t.TempDir(), Env: variables("HAGGLE_CONFIG", missing)}); !errors.As(err, &e) {
		t.Errorf("by the environment: got %v", err)
	}
	big := home(t, "haggled.toml", "# "+strings.Repeat("x", 1<<20))
	if _, err := config.LoadRig(config.Flags{Home: big, Env: variables()}); !errors.As(err, &e) || !strings.Contains(e.Problem, "larger") {
		t.Errorf("a large file: got %v", err)
	}
}

func TestARigIsNamedAfterItsMachineButNotItsDomain(t *testing.T) {
	for host, want := range map[string]string{
		"attic.example.org":      "attic",
		"my rig\x07":             "myrig",
		"--x":                    "x",
		"":                       "rig",
		"日本":                     "rig",
		strings.Repeat("a", 200): strings.Repeat("a", 64),
	} {
		if got := config.CleanHost(host); got != want {
			t.Errorf("host %q makes %q, want %q", host, got, want)
		}
	}
}

func TestAMistypedVariableIsAnErrorThatNamesTheNearest(t *testing.T) {
	t.Setenv("HAGGLE_LEASE", "a job may be one of our programs")
	t.Setenv("HAGGLED_RULES_MAXX", "1h")
	t.Setenv("HAGGLE_NETWRK", "lab-a")
	var e *config.Error
	_, err := config.LoadAgent(config.Flags{Home: t.TempDir()})
	if !errors.As(err, &e) || e.Key != "HAGGLE_NETWRK" || !strings.HasPrefix(e.Hint, "did you mean HAGGLE_NETWORK?") {
		t.Errorf("got %v", err)
	}
	_, err = config.LoadRig(config.Flags{Home: t.TempDir()})
	if !errors.As(err, &e) || e.Key != "HAGGLED_RULES_MAXX" || !strings.HasPrefix(e.Hint, "did you mean HAGGLED_RULES_MAX?") {
		t.Errorf("got %v", err)
	}
}

func TestAMistypedWordIsAnErrorThatNamesTheNearest(t *testing.T) {
	for word, want := range map[string]string{"inof": "did you mean info?", "purple": "The least that is logged: debug, info, warn or error."} {
		var e *config.Error
		_, err := config.LoadAgent(config.Flags{Home: home(t, "config.toml", "log_level = '"+word+"'"), Env: variables()})
		if !errors.As(err, &e) || e.Key != "log_level" || e.Hint != want {
			t.Errorf("%s: got %v, hint %q", word, err, e.Hint)
		}
	}
}

func TestAHomeThatIsAFileIsRefused(t *testing.T) {
	path := filepath.Join(home(t, "file", ""), "file")
	var e *config.Error
	if _, err := config.LoadAgent(config.Flags{Home: path, Env: variables()}); !errors.As(err, &e) || e.Source != path {
		t.Errorf("agent: got %v", err)
	}
	if _, err := config.LoadRig(config.Flags{Home: path, Env: variables()}); !errors.As(err, &e) || e.Source != path {
		t.Errorf("rig: got %v", err)
	}
}
