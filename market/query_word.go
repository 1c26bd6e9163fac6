package market

import (
	"cmp"
	"strconv"
	"strings"
)

// pattern is a word of a query: * stands for any bytes, ? for one, capitals do not matter, blank and _ are the same.
type pattern struct {
	typed  string // as it was written, with _ for blanks
	folded string
}

func newPattern(text string) pattern {
	typed := blanksToUnderscores(text)
	return pattern{typed: typed, folded: foldWord(typed)}
}

// literal reports whether the pattern stands for one word only.
func (p pattern) literal() bool { return !strings.ContainsAny(p.folded, "*?") }

// match reports whether a word fits. Its time is bounded by the product of both lengths.
func (p pattern) match(word string) bool {
	at, in := 0, 0        // next byte of pattern and word
	star, resume := -1, 0 // the last * and where the word goes on after it
	for in < len(word) {
		switch {
		case at < len(p.folded) && p.folded[at] == '*':
			star, resume = at, in
			at++
		case at < len(p.folded) && (p.folded[at] == '?' || p.folded[at] == foldByte(word[in])):
			at++
			in++
		case star >= 0:
			resume++
			at, in = star+1, resume
		default:
			return false
		}
	}
	return strings.Trim(p.folded[at:], "*") == ""
}

// foldByte makes bytes equal that a query does not tell apart. Letters outside ASCII stay as they are: names of offers
// have none.
func foldByte(b byte) byte {
	switch {
	case b >= 'A' && b <= 'Z':
		return b + 'a' - 'A'
	case b == ' ':
		return '_'
	}
	return b
}

func foldWord(s string) string {
	folded := []byte(s)
	for i, b := range folded {
		folded[i] = foldByte(b)
	}
	return string(folded)
}

const (
	maxVersionParts  = 4
	maxVersionDigits = 9 // of one part
)

// version is up to four numbers, the most significant first.
type version struct {
	n     int // parts that were written
	parts [maxVersionParts]int64
}

// parseVersion reads as many numbers with dots between them as there are, and returns what follows. It allocates nothing.
func parseVersion(s string) (version, string) {
	var v version
	for v.n < maxVersionParts {
		digits, n := 0, int64(0)
		for digits < len(s) && digits < maxVersionDigits && s[digits] >= '0' && s[digits] <= '9' {
			n = n*10 + int64(s[digits]-'0')
			digits++
		}
		if digits == 0 {
			return v, "." + s // the dot before it has no number
		}
		v.parts[v.n] = n
		v.n++
		s = s[digits:]
		if v.n == maxVersionParts || s == "" || s[0] != '.' {
			break
		}
		s = s[1:]
	}
	return v, s
}

// compare orders two versions by their first parts; a part that was not written is 0.
func (v version) compare(w version, parts int) int {
	for i := range parts {
		if c := cmp.Compare(v.parts[i], w.parts[i]); c != 0 {
			return c
		}
	}
	return 0
}

// String writes the version with dots.
func (v version) String() string {
	var parts []string
	for _, n := range v.parts[:v.n] {
		parts = append(parts, strconv.FormatInt(n, 10))
	}
	return strings.Join(parts, ".")
}
