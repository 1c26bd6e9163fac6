package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// rateUnits are in the order in which rates are written.
var rateUnits = []sizeUnit{{"Gbit", 1e9}, {"Mbit", 1e6}, {"Kbit", 1e3}, {"bit", 1}}

// parseRate reads a number of bits a second: "40Mbit", "1Gbit", "0".
func parseRate(s string) (int64, error) {
	number, unit := strings.TrimSpace(s), int64(1)
	for _, u := range rateUnits {
		if rest, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil || int64(n) > math.MaxInt64/unit {
		return 0, fmt.Errorf("%.40q is not a rate such as 40Mbit or 1Gbit", s)
	}
	return int64(n) * unit, nil
}

// formatRate writes a number of bits a second in the largest unit that leaves a whole number.
func formatRate(n int64) string {
	for _, u := range rateUnits {
		if n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}
