package tui_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rsc.io/qr"

	"haggle/internal/view"
	"haggle/market"
	"haggle/tui"
)

// onto moves to a row of the leases.
func onto(s *screen, row int) {
	s.press("2", "home")
	for range row {
		s.press("down")
	}
}

// Rows of moneyed's leases.
const (
	rowAhead   = 0
	rowWaiting = 6
	rowUnpaid  = 7
	rowOwed    = 8
)

func TestASliceThatWaitsForAPersonShowsWhatToDoUntilItHasCome(t *testing.T) {
	open(t, moneyed, 100, 30, nil, func(s *screen) {
		onto(s, rowWaiting)
		s.sees("waiting for you: pay 0.14334 USD for 2m; p shows how")
		s.press("p")
		s.sees("to the owner of rig-2", "Send 0.14334 USD to Ada Example", "the lease ends in", "██")
		s.press("y")
		s.sees("sent to the terminal's clipboard: pay:ada?amount=0.14334&purpose=7f3a91c2-1", "Ada Example")
		s.press("esc")
		s.lacks("Ada Example")
		s.press("p")
		s.market.change(s.market.leases[rowWaiting].ID, func(l *view.Lease) {
			p := *l.Pay
			p.Asked, p.Paid, p.Payments = nil, usd(143_340), 1
			l.Pay = &p
		})
		s.pass(time.Second)
		s.lacks("Ada Example")
		s.sees("the rig has signed for it: paid so far 0.14334 USD", "[2 Leases]")
	})
}

func TestPaysWhatIsOwedAfterAsking(t *testing.T) {
	open(t, func() *fakeMarket {
		f := moneyed()
		f.paid = func(l view.Lease, r view.PayRequest) (view.Lease, error) {
			l.Pay = &view.Pay{Paid: usd(360_000), Sent: usd(360_000), Balance: usd(0), Payments: 1}
			return l, nil
		}
		return f
	}, 100, 30, nil, func(s *screen) {
		onto(s, rowOwed)
		s.sees("you owe 0.36 USD for it; p pays")
		s.press("p")
		s.sees("Pay for lease", "Owed now: 0.36 USD.")
		s.press("right", "enter")
		s.pass(time.Second)
		s.sees("0.36 USD by lab, for lease")
		if len(s.market.pays) != 0 {
			t.Fatal("it was paid before the user said so")
		}
		s.press("y")
		s.pass(time.Second)
		s.sees("has come: paid so far 0.36 USD")
		s.lacks("you owe")
		if want := (view.PayRequest{Method: "lab"}); len(s.market.pays) != 1 || s.market.pays[0] != want {
			t.Fatalf("paid %+v", s.market.pays)
		}
		s.press("p")
		s.sees("nothing is owed for this lease")
	})
}

func TestAnAmountThatMakesNoSenseIsNotPaid(t *testing.T) {
	open(t, moneyed, 100, 30, nil, func(s *screen) {
		onto(s, rowAhead)
		s.press("p")
		s.sees("Nothing is owed now.")
		s.press("enter")
		s.sees("nothing is owed; write how much to pay ahead")
		s.press("down")
		s.write("a lot")
		s.press("enter")
		s.pass(time.Second)
		s.lacks("Pay?")
		s.press("esc")
		if len(s.market.pays) != 0 {
			t.Fatalf("paid %+v", s.market.pays)
		}
	})
}

func TestAPaymentThatABudgetHeldBackIsTriedAgain(t *testing.T) {
	open(t, func() *fakeMarket {
		f := moneyed()
		f.paid = func(l view.Lease, _ view.PayRequest) (view.Lease, error) {
			return l, market.NewError(market.CodeOverCap, "scope", "day", "limit", "5.00", "spent", "4.98", "amount", "0.06", "currency", "USD")
		}
		return f
	}, 120, 30, nil, func(s *screen) {
		onto(s, rowUnpaid)
		s.sees("0.06 USD for 10m is held back: the budget of this day is 5.00 USD")
		s.press("p")
		s.pass(time.Second)
		s.sees("Try to pay again?")
		s.press("y")
		s.pass(time.Second)
		s.sees(tui.Fit(market.Explain(market.NewError(market.CodeOverCap, "scope", "day", "limit", "5.00", "spent", "4.98", "amount", "0.06", "currency", "USD")).Message, 40, false, ""))
		if len(s.market.pays) != 1 || s.market.pays[0] != (view.PayRequest{}) {
			t.Fatalf("paid %+v", s.market.pays)
		}
	})
}

