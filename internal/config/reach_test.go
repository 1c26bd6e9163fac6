package config_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haggle/internal/config"
)

const somebody = "12D3KooWA1FbgpLbL3RUWLZAJyjQuwVA1A2yNPqBBqGqSeGzGDCp"

func TestARigIsReachedWithoutAnyKnob(t *testing.T) {
	r, err := config.LoadRig(config.Flags{Home: t.TempDir(), Env: variables()})
	if err != nil {
		t.Fatal(err)
	}
	want := config.Reach{MapPort: config.Yes, IPv6: config.Yes, Relay: config.RelaySmall}
	if diff := cmp.Diff(want, r.Reach); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestKnobsOfReach(t *testing.T) {
	for name, test := range map[string]struct {
		file string
		key  string // of the knob that is refused; "" where none is
	}{
		"a bulk relay for one's own":     {"[reach]\nrelay = 'bulk'\nrelay_for = ['" + somebody + "']\n", ""},
		"a bulk relay for nobody":        {"[reach]\nrelay = 'bulk'\n", "reach.relay"},
		"keys without a bulk relay":      {"[reach]\nrelay_for = ['" + somebody + "']\n", "reach.relay_for"},
		"a relay service of no kind":     {"[reach]\nrelay = 'large'\n", "reach.relay"},
		"a key that is none":             {"[reach]\nrelay = 'bulk'\nrelay_for = ['12D3KooWshort']\n", "reach.relay_for"},
		"a relay without its key":        {"[reach]\nrelays = ['/ip4/192.0.2.7/tcp/4701']\n", "reach.relays"},
		"a relay":                        {"[reach]\nrelays = ['/ip4/192.0.2.7/tcp/4701/p2p/" + somebody + "']\n", ""},
		"a port that the owner forwards": {"[reach]\nannounce = ['/ip4/192.0.2.7/tcp/4701']\nassume = 'public'\n", ""},
		"a reach that nobody can assume": {"[reach]\nassume = 'perhaps'\n", "reach.assume"},
		"private addresses told":         {"[reach]\nprivate = 'told'\nipv6 = 'no'\nmap_port = 'no'\n", ""},
		"neither yes nor no":             {"[reach]\nmap_port = 'maybe'\n", "reach.map_port"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.LoadRig(config.Flags{Home: home(t, "haggled.toml", test.file), Env: variables()})
			var e *config.Error
			switch {
			case test.key == "" && err != nil:
				t.Error(err)
			case test.key != "" && (!errors.As(err, &e) || e.Key != test.key):
				t.Errorf("got %v, want a fault of %s", err, test.key)
			}
		})
	}
}

func TestAnAgentHasOnlyTheKnobsThatSomebodyWhoCallsNeeds(t *testing.T) {
	var names []string
	for _, k := range config.AgentKnobs() {
		if len(k.Name) > 6 && k.Name[:6] == "reach." {
			names = append(names, k.Name)
		}
	}
	if diff := cmp.Diff([]string{"reach.ipv6", "reach.relays", "reach.private"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
