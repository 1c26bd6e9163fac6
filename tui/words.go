package tui

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// money writes an amount with its currency.
func money(m view.Money) string {
	if m.Currency == "" {
		return m.Text
	}
	return m.Text + " " + m.Currency
}

// lasting writes a time in its two largest units: 1h05m, 12s.
func lasting(ms int64) string {
	if ms == market.Unlimited {
		return "unlimited"
	}
	s := max(0, ms) / 1000
	two := func(a int64, au string, b int64, bu string) string {
		if b == 0 {
			return strconv.FormatInt(a, 10) + au
		}
		return strconv.FormatInt(a, 10) + au + strconv.FormatInt(b, 10) + bu
	}
	switch {
	case s < 60:
		return strconv.FormatInt(s, 10) + "s"
	case s < 3600:
		return two(s/60, "m", s%60, "s")
	case s < 86400:
		return two(s/3600, "h", s%3600/60, "m")
	}
	return two(s/86400, "d", s%86400/3600, "h")
}

// thousands writes a number in the largest unit of thousands that it fills, with at most one digit behind the point: 1.2 GB.
func thousands(n int64, unit string) string {
	const prefixes = "kMGTPE"
	if n < 1000 {
		return strconv.FormatInt(n, 10) + " " + unit
	}
	value, at := float64(n)/1000, 0
	for value >= 999.95 && at < len(prefixes)-1 { // what would be written as 1000.0
		value, at = value/1000, at+1
	}
	return strings.TrimSuffix(strconv.FormatFloat(value, 'f', 1, 64), ".0") + " " + prefixes[at:at+1] + unit
}

// errBadSize: a text is no size of a disk.
var errBadSize = errors.New("write whole GB, such as 50 or 50GB")

// parseDisk reads a disk in whole GB and returns it in MB.
func parseDisk(text string) (int64, error) {
	number := strings.TrimSpace(strings.TrimSuffix(strings.ToUpper(strings.TrimSpace(text)), "GB"))
	n, err := strconv.ParseUint(number, 10, 20) // up to a petabyte
	if err != nil || n == 0 {
		return 0, errBadSize
	}
	return int64(n) * 1000, nil
}

// errBadCards: a text is no number of cards.
var errBadCards = errors.New("write a number of cards, such as 1 or 8")

// errNoBudget: a plan needs some money.
var errNoBudget = errors.New("write how much may be spent, such as 5 or 0.50")

// errBadSpan: a text is no time.
var errBadSpan = errors.New("write a time such as 90s, 2h or 7d")

// parseSpan reads what lasting writes, and a bit more: whole numbers, each with s, m, h or d.
func parseSpan(text string) (time.Duration, error) {
	var total time.Duration
	rest := strings.ReplaceAll(strings.TrimSpace(text), " ", "")
	if rest == "" {
		return 0, errBadSpan
	}
	for rest != "" {
		end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
		if end < 1 || end > 6 { // a number of at most six digits cannot overflow
			return 0, errBadSpan
		}
		n, err := strconv.Atoi(rest[:end])
		if err != nil {
			return 0, errBadSpan
		}
		unit, ok := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[rest[end]]
		if !ok || n > 366*24*3600 || time.Duration(n)*unit > 366*24*time.Hour {
			return 0, errBadSpan
		}
		total += time.Duration(n) * unit
		rest = rest[end+1:]
	}
	if total <= 0 {
		return 0, errBadSpan
	}
	return total, nil
}

// errOpenQuote: a quote in a command is not closed.
var errOpenQuote = errors.New("a quote is not closed")

// splitWords reads a command as a shell would, without expanding anything.
func splitWords(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	var quote rune
	begun, escaped := false, false
	for _, r := range text {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, begun = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case r == ' ':
			if begun {
				words = append(words, word.String())
				word.Reset()
				begun = false
			}
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 || escaped {
		return nil, errOpenQuote
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}

// explain puts an error of the Market into words: what happened, and what to do.
func explain(err error) (message, hint string) {
	if away(err) {
		return clean(err.Error()), "the agent does not answer; `haggle status` starts it"
	}
	w := market.Explain(err)
	return w.Message, w.Hint
}

// away reports whether an error means that the agent did not answer.
func away(err error) bool {
	var e *market.Error
	return err != nil && !errors.As(err, &e)
}

// plural writes a number with its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
