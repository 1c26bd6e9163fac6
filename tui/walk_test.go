package tui_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"haggle/internal/view"
	"haggle/market"
	"haggle/tui"
)

func full() *fakeMarket {
	f := newFakeMarket()
	f.offers = stock()
	return f
}

func TestThreeKeysLeadFromTheStartToARunningJob(t *testing.T) {
	open(t, full, 80, 24, nil, func(s *screen) {
		s.sees("RTX 4090", "SIM", "rig-1")
		s.press("home", "enter")
		s.sees("Rent CPU SHARE on mac-mini", "whole price", "0.02 USD", "At most 0.02 USD")
		s.press("enter")
		s.sees("Rent?", "it can cost at most 0.02 USD")
		s.press("y") // too soon: it was meant for the form
		if len(s.market.bids) != 0 {
			t.Fatal("a key typed before the dialog appeared was taken")
		}
		s.pass(400 * time.Millisecond)
		s.sees("y rent  n no")
		s.press("y")
		if len(s.market.bids) != 1 || s.market.bids[0].BudgetMicro != 20_000 || s.market.bids[0].GPUs != 1 {
			t.Fatalf("bids: %+v", s.market.bids)
		}
		s.sees("[2 Leases]", "is signed by both")
		id := s.market.leases[0].ID
		for _, state := range []string{"preparing", "starting", "running"} {
			s.pass(2 * time.Second)
			s.market.change(id, func(l *view.Lease) { l.State = state })
			s.pass(200 * time.Millisecond)
			s.sees(state)
		}
		s.sees("✓ granted 2s → ✓ preparing 2s → ✓ starting 2s → ● running")
	})
}

func TestTheLogOfTheChosenLeaseComesLive(t *testing.T) {
	var log *fakeLog
	open(t, func() *fakeMarket {
		f := full()
		f.leases = []view.Lease{lease(1, "rig-1", "running", 1_000_000)}
		log = newFakeLog("step 1 loss 2.301")
		f.logs[f.leases[0].ID] = log
		return f
	}, 80, 24, nil, func(s *screen) {
		s.press("2")
		s.pass(time.Second)
		s.sees("step 1 loss 2.301")
		log.lines <- "step 2 \x1b[31mloss\x1b[0m 1.987\r\n"
		s.pass(time.Second)
		s.sees("step 2 [31mloss[0m 1.987")
		s.press("enter")
		s.sees("esc back")
		s.press("esc", "1")
		s.lacks("step 2")
	})
}

func TestStopsAJobAfterAsking(t *testing.T) {
	open(t, func() *fakeMarket {
		f := full()
		f.leases = []view.Lease{lease(1, "rig-1", "running", 1_000_000)}
		return f
	}, 80, 24, nil, func(s *screen) {
		s.press("2", "x")
		s.pass(time.Second)
		s.sees("Stop the job?")
		s.press("n")
		if len(s.market.stops) != 0 {
			t.Fatal("n stopped the job")
		}
		s.press("x")
		s.pass(time.Second)
		s.press("y")
		s.pass(time.Second)
		s.sees("stopping")
		if len(s.market.stops) != 1 {
			t.Fatalf("stops: %v", s.market.stops)
		}
	})
}

func TestAFilterIsJudgedWhileItIsTyped(t *testing.T) {
	open(t, full, 120, 40, nil, func(s *screen) {
		s.press("/")
		s.write("gpu_nam=RTX")
		s.sees("there is no field gpu_nam; did you mean gpu_name?", "attic-in-the-")
		s.press("tab")
		s.sees("gpu_name=RTX")
		s.write("*")
		s.sees("RTX 4090")
		s.lacks("H100")
		s.press("enter")
		s.sees("/ gpu_name=RTX*")
		s.press("/")
		s.write(" gpu_ram>=2x")
		s.sees("does not fit field gpu_ram")
		s.press("enter")
		s.sees("does not fit field gpu_ram") // what makes no sense cannot be applied
		s.press("esc")
		s.sees("/ gpu_name=RTX*")
		s.press("esc")
		s.sees("H100")
	})
}

func TestSaysWhatEachClauseLeft(t *testing.T) {
	open(t, full, 80, 24, nil, func(s *screen) {
		s.press("/")
		s.write("gpu_ram>=24 dph<0.01")
		s.press("enter")
		s.sees("None of 7 offers matches", "gpu_ram>=24", "dph<0.01", "0 left", "esc clears")
	})
}

