package cli_test

import (
	"math"
	"testing"

	"haggle/internal/cli"
)

func TestBytesAreWrittenInTheUnitThatTheyFill(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1 kB", 1500: "1.5 kB", 999_949: "999.9 kB", 999_950: "1 MB", 999_999: "1 MB",
		50_000_000_000: "50 GB", 1_234_567_890: "1.2 GB", math.MaxInt64: "9.2 EB",
	} {
		if got := cli.Bytes(n); got != want {
			t.Errorf("%d bytes are %q, want %q", n, got, want)
		}
	}
}
