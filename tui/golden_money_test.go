package tui_test

import (
	"slices"
	"time"

	"haggle/tui"
)

// moneyPictures are the screens of paying, and of what is owed.
func moneyPictures() []picture {
	second := func(keys ...string) func(s *screen) {
		return func(s *screen) { s.press(keys...); s.pass(time.Second) }
	}
	rows := func(n int, first string, then ...string) func(s *screen) {
		return second(slices.Concat([]string{first}, slices.Repeat([]string{"down"}, n), then)...)
	}
	cheap := func(n int, then ...string) func(s *screen) { // a row of the market, by the price of my job
		return second(slices.Concat([]string{"s", "home"}, slices.Repeat([]string{"down"}, n), then)...)
	}
	ascii := func(c *tui.Config) { utc(c); c.ASCII = true }
	return []picture{
		{"money-empty", newFakeMarket, utc, second("5")},
		{"money-loading", slow, utc, second("5")},
		{"money-error", internalFault, utc, second("5")},
		{"money-full", moneyed, utc, second("5")},
		{"money-owed", moneyed, utc, second("5", "down")},
		{"money-ascii", moneyed, ascii, second("5", "down", "down")},
		{"account-full", moneyed, utc, second("5", "enter")},
		{"account-empty", moneyed, utc, second("5", "down", "enter")},
		{"account-error", moneyed, utc, second("5", "end", "enter")},
		{"leases-ahead", moneyed, utc, second("2")},
		{"leases-waiting", moneyed, utc, rows(6, "2")},
		{"leases-unpaid", moneyed, utc, rows(7, "2")},
		{"leases-owed", moneyed, utc, rows(8, "2")},
		{"leases-ahead-ascii", moneyed, ascii, second("2")},
		{"pay-hand", moneyed, utc, rows(6, "2", "p")},
		{"pay-hand-ascii", moneyed, ascii, rows(6, "2", "p")},
		{"pay-again", moneyed, utc, rows(7, "2", "p")},
		{"pay-prompt", moneyed, utc, rows(8, "2", "p")},
		{"pay-dialog", moneyed, utc, rows(8, "2", "p", "enter")},
		{"form-pay", moneyed, utc, cheap(3, "enter", "down", "down", "down", "down", "down")},
		{"form-away", moneyed, utc, cheap(3, "enter", "down", "down", "down", "down", "down", "right", "down")},
		{"form-gold", moneyed, utc, cheap(4, "enter", "down", "down", "down", "down", "down")},
		{"dialog-pay", moneyed, utc, cheap(3, "enter", "down", "down", "down", "down", "down", "right", "enter")},
		{"detail-paid", moneyed, utc, cheap(3, "d")},
		{"alert", moneyed, utc, second()},
	}
}
