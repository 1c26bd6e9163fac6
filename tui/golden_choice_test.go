package tui_test

import (
	"time"

	"haggle/internal/view"
	"haggle/tui"
)

// choicePictures are the screens of choosing an offer.
func choicePictures() []picture {
	second := func(keys ...string) func(s *screen) {
		return func(s *screen) { s.press(keys...); s.pass(time.Second) }
	}
	plan := func(budget, length string) func(s *screen) {
		return func(s *screen) {
			s.press("P")
			s.write(budget)
			s.press("tab")
			s.write(length)
			s.press("enter")
			s.pass(time.Second)
		}
	}
	return []picture{
		{"market-reading", known, nil, second()},
		{"market-reading-ascii", known, func(c *tui.Config) { c.ASCII = true }, second()},
		{"detail-why", known, nil, second("d")},
		{"detail-silent", known, nil, second("end", "d")},
		{"facets", known, nil, second("f", "down", "down", "down", "enter")},
		{"facets-empty", newFakeMarket, nil, second("f")},
		{"facets-error", internalFault, nil, second("f")},
		{"facets-loading", slow, nil, second("f")},
		{"facets-save", known, nil, second("f", "down", "enter", "w")},
		{"plan", known, nil, plan("2", "2h")},
		{"plan-open", known, nil, plan("5", "")},
		{"plan-none", known, nil, plan("0.001", "9h")},
		{"plan-prompt", known, nil, second("P")},
		{"plan-error", internalFault, nil, plan("2", "2h")},
		{"job", known, nil, second("J")},
		{"name", known, nil, second("N")},
		{"peers-reach", func() *fakeMarket {
			f := busy()
			r := view.Reach{Kind: "punched", NAT: "symmetric", Client: true}.Explained()
			f.status.Network.Reach = &r
			f.status.Network.Sources = []view.PeerSource{{Name: "list", On: true, Found: 3}, {Name: "remembered", On: true, Found: 12}, {Name: "dns", On: true}}
			f.pinged = view.Ping{Path: "punched", RTTMs: 31.4, Addr: "/ip4/192.0.2.7/udp/4701/quic-v1"}
			return f
		}, nil, second("4")},
	}
}