func TestTheChosenOfferSurvivesARefreshAndARenewal(t *testing.T) {
	open(t, full, 80, 24, nil, func(s *screen) {
		s.press("down", "down", "down")
		before := s.m.Chosen()
		s.market.mu.Lock()
		for i := range s.market.offers {
			s.market.offers[i].Seq += 1000 // every rig renews its offer, which changes its hash
			s.market.offers[i].Prices.Slot += market.Rate(10_000 * (len(s.market.offers) - i))
		}
		s.market.mu.Unlock()
		s.press("r")
		if after := s.m.Chosen(); after != before {
			t.Fatalf("the choice moved from %q to %q", before, after)
		}
		s.press("s", "S")
		if after := s.m.Chosen(); after != before {
			t.Fatalf("sorting moved the choice from %q to %q", before, after)
		}
	})
}

func TestARenewedOfferIsRentedWhereItIsNoDearer(t *testing.T) {
	for _, c := range []struct {
		name string
		more market.Rate
		bids int
		says string
	}{
		{"at the same price", 0, 2, "is signed by both"},
		{"at a higher price", 10_000, 1, "there is no offer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			open(t, full, 120, 40, nil, func(s *screen) {
				s.press("enter", "enter")
				s.pass(time.Second)
				s.market.mu.Lock()
				for i := range s.market.offers {
					s.market.offers[i].Seq++
					s.market.offers[i].Prices.Slot += c.more
				}
				s.market.mu.Unlock()
				s.press("y")
				s.pass(time.Second)
				s.sees(c.says)
				if len(s.market.bids) != c.bids {
					t.Fatalf("%d bids", len(s.market.bids))
				}
			})
		})
	}
}

func TestADialogIsTakenBackWhenThePriceChanges(t *testing.T) {
	open(t, full, 80, 24, nil, func(s *screen) {
		s.press("enter", "enter")
		s.pass(time.Second)
		s.sees("Rent?")
		s.market.mu.Lock()
		for i := range s.market.offers {
			s.market.offers[i].Seq++
			s.market.offers[i].Prices.Slot *= 2
		}
		s.market.mu.Unlock()
		s.pass(20 * time.Second)
		s.lacks("Rent?")
		s.sees("the rig changed its offer", "At most 0.04 USD")
	})
}

func TestTheFormTellsTheWholePriceAndWhatIsWrong(t *testing.T) {
	open(t, full, 80, 24, nil, func(s *screen) {
		s.press("s", "end", "enter") // the dearest: eight H100 with a disk that costs
		s.sees("Rent H100 SXM5 80GB on rig-2", "2.152 USD", "Traffic adds 0.00 in and 0.01 out per GB")
		s.press("down", "right", "down", "backspace", "backspace")
		s.sees("time: write a time such as 90s, 2h or 7d")
		s.write("90m")
		s.sees("2 × 2.15 USD an hour × 1h30m", "6.45 USD")
		s.press("down")
		s.write("1")
		s.sees("At most 1.00 USD, which pays for 13m")
		s.press("backspace")
		s.write("0.01")
		s.press("enter")
		s.sees("the first minute costs")
		s.press("esc", "enter")
		s.sees("0.01") // what was typed is kept
	})
}

func TestADiskThatIsAskedForIsPricedBeforeItIsOrdered(t *testing.T) {
	open(t, full, 80, 24, nil, func(s *screen) {
		s.press("s", "end", "enter", "up", "up", "up", "up", "up") // from the image round to the disk
		s.sees("10 GB, which comes with the cards", "10 GB × 0.0002 USD an hour")
		s.write("500")
		s.press("enter")
		s.sees("the rig has 180 GB free")
		s.press("backspace")
		s.sees("50 GB × 0.0002 USD an hour × 1h", "0.01 USD", "2.16 USD")
		s.press("enter")
		s.pass(400 * time.Millisecond)
		s.press("y")
		if len(s.market.bids) != 1 || s.market.bids[0].DiskMB != 50_000 || s.market.bids[0].BudgetMicro != 2_160_000 {
			t.Fatalf("bids: %+v", s.market.bids)
		}
	})
}

