package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// sizeUnit is a unit of memory, or of bits a second, by its name.
type sizeUnit struct {
	name  string
	bytes int64 // or bits
}

// sizeUnits are in the order in which sizes are written; those of thousands are only read.
var sizeUnits = []sizeUnit{
	{"TiB", 1 << 40},
	{"GiB", 1 << 30},
	{"MiB", 1 << 20},
	{"KiB", 1 << 10},
	{"TB", 1e12},
	{"GB", 1e9},
	{"MB", 1e6},
	{"KB", 1e3},
}

// ParseSize reads a number of bytes as people write it: "16GiB", "500MB", "0". Whole numbers only; a negative one is an error.
func ParseSize(s string) (int64, error) {
	number, unit := strings.TrimSpace(s), int64(1)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil || int64(n) > math.MaxInt64/unit {
		return 0, fmt.Errorf("%.40q is not a size such as 512MiB or 16GiB", s)
	}
	return int64(n) * unit, nil
}

// formatSize writes a number of bytes in the largest unit that leaves a whole number.
func formatSize(n int64) string {
	for _, u := range sizeUnits {
		if strings.HasSuffix(u.name, "iB") && n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}
