package view

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"haggle/market"
)

// Bounds of an idle stop as people write it; market checks them again.
const (
	leastIdlePercent, mostIdlePercent = 0.1, 100
	leastIdle, mostIdle               = time.Minute, 7 * 24 * time.Hour
)

// ErrIdleStop says how an idle stop is written. It is never written to.
var ErrIdleStop = errors.New("write a use and a time such as 5%/10m: from 0.1 to 100 %, from 1 minute to 7 days")

// ParseIdleStop reads when a job that does nothing is ended, as X%/TIME; nil for "". span reads times. The error is ErrIdleStop.
func ParseIdleStop(text string, span func(string) (time.Duration, error)) (*market.IdleStop, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no rule is no error
	}
	use, lasts, _ := strings.Cut(text, "/")
	number, percent := strings.CutSuffix(strings.TrimSpace(use), "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	d, late := span(strings.TrimSpace(lasts))
	if err != nil || late != nil || !percent || !(x >= leastIdlePercent && x <= mostIdlePercent) || d < leastIdle || d > mostIdle {
		return nil, ErrIdleStop
	}
	return &market.IdleStop{Permille: int64(x*10 + 0.5), ForMs: d.Milliseconds()}, nil
}