func TestLooksForAnAgentThatIsGoneAndKeepsWhatItSaid(t *testing.T) {
	open(t, full, 80, 24, nil, func(s *screen) {
		s.market.leave()
		s.pass(100 * time.Millisecond)
		s.sees("agent away", "rig-1", "this is what it said last")
		s.press("enter", "enter")
		s.sees("nothing can be changed now")
		s.press("esc")
		s.pass(10 * time.Second)
		s.market.back()
		s.pass(10 * time.Second)
		s.lacks("agent away")
		s.market.leave()
		s.pass(30 * time.Second)
		before := s.messages
		s.pass(time.Minute)
		if n := s.messages - before; n > 20 {
			t.Fatalf("%d looks for the agent in a minute", n)
		}
	})
}

func TestStartsTheAgentWhereNoneAnswers(t *testing.T) {
	starts := 0
	var fake *fakeMarket
	open(t, func() *fakeMarket {
		fake = full()
		fake.err = errOff
		return fake
	}, 80, 24, func(c *tui.Config) {
		c.Start = func(context.Context) error { starts++; fake.back(); return nil }
	}, func(s *screen) {
		s.sees("rig-1")
		s.market.leave()
		s.pass(20 * time.Second)
		if starts != 1 {
			t.Fatalf("an agent that was stopped was started again unasked, %d times", starts)
		}
		s.press("r")
		s.sees("rig-1")
		s.lacks("agent away")
		if starts != 2 {
			t.Fatalf("r started it %d times", starts)
		}
	})
}

func TestExportsEvidenceAndSaysWhere(t *testing.T) {
	var folder string
	open(t, func() *fakeMarket { return withReceipts(full()) }, 120, 40, func(c *tui.Config) { folder = c.Exports }, func(s *screen) {
		s.press("3")
		s.sees("✓ both", "signed by both: 0.06 USD", "final")
		s.press("e")
		s.sees("wrote " + folder)
		files, err := os.ReadDir(folder)
		if err != nil || len(files) != 1 || !strings.HasSuffix(files[0].Name(), ".evidence") {
			t.Fatalf("%v, %v", files, err)
		}
	})
}

func TestNothingHappensWhileNothingChanges(t *testing.T) {
	open(t, full, 80, 24, nil, func(s *screen) {
		s.pass(5 * time.Second)
		before, text := s.messages, s.text()
		s.pass(10 * time.Second)
		if n := s.messages - before; n > 4 {
			t.Errorf("%d messages in 10 idle seconds", n)
		}
		if s.text() != text {
			t.Errorf("an idle screen changed:\n%s\n%s", text, s.text())
		}
	})
}

func TestAStormOfChangesBecomesTenMessagesASecond(t *testing.T) {
	open(t, func() *fakeMarket {
		f := full()
		f.leases = []view.Lease{lease(1, "rig-1", "running", 1_000_000)}
		return f
	}, 80, 24, nil, func(s *screen) {
		s.pass(time.Second)
		before := s.messages
		for i := range 500 {
			s.market.change(s.market.leases[0].ID, func(l *view.Lease) { l.Spent = view.MoneyOf(market.Micro(i), "USD") })
			s.pass(10 * time.Millisecond)
		}
		if n := s.messages - before; n > 55 {
			t.Errorf("%d messages in 5 seconds", n)
		}
		s.pass(200 * time.Millisecond)
		s.sees("spent 0.000499 USD")
	})
}

// withReceipts adds a lease that ran and was paid.
func withReceipts(f *fakeMarket) *fakeMarket {
	l := lease(9, "東京リグ-深夜割引", "ended", 360_000)
	code := int64(0)
	l.Exit, l.Debt, l.Reason, l.Receipts, l.BilledMs = &code, "final", "completed", 3, 600_000
	l.Spent, l.Signed = view.MoneyOf(60_000, "USD"), view.MoneyOf(60_000, "USD")
	f.leases = append(f.leases, l)
	for i, ms := range []int64{10_000, 300_000, 600_000} {
		r := view.Receipt{
			Lease: l.ID, Seq: uint32(i + 1), Kind: "interval", BilledMs: ms, Bill: market.Bill{Slot: market.Micro(ms / 10), Total: market.Micro(ms / 10)},
			Total: view.MoneyOf(market.Micro(ms/10), "USD"), WallMs: l.Created + ms, SignedBy: []string{"rig", "renter"},
		}
		if i == 2 {
			r.Kind, r.Exit = "final", &market.Exit{Reason: market.ReasonCompleted}
		}
		f.receipts[l.ID] = append(f.receipts[l.ID], r)
	}
	return f
}
