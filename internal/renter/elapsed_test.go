package renter_test

import (
	"testing"
	"time"

	"haggle/internal/renter"
	"haggle/market"
)

func TestElapsedTimeAfterARestart(t *testing.T) {
	signed := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	after := func(d time.Duration) time.Time { return signed.Add(d) }
	cases := []struct {
		name   string
		state  renter.State
		now    time.Time
		agreed int64
		want   int64
	}{
		{"counts from the signature", renter.State{SignedAt: signed.UnixMilli()}, after(time.Hour), 0, 3_600_000},
		{"counts from the start that was seen", renter.State{SignedAt: signed.UnixMilli(), RunningAt: after(time.Minute).UnixMilli()}, after(time.Hour), 0, 3_540_000},
		{"believes what was signed for when the clock was set back", renter.State{SignedAt: signed.UnixMilli()}, after(-time.Hour), 600_000, market.Unlimited},
		{"is not fooled by what the tolerance let pass", renter.State{SignedAt: signed.UnixMilli()}, after(10 * time.Second), 12_010, 10_000},
		{"is never negative", renter.State{SignedAt: signed.UnixMilli()}, after(-time.Second), 0, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := renter.Elapsed(c.state, c.now, c.agreed); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}
