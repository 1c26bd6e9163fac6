package tui_test

import (
	"math"
	"testing"
	"time"

	"haggle/market"
	"haggle/tui"
)

func TestReadsTimes(t *testing.T) {
	for text, want := range map[string]time.Duration{"90s": 90 * time.Second, "1h30m": 90 * time.Minute, "7d": 168 * time.Hour, " 2h ": 2 * time.Hour} {
		if got, err := tui.ParseSpan(text); err != nil || got != want {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "h", "5", "-1h", "1y", "99999999999h", "0s", "400d", "1.5h"} {
		if got, err := tui.ParseSpan(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

func TestReadsDisksInWholeGB(t *testing.T) {
	for text, want := range map[string]int64{"50": 50_000, "50GB": 50_000, " 1 gb ": 1000} {
		if got, err := tui.ParseDisk(text); err != nil || got != want {
			t.Errorf("%q is %d MB, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "GB", "0", "-1", "1.5GB", "50GiB", "99999999999999999999"} {
		if got, err := tui.ParseDisk(text); err == nil {
			t.Errorf("%q is taken for %d MB", text, got)
		}
	}
}

func TestWritesNumbersInTheUnitThatTheyFill(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1500: "1.5 kB", 999_950: "1 MB", 50_000_000_000: "50 GB", 1_234_567_890: "1.2 GB", math.MaxInt64: "9.2 EB",
	} {
		if got := tui.Thousands(n, "B"); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func TestEveryReasonOfAnEndHasItsWords(t *testing.T) {
	for _, r := range []market.Reason{
		market.ReasonTakeback, market.ReasonCredit, market.ReasonDiskFull, market.ReasonRig, market.ReasonFault, market.ReasonOOM,
		market.ReasonUnpaid, market.ReasonIdle,
	} {
		if got := tui.Endings(string(r)); got == string(r) {
			t.Errorf("%s has no words", r)
		}
	}
}

func TestReadsCommandsAsAShellDoes(t *testing.T) {
	got, err := tui.SplitWords(`train --name 'a b' "c \"d" e\ f ''`)
	want := []string{"train", "--name", "a b", `c "d`, "e f", ""}
	if err != nil || len(got) != len(want) {
		t.Fatalf("%q, %v", got, err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("word %d is %q", i, got[i])
		}
	}
	if _, err := tui.SplitWords(`a 'b`); err == nil {
		t.Error("an open quote is taken")
	}
}

func TestWritesTimesInTwoUnits(t *testing.T) {
	for ms, want := range map[int64]string{0: "0s", 59_999: "59s", 60_000: "1m", 72_000: "1m12s", 3_900_000: "1h5m", 90_000_000: "1d1h", -1: "unlimited"} {
		if got := tui.Lasting(ms); got != want {
			t.Errorf("%d is %q, want %q", ms, got, want)
		}
	}
}
