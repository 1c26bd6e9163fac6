package view_test

import (
	"testing"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

func TestReadsWhenIdleCardsEndAJob(t *testing.T) {
	for text, want := range map[string]market.IdleStop{
		"5%/10m": {Permille: 50, ForMs: 600_000}, " 0.5 % / 1m": {Permille: 5, ForMs: 60_000}, "100%/168h": {Permille: 1000, ForMs: 604_800_000},
	} {
		if got, err := view.ParseIdleStop(text, time.ParseDuration); err != nil || *got != want {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	if got, err := view.ParseIdleStop("", time.ParseDuration); got != nil || err != nil {
		t.Errorf("nothing is %+v, %v", got, err)
	}
	for _, text := range []string{"5/10m", "5%", "0%/10m", "101%/10m", "NaN%/10m", "5%/59s", "5%/192h", "%/", "5%/10m/1"} {
		if got, err := view.ParseIdleStop(text, time.ParseDuration); err == nil {
			t.Errorf("%q is taken for %+v", text, got)
		}
	}
}
