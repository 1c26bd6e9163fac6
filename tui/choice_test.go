package tui_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"haggle/internal/view"
	"haggle/market"
	"haggle/tui"
)

func TestEveryRowSaysWhoseWordItIsAndWhatMyJobCosts(t *testing.T) {
	open(t, known, 200, 50, nil, func(s *screen) {
		s.sees("7 of about 5 000 offers read", "MY JOB", "● now", "○ 4m", "· 3h", "lab-in-bonn (calls itself rig-2)", "2.152 USD")
	})
}

func TestTheChosenRowIsAskedAgainAndSaysWhy(t *testing.T) {
	open(t, known, 200, 50, nil, func(s *screen) {
		for range 10 {
			if s.m.Chosen() == "rig-2" {
				break
			}
			s.press("down")
		}
		s.pass(time.Second)
		s.sees("its rig said so less than a minute ago", "Checked by you", "you measured a card", "Only claimed by the rig", "worst case you lose")
		if !slices.Contains(s.market.looks, "rig-2") {
			t.Errorf("asked again: %v", s.market.looks)
		}
		n := len(s.market.looks)
		s.pass(2 * time.Minute)
		if again := len(s.market.looks) - n; again < 2 || again > 4 {
			t.Errorf("the rig of a row that is looked at was asked %d times in 2 minutes", again)
		}
	})
}

func TestASilentRigIsNotMadeToSpeak(t *testing.T) {
	open(t, known, 200, 50, nil, func(s *screen) {
		s.press("/")
		s.write("gpu_name=RTX_3090")
		s.press("enter")
		s.pass(time.Second)
		s.sees("remembered, 3h ago; its rig was asked and keeps", "Not known", "? nothing was measured by you")
	})
}

func TestWhoPassesOverRowsDoesNotCallTheirRigs(t *testing.T) {
	open(t, known, 120, 40, nil, func(s *screen) {
		s.pass(time.Second)
		n := len(s.market.looks)
		s.press("down", "down", "down", "down")
		s.pass(time.Second)
		if got := len(s.market.looks) - n; got != 1 {
			t.Errorf("%d rigs were asked", got)
		}
	})
}

func TestAnOfferThatItsRigRenewedIsShownAsItIsNow(t *testing.T) {
	open(t, full, 120, 40, nil, func(s *screen) {
		s.pass(time.Second)
		s.market.mu.Lock()
		before := s.market.asked
		s.market.mu.Unlock()
		s.market.renewOnLook = true
		s.press("down")
		s.pass(time.Second)
		if s.market.asked == before {
			t.Error("the list still shows the offer of before")
		}
	})
}

func TestAFacetAddsItsClauseAndTakesItOutAgain(t *testing.T) {
	open(t, known, 120, 40, nil, func(s *screen) {
		s.press("f")
		s.sees("Saved queries", "big: gpu_ram>=48", "Card", "RTX 4090")
		s.to("RTX 4090")
		s.press("enter")
		s.sees("/ gpu_name=RTX_4090", "✓ RTX 4090")
		s.to("RTX 5090")
		s.press("enter")
		s.sees("/ gpu_name in [RTX_4090,RTX_5090]", "✓ RTX 5090")
		s.press("enter")
		s.sees("/ gpu_name=RTX_4090")
		s.press("esc")
		s.sees("/ gpu_name=RTX_4090", "2 match")
		s.lacks("H100")
	})
}

func TestFacetsAreCountedAnewWhileTheMarketIsRead(t *testing.T) {
	open(t, known, 80, 24, nil, func(s *screen) {
		s.press("f")
		s.to("RTX 3090")
		s.market.mu.Lock()
		s.market.offers = append(s.market.offers, card{rig: "rig-9", model: "L40S", reach: "direct", isolation: "runc", count: 1, gib: 48, price: 700_000}.offer())
		s.market.mu.Unlock()
		s.pass(3 * time.Second)
		s.sees("L40S")
		s.press("enter")
		s.sees("✓ RTX 3090") // the cursor stayed
	})
}

func TestASavedQueryIsChosenAndANewOneKept(t *testing.T) {
	open(t, known, 80, 24, nil, func(s *screen) {
		s.press("f")
		s.to("big:")
		s.press("enter")
		s.sees("/ gpu_ram>=48", "✓ big")
		s.press("w")
		s.write("two")
		s.press("enter")
		s.sees("kept as @two", "two: gpu_ram>=48")
		s.to("big:")
		s.press("enter", "esc")
		s.sees("/ to filter", "7 of about 5 000 offers read")
	})
}

func TestANamedQueryIsTypedInTheFilter(t *testing.T) {
	open(t, known, 120, 40, nil, func(s *screen) {
		s.press("/")
		s.write("@big reach=direct")
		s.press("enter")
		s.sees("/ gpu_ram>=48GB reach=direct", "H100")
		s.press("/")
		s.write(" @none")
		s.sees("none")
		s.press("esc")
		s.sees("/ gpu_ram>=48GB reach=direct")
	})
}

