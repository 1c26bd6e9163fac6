package renter_test

import (
	"testing"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

func (h *house) budget(r view.BudgetRequest) view.Budget {
	h.t.Helper()
	r.Currency = "USD"
	b, err := h.agent.SetBudget(h.t.Context(), r)
	if err != nil {
		h.t.Fatal(err)
	}
	return b
}

func micro(n int64) *int64 { return &n }

func TestABidThatTheDayOrTheMonthCannotPayIsRefused(t *testing.T) {
	cases := []struct {
		name   string
		budget view.BudgetRequest
		span   string
		hours  int64
	}{
		{"the day", view.BudgetRequest{DayMicro: micro(300_000)}, "day", 1},
		{"the month", view.BudgetRequest{MonthMicro: micro(300_000)}, "month", 1},
		{"a day of a long lease", view.BudgetRequest{DayMicro: micro(9_000_000)}, "day", 24},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
				b := h.budget(c.budget)
				if (c.span == "day") != (b.Day != nil) || (c.span == "month") != (b.Month != nil) {
					t.Errorf("budget %+v", b)
				}
				_, err := h.bid(func(r *view.BidRequest) { r.DurationMs = c.hours * 3_600_000 })
				wantCode(t, err, market.CodeOverCap)
				if e := market.Public(err); e.Arg("span") != c.span {
					t.Errorf("the %s budget is named: %v", e.Arg("span"), err)
				}
				if h.rig(0).bids != 0 || len(h.store.records) != 0 {
					t.Error("the bid was sent, or stored")
				}
			})
		})
	}
}

func TestOpenLeasesClaimTheirPartOfADay(t *testing.T) {
	inHouse(t, oneRig(func(r *testRig) { r.run = 30 * time.Minute }), func(t *testing.T, h *house) {
		h.budget(view.BudgetRequest{DayMicro: micro(700_000)})
		l := h.mustBid(nil) // an hour for 0.40
		_, err := h.bid(nil)
		wantCode(t, err, market.CodeOverCap)
		h.until(l.ID, "settled", settled) // it cost 0.20
		pass(time.Second)
		if l := h.mustBid(nil); l.ID == "" {
			t.Error("no lease")
		}
		_, err = h.bid(func(r *view.BidRequest) { r.DurationMs = 30 * 60_000 })
		wantCode(t, err, market.CodeOverCap)
	})
}

func TestTomorrowIsAnotherDay(t *testing.T) {
	inHouse(t, oneRig(func(r *testRig) { r.run = time.Hour }), func(t *testing.T, h *house) {
		h.budget(view.BudgetRequest{DayMicro: micro(500_000), MonthMicro: micro(2_000_000)})
		h.until(h.mustBid(nil).ID, "settled", settled)
		_, err := h.bid(nil)
		wantCode(t, err, market.CodeOverCap)
		pass(24 * time.Hour)
		h.until(h.mustBid(nil).ID, "settled", settled)
		list, err := h.agent.Budgets(t.Context())
		if err != nil || len(list) != 1 || list[0].SpentDay.Micro != 400_000 || list[0].SpentMonth.Micro != 800_000 {
			t.Errorf("budgets %+v, %v", list, err)
		}
	})
}

func TestASliceThatABudgetHasNoRoomForIsHeldUntilItHas(t *testing.T) {
	inShop(t, func(r *testRig) { r.run = 30 * time.Minute }, func(t *testing.T, h *house, b *bank) {
		l := h.mustBid(nil)
		pass(30 * time.Second)
		h.budget(view.BudgetRequest{DayMicro: micro(int64(b.sum()) + 1000)})
		l = h.until(l.ID, "held", func(l view.Lease) bool { return asked(l, "held") })
		before := b.sum()
		if l.Pay.Asked.Why == "" {
			t.Error("it does not say why")
		}
		_, err := h.agent.PayLease(t.Context(), l.ID, view.PayRequest{})
		wantCode(t, err, market.CodeOverCap)
		pass(20 * time.Second)
		if b.sum() != before {
			t.Errorf("%s were paid beyond the budget", b.sum()-before)
		}
		if alerts := h.agent.Alerts(t.Context()); len(alerts) == 0 || alerts[len(alerts)-1].Scope != "day" || alerts[len(alerts)-1].Percent != 80 {
			t.Errorf("alerts %+v", alerts)
		}
		h.budget(view.BudgetRequest{DayMicro: micro(-1)})
		pass(time.Second)
		if b.sum() == before {
			t.Error("nothing was paid though there is room")
		}
		l = h.until(l.ID, "settled", settled)
		pass(time.Minute)
		wantFair(t, h, b, h.lease(l.ID))
	})
}

func TestTheUserIsToldOfEachPartOfALeasesBudgetOnce(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		l := h.mustBid(func(r *view.BidRequest) { r.BudgetMicro = 200_000 }) // 30 minutes
		for _, c := range []struct {
			at   time.Duration
			want int
		}{{14 * time.Minute, 0}, {3 * time.Minute, 1}, {8 * time.Minute, 2}} {
			pass(c.at)
			if got := h.lease(l.ID).Alerts; len(got) != c.want {
				t.Errorf("after %s more: %+v", c.at, got)
			}
			h.down()
			h.up()
		}
		l = h.until(l.ID, "settled", settled)
		if n := len(l.Alerts); n != 3 || l.Alerts[0].Percent != 50 || l.Alerts[1].Percent != 80 || l.Alerts[2].Percent != 100 || l.Alerts[2].Text == "" {
			t.Errorf("alerts %+v", l.Alerts)
		}
	})
}
