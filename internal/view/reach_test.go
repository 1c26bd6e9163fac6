package view_test

import (
	"strings"
	"testing"

	"haggle/internal/view"
)

func TestAReachIsOneSentenceWithItsRemedy(t *testing.T) {
	for _, test := range []struct {
		name       string
		reach      view.Reach
		found, fix string // how they begin; a fix of "-" is none
	}{
		{"a lab", view.Reach{Kind: "loopback"}, "a lab stays on this machine", "-"},
		{"a public address", view.Reach{Kind: "direct", NAT: "none"}, "others can call it: it has a public address", "-"},
		{"a mapped port", view.Reach{Kind: "direct", NAT: "fixed", Mapped: []string{"x"}}, "others can call it: the router maps", "-"},
		{"a pinhole", view.Reach{Kind: "direct", NAT: "unknown", Pinholes: []string{"x"}}, "others can call it by IPv6", "-"},
		{"a home router", view.Reach{Kind: "punched", NAT: "port-preserving", Relays: []string{"x"}}, "it is behind a router that shows it to all at one port (port-preserving); others meet", "nothing has to be done"},
		{"a carrier's translator", view.Reach{Kind: "relayed", NAT: "symmetric", Relays: []string{"x"}}, "it is behind a router that shows it to everybody at another port (symmetric), so no hole", "forward port 4701"},
		{"a relay and no more known", view.Reach{Kind: "relayed", NAT: "unknown", Relays: []string{"x"}}, "it is behind a router, and everything goes through a relay", "forward port 4701"},
		{"a firewall", view.Reach{Kind: "relayed", NAT: "none", Relays: []string{"x"}}, "it has a public address, but a firewall lets nobody in, and", "forward port 4701"},
		{"no relay", view.Reach{Kind: "unknown", NAT: "unknown", Private: true}, "others tried to call it and could not", "forward port 4701"},
		{"nothing known", view.Reach{Kind: "unknown", NAT: "unknown"}, "not known yet", "wait a minute"},
		{"an agent at home", view.Reach{Kind: "unknown", NAT: "port-preserving", Client: true}, "it is behind a router that shows it to all at one port (port-preserving), through which it calls", "-"},
		{"an agent that has just begun", view.Reach{Kind: "unknown", NAT: "unknown", Client: true}, "it calls rigs", "-"},
		{"an agent behind a carrier", view.Reach{Kind: "unknown", NAT: "symmetric", Client: true}, "it is behind a router that shows it to everybody at another port (symmetric): rigs behind such", "for these, use IPv6"},
		{"an agent without luck", view.Reach{Kind: "unknown", NAT: "fixed", Client: true, Punched: 1, Failed: 3}, "it is behind a router that shows it to all at one port (fixed), and holes could be punched to 1 of 4 rigs", "choose offers"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := test.reach.Explained()
			if !strings.HasPrefix(got.Found, test.found) || strings.HasSuffix(got.Found, ".") {
				t.Errorf("found: %q", got.Found)
			}
			if test.fix == "-" && got.Fix != "" || test.fix != "-" && !strings.HasPrefix(got.Fix, test.fix) {
				t.Errorf("fix: %q", got.Fix)
			}
		})
	}
}