func TestAPlanLeadsToTheFormOfItsOffer(t *testing.T) {
	open(t, known, 80, 24, nil, func(s *screen) {
		s.press("P")
		s.sees("What does a budget buy?")
		s.write("2")
		s.press("tab")
		s.write("2h")
		s.press("enter")
		s.sees("What 2.00 USD buys on 1 card for 2h", "cheapest", "quickest", "safest", "worst case you lose")
		s.press("enter")
		s.sees("Rent ", "2h")
		if r := s.market.plans[0]; r.BudgetMicro != 2_000_000 || r.DurationMs != 7_200_000 || r.GPUs != 1 {
			t.Errorf("asked: %+v", r)
		}
	})
}

func TestAPlanThatNothingFitsSaysWhatIsNearest(t *testing.T) {
	open(t, full, 80, 24, nil, func(s *screen) {
		s.press("P")
		s.write("0.001")
		s.press("tab")
		s.write("9h")
		s.press("enter")
		s.sees("Nothing fits the budget", "Nearest:")
		s.press("enter")
		s.sees("P asks for another one")
	})
}

func TestPricesAreThoseOfMyJob(t *testing.T) {
	open(t, full, 120, 40, nil, func(s *screen) {
		s.sees("1 card for 1h")
		s.press("J", "backspace")
		s.write("2")
		s.press("tab", "backspace", "backspace")
		s.write("3h")
		s.press("enter")
		s.sees("2 cards for 3h", "2.16 USD") // rig-1: 2 × 0.36 × 3
		s.lacks("mac-mini")                  // which has one card
		s.press("J", "backspace")
		s.write("x")
		s.press("enter")
		s.sees("write a number of cards")
	})
}

func TestAnOwnerGetsAName(t *testing.T) {
	open(t, full, 120, 40, nil, func(s *screen) {
		rig := s.m.Chosen()
		s.press("N")
		s.write("attic")
		s.press("enter")
		s.pass(time.Second)
		s.sees("attic (calls ")
		if s.m.Chosen() != rig {
			t.Errorf("the choice moved to %s", s.m.Chosen())
		}
	})
}

func TestAPeerIsPinged(t *testing.T) {
	open(t, func() *fakeMarket {
		f := busy()
		f.pinged = view.Ping{Path: "punched", RTTMs: 31.4, Addr: "/ip4/192.0.2.7/udp/4701/quic-v1"}
		f.status.Network.Reach = &view.Reach{Found: "it is behind a router", Fix: "forward port 4701"}
		f.status.Network.Sources = []view.PeerSource{{Name: "list", On: true, Found: 3}, {Name: "dns", On: true}}
		return f
	}, 120, 40, nil, func(s *screen) {
		s.press("4")
		s.sees("it is behind a router", "better   forward port 4701", "list 3")
		s.press("p")
		s.sees("reached through a punched hole, 31 ms there and back, at /ip4/192.0.2.7/udp/4701/quic-v1")
	})
}

func TestTheEndOfALongListAsksForMore(t *testing.T) {
	open(t, func() *fakeMarket {
		f := newFakeMarket()
		for range 180 {
			f.offers = append(f.offers, stock()...)
		}
		for i := range f.offers {
			f.offers[i].Name += strings.Repeat("i", i%7) // hashes differ
			f.offers[i].Seq += int64(i)
		}
		return f
	}, 120, 40, nil, func(s *screen) {
		s.sees("first 500 of 1 260 offers")
		s.press("end")
		s.pass(time.Second)
		s.sees("1260 offers")
	})
}

func TestTheBestRowIsTheChosenOneUntilTheUserChooses(t *testing.T) {
	open(t, func() *fakeMarket {
		f := full()
		f.offers = f.offers[:1]
		return f
	}, 80, 24, nil, func(s *screen) {
		all := stock()
		first := s.m.Chosen()
		s.market.mu.Lock()
		s.market.offers = append(s.market.offers, all[4]) // which is better
		s.market.mu.Unlock()
		s.press("r")
		if got := s.m.Chosen(); got == first {
			t.Errorf("%s is the chosen one though the user chose nothing", got)
		}
		s.press("down")
		s.market.mu.Lock()
		s.market.offers = append(s.market.offers, all[1:4]...)
		s.market.mu.Unlock()
		s.press("s")
		if got := s.m.Chosen(); got != first {
			t.Errorf("%s is the chosen one, not what the user chose", got)
		}
	})
}

func TestClausesAreAddedAndTakenOut(t *testing.T) {
	for _, c := range []struct{ query, clause, want string }{
		{"", "gpu_name=RTX_4090", "gpu_name=RTX_4090"},
		{"gpu_name=RTX_4090", "gpu_name=RTX_4090", ""},
		{"dph<0.60", "geolocation=DE", "dph<0.6 geolocation=DE"},
		{"geolocation=NL", "geolocation=DE", "geolocation in [NL,DE]"},
		{"geolocation in [NL,DE]", "geolocation=NL", "geolocation=DE"},
		{"geolocation=NL OR dph<1", "reach=direct", "(geolocation=NL OR dph<1) reach=direct"},
		{"total=0.10..0.20", "total=0.20..0.50", "total=0.20..0.50"},
		{`rig="a b" reach=direct`, "reach=direct", `rig="a b"`},
		{"gpu_ram>=24", "gpu_ram=24", "gpu_ram>=24 gpu_ram=24"},
	} {
		want, err := market.ParseQuery(c.want)
		if err != nil {
			t.Fatal(err)
		}
		if got := tui.Toggle(c.query, c.clause); got != want.String() {
			t.Errorf("%q with %q is %q, want %q", c.query, c.clause, got, want)
		}
	}
}
