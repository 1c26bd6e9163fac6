package market_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"haggle/market"
)

func TestAnHourCostsExactlyTheRate(t *testing.T) {
	for _, rate := range []market.Rate{0, 1, 360_000, 399_999, 2_990_000} {
		if got, err := rate.For(time.Hour); err != nil || got != market.Micro(rate) {
			t.Errorf("an hour at %d costs %d (%v)", rate, got, err)
		}
	}
}

func TestBillIsFlooredOnTheCumulativeQuantityAndNeverWraps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Int64Range(0, math.MaxInt64).Draw(t, "rate")
		ms := rapid.Int64Range(0, math.MaxInt64).Draw(t, "ms")
		bill, err := market.Prices{Currency: "USD", Slot: market.Rate(rate)}.Bill(market.Usage{SlotMs: ms})
		exact := new(big.Int).Mul(big.NewInt(rate), big.NewInt(ms))
		exact.Div(exact, big.NewInt(3_600_000))
		switch {
		case !exact.IsInt64():
			if market.CodeOf(err) != market.CodeOverflow {
				t.Fatalf("an amount that does not fit gave %v", err)
			}
		case err != nil || int64(bill.Total) != exact.Int64():
			t.Fatalf("got %d, exactly %s (%v)", bill.Total, exact, err)
		}
	})
}

func TestSplittingTimeNeverMakesItDearer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := market.Prices{Currency: "USD", Slot: market.Rate(rapid.Int64Range(0, 1e12).Draw(t, "rate")), Disk: market.Rate(rapid.Int64Range(0, 1e9).Draw(t, "disk"))}
		a, b := rapid.Int64Range(0, 1e10).Draw(t, "a"), rapid.Int64Range(0, 1e10).Draw(t, "b")
		use := func(ms int64) market.Usage { return market.UsageAt(ms, 2, 1000, 0, 0) }
		first, err1 := p.Bill(use(a))
		second, err2 := p.Bill(use(b))
		whole, err3 := p.Bill(use(a + b))
		if err1 != nil || err2 != nil || err3 != nil {
			t.Skip("overflow is another test's")
		}
		if sum := first.Total + second.Total; sum > whole.Total || whole.Total-sum > 2 {
			t.Fatalf("parts %d, whole %d", sum, whole.Total)
		}
	})
}

func TestMoneyReadsWhatItWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := market.Micro(rapid.Int64Range(0, 1e17).Draw(t, "micro"))
		if got, err := market.ParseMicro(m.String()); err != nil || got != m {
			t.Fatalf("%d is written %q and read %d (%v)", m, m, got, err)
		}
	})
}

func TestMoneyThatIsNotADecimalIsRefused(t *testing.T) {
	for _, s := range []string{"", ".", "1.", ".5", "-1", "+1", "1e3", "0x1", "1,5", "1.0000001", "9999999999999", " 1", "１"} {
		if m, err := market.ParseMicro(s); market.CodeOf(err) != market.CodeBadMoney {
			t.Errorf("%q was read as %d (%v)", s, m, err)
		}
	}
	for s, want := range map[string]market.Micro{"0": 0, "3": 3_000_000, "0.40": 400_000, "0.000001": 1, "12.5": 12_500_000} {
		if m, err := market.ParseMicro(s); err != nil || m != want {
			t.Errorf("%q was read as %d (%v)", s, m, err)
		}
	}
}