func TestALeaseThatRunsWithoutMoneyCountsDown(t *testing.T) {
	open(t, moneyed, 100, 30, nil, func(s *screen) {
		onto(s, rowUnpaid)
		s.sees("unpaid: ends in 42 s")
		s.pass(10 * time.Second)
		s.sees("unpaid: ends in 32 s")
		s.pass(60 * time.Second)
		s.sees("unpaid: ends in 0 s")
	})
}

func TestAnAlertStaysUntilItsPageWasSeen(t *testing.T) {
	open(t, func() *fakeMarket {
		f := busy()
		f.status.Alerts = []view.Alert{{Scope: "day", Percent: 80, At: 1, Text: "80 % of\x1b[2J the day's budget are used"}}
		return f
	}, 100, 30, nil, func(s *screen) {
		const told = "! 80 % of[2J the day's budget are used"
		s.sees(told)
		s.press("2", "down", "1", "down")
		s.sees(told)
		s.press("5")
		s.sees(told)
		s.press("1")
		s.lacks(told)
		s.pass(time.Minute) // it is told again and again
		s.lacks(told)
		s.market.mu.Lock()
		s.market.status.Alerts = append(s.market.status.Alerts, view.Alert{Scope: "day", Percent: 100, At: 2, Text: "the day's budget is used up"})
		s.market.mu.Unlock()
		s.pass(time.Minute)
		s.sees("! the day's budget is used up")
	})
}

func TestWritesAnInvoiceIntoAFile(t *testing.T) {
	var folder string
	open(t, moneyed, 100, 30, func(c *tui.Config) { utc(c); folder = c.Exports }, func(s *screen) {
		s.press("5", "enter", "e")
		s.pass(time.Second)
		s.sees("wrote ")
		files, err := filepath.Glob(filepath.Join(folder, "invoice-*-USD.txt"))
		if err != nil || len(files) != 1 {
			t.Fatalf("files: %v, %v", files, err)
		}
		data, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"11.70 slot-hours", "4.212", "lab-[31m17", "balance", "0.06 USD", key("agent")} {
			if !strings.Contains(string(data), want) {
				t.Errorf("the invoice lacks %q:\n%s", want, data)
			}
		}
		if strings.ContainsAny(string(data), "\x1b\t") {
			t.Errorf("the invoice holds what a terminal obeys:\n%q", data)
		}
		s.press("esc")
		s.sees("OWNER")
	})
}

func TestABidSaysHowItIsPaidAndWhenIdleCardsEndIt(t *testing.T) {
	open(t, moneyed, 120, 40, nil, func(s *screen) {
		s.press("s", "home", "down", "down", "down", "enter", "down", "down", "down", "down", "down", "right")
		s.sees("ahead by lab", "paid ahead by itself in slices of at most an hour, 0.012 USD")
		s.press("right", "right", "right")
		s.sees("on credit", "settled later")
		s.press("left")
		s.sees("ahead by hand", "must be there")
		s.press("down")
		s.write("30m")
		s.sees("up to 0.225 USD are paid ahead for it")
		s.press("down")
		s.write("5/10m")
		s.press("enter")
		s.sees("write a use and a time such as 5%/10m")
		s.press("home")
		s.press("right")
		s.write("%")
		s.press("enter")
		s.pass(time.Second)
		s.sees("it ends when no card is used above 5 % for 10m")
		s.press("y")
		s.pass(time.Second)
		b := s.market.bids[0]
		if b.Pay != "hand" || b.StopIdle == nil || *b.StopIdle != (market.IdleStop{Permille: 50, ForMs: 600_000}) {
			t.Fatalf("bid: %+v, %+v", b, b.StopIdle)
		}
	})
}

func TestACodeOnTheScreenHasTheModulesThatItsTextNeeds(t *testing.T) {
	const text, quiet = "pay:ada?amount=0.14334&purpose=7f3a91c2-1", 2
	want, err := qr.Encode(text, qr.L)
	if err != nil {
		t.Fatal(err)
	}
	lines := tui.Code(text)
	light := func(x, y int) bool {
		switch r := []rune(lines[(y+quiet)/2])[x+quiet]; {
		case r == '█':
			return true
		case (y+quiet)%2 == 0:
			return r == '▀'
		default:
			return r == '▄'
		}
	}
	for y := -quiet; y < want.Size+quiet; y++ {
		for x := -quiet; x < want.Size+quiet; x++ {
			if light(x, y) == want.Black(x, y) {
				t.Fatalf("module %d,%d is wrong", x, y)
			}
		}
	}
	if tui.Code(strings.Repeat("x", 2000)) != nil || tui.Code("") != nil {
		t.Error("a text that is too long or empty has a code")
	}
}
