package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	day         = 24 * time.Hour
	maxDuration = 32 // characters
)

// ParseDuration reads a time as people write it: "90s", "2h", "7d", "1d12h", "500ms". Days come first, in whole numbers,
// and have 24 hours; the rest is as time.ParseDuration has it. A negative time is an error.
func ParseDuration(s string) (time.Duration, error) {
	bad := fmt.Errorf("%.40q is not a time such as 90s, 2h or 7d", s)
	if s == "" || len(s) > maxDuration || strings.ContainsAny(s, "+-") {
		return 0, bad
	}
	days, rest, found := strings.Cut(s, "d")
	if !found {
		days, rest = "0", s
	}
	n, err := strconv.ParseUint(days, 10, 32)
	if err != nil || n > uint64(math.MaxInt64/day) {
		return 0, bad
	}
	var d time.Duration
	if rest != "" {
		if d, err = time.ParseDuration(rest); err != nil || d < 0 {
			return 0, bad
		}
	}
	total := time.Duration(n)*day + d
	if total < d {
		return 0, bad // the sum does not fit
	}
	return total, nil
}

// FormatDuration writes a time so that ParseDuration reads the same: "7d", "1d12h", "1m30s". The time must not be
// negative.
func FormatDuration(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	var b strings.Builder
	for _, unit := range []struct {
		name string
		size time.Duration
	}{{"d", day}, {"h", time.Hour}, {"m", time.Minute}} {
		if n := d / unit.size; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10) + unit.name)
			d -= n * unit.size
		}
	}
	if d > 0 {
		b.WriteString(d.String()) // less than a minute: seconds, or smaller units
	}
	return b.String()
}
