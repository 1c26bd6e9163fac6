package pay

import (
	"fmt"
	"strconv"
	"strings"
)

// FormatAmount writes millionths as a decimal with at least two places, for people.
func FormatAmount(micro int64) string {
	text := fmt.Sprintf("%d.%06d", micro/1e6, micro%1e6)
	for range 4 {
		text = strings.TrimSuffix(text, "0")
	}
	return text
}

// ParseAmount reads what a person writes: a decimal that is not negative, of at most six places and at most MostAmount.
func ParseAmount(text string) (int64, error) {
	bad := fmt.Errorf("%q is no amount: write one such as 20 or 0.50", text)
	whole, part, _ := strings.Cut(text, ".")
	if len(whole) == 0 || len(whole) > 10 || len(part) > 6 || strings.Trim(whole+part, "0123456789") != "" {
		return 0, bad
	}
	micro, err := strconv.ParseInt(whole+part+strings.Repeat("0", 6-len(part)), 10, 64)
	if err != nil || micro > MostAmount {
		return 0, bad
	}
	return micro, nil
}
