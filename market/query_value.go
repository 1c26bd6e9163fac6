package market

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// kind says how a field's values are written and compared.
type kind uint8

const (
	kindWord    kind = iota // any text, with globs
	kindCount               // a whole number
	kindTenth               // tenths, as compute capabilities are written
	kindMemory              // thousandths of a GiB; GB means the same, as cards and memory are sold
	kindDisk                // MB of 10⁶ bytes
	kindPower               // milliwatts
	kindMoney               // Micro
	kindTime                // milliseconds
	kindVersion             // numbers with dots between them
	kindSwitch              // 1 is true, 0 is false
	kindKey                 // a peer id
	kindBits                // bits a second
	kindDelay               // microseconds
	kindSpeed               // thousandths of a TFLOPS
	kindProof               // a ResidencyLevel
	kindClaim               // what an unregistered claim says: a number or a word
)

// form is how the values of a kind are written. The base is the unit in which they are kept.
type form struct {
	name    string // for help
	bare    string // what a number without a unit means
	expects string // a sentence for those who wrote something else
	ordered bool   // < and > make sense
	exact   bool   // finer than the base is refused, not rounded
	below   int64  // a number from here on is a mistake; 0 for no such bound
	digits  int    // digits after the point when a value is written in its main unit
	suffix  string // of the main unit
	units   []unit
}

// unit is a suffix and what it is worth: num/den of the base. Capitals do not matter.
type unit struct {
	suffix   string
	num, den int64
}

func (k kind) form() form {
	switch k {
	case kindWord:
		return form{name: "word", expects: "it takes words, with =, !=, in and notin"}
	case kindCount:
		return form{
			name: "number", expects: "it takes a whole number without a unit", ordered: true, exact: true,
			units: []unit{{"", 1, 1}},
		}
	case kindTenth:
		return form{
			name: "number", expects: "it takes a number such as 8.9, below 100", ordered: true, exact: true, digits: 1, below: 1000,
			units: []unit{{"", 10, 1}},
		}
	case kindMemory:
		return form{
			name: "memory", bare: "GB", expects: "it takes memory such as 24, 24GB or 512MB", ordered: true, digits: 3, suffix: "GB",
			units: memoryUnits(),
		}
	case kindDisk:
		return form{
			name: "disk", bare: "GB", expects: "it takes disk such as 100, 100GB, 93GiB or 1TB", ordered: true, digits: 3, suffix: "GB",
			units: diskUnits(),
		}
	case kindPower:
		return form{
			name: "power", bare: "W", expects: "it takes power such as 450, 450W or 0.45kW", ordered: true, exact: true, digits: 3, suffix: "W",
			units: []unit{{"", 1000, 1}, {"w", 1000, 1}, {"kw", 1_000_000, 1}},
		}
	case kindMoney:
		return form{name: "money", bare: "offer's currency", expects: "it takes an amount such as 0.40, at most six digits after the point", ordered: true}
	case kindTime:
		return form{
			name: "time", expects: "it takes a time with its unit, such as 90s, 10m, 2h or 7d, or unlimited", ordered: true, exact: true,
			units: []unit{{"ms", 1, 1}, {"s", 1000, 1}, {"m", 60_000, 1}, {"h", msPerHour, 1}, {"d", 24 * msPerHour, 1}},
		}
	case kindVersion:
		return form{name: "version", expects: "it takes a version such as 12.4, at most four numbers", ordered: true}
	case kindSwitch:
		return form{name: "true or false", expects: "it takes true or false, with = and !="}
	case kindKey:
		return form{name: "key", expects: "it takes a whole key such as 12D3KooW…, with =, !=, in and notin"}
	default:
		return k.lateForm()
	}
}

// lateForm is form for the kinds that only some fields have.
func (k kind) lateForm() form {
	switch k {
	case kindBits:
		return form{
			name: "bandwidth", bare: "Mbit/s", expects: "it takes a bandwidth such as 100, 100Mbit/s or 1Gbit/s; MB/s is 8 Mbit/s", ordered: true, digits: 6, suffix: "Mbit/s",
			units: bitUnits(),
		}
	case kindDelay:
		return form{
			name: "delay", bare: "ms", expects: "it takes a time such as 40, 40ms, 250us or 1s", ordered: true, exact: true, digits: 3, suffix: "ms",
			units: []unit{{"", 1000, 1}, {"us", 1, 1}, {"ms", 1000, 1}, {"s", 1_000_000, 1}},
		}
	case kindSpeed:
		return form{
			name: "speed", bare: "TFLOPS", expects: "it takes a speed such as 82.6, 82.6TFLOPS or 1PFLOPS", ordered: true, digits: 3, suffix: "TFLOPS",
			units: []unit{{"", 1000, 1}, {"gflops", 1, 1}, {"tflops", 1000, 1}, {"pflops", 1_000_000, 1}},
		}
	case kindProof:
		return form{name: "proof", expects: "it takes refuted, claimed, address or round-trip, from the least", ordered: true}
	case kindClaim:
		return form{name: "any", expects: "it takes a whole number, or a word with =, !=, in and notin", ordered: true}
	}
	return form{}
}

// bitUnits are powers of ten. None is of bytes: capitals do not matter, and what Mb/s means to one is MB/s to another.
func bitUnits() []unit {
	return []unit{
		{"", 1_000_000, 1},
		{"bit/s", 1, 1},
		{"bps", 1, 1},
		{"kbit/s", 1000, 1},
		{"kbps", 1000, 1},
		{"mbit/s", 1_000_000, 1},
		{"mbps", 1_000_000, 1},
		{"gbit/s", 1_000_000_000, 1},
		{"gbps", 1_000_000_000, 1},
	}
}

// memoryUnits are powers of two, whatever they are called: memory is sold so.
func memoryUnits() []unit {
	return []unit{
		{"", 1000, 1},
		{"g", 1000, 1},
		{"gb", 1000, 1},
		{"gib", 1000, 1},
		{"m", 1000, 1024},
		{"mb", 1000, 1024},
		{"mib", 1000, 1024},
		{"t", 1_024_000, 1},
		{"tb", 1_024_000, 1},
		{"tib", 1_024_000, 1},
	}
}

// diskUnits are powers of ten, but for those that say otherwise.
func diskUnits() []unit {
	return []unit{
		{"", 1000, 1},
		{"g", 1000, 1},
		{"gb", 1000, 1},
		{"gib", gib, 1_000_000},
		{"m", 1, 1},
		{"mb", 1, 1},
		{"mib", 1 << 20, 1_000_000},
		{"t", 1_000_000, 1},
		{"tb", 1_000_000, 1},
		{"tib", gib << 10, 1_000_000},
	}
}

// operand is the value of a clause. Which part holds it follows from the field's kind.
type operand struct {
	num     int64
	word    pattern
	version version
	key     Key
	isWord  bool // of an unregistered claim: only the word counts
}

// parseOperand reads a value as the kind wants it; false if it does not fit.
func (k kind) parseOperand(text string) (operand, bool) {
	switch k {
	case kindWord:
		return operand{word: newPattern(text)}, true
	case kindMoney:
		if strings.EqualFold(text, unlimited) {
			return operand{num: endless}, true
		}
		m, err := ParseMicro(text)
		return operand{num: int64(m)}, err == nil
	case kindTime:
		if strings.EqualFold(text, unlimited) {
			return operand{num: endless}, true
		}
	case kindProof:
		level := slices.Index(residencyLevels(), ResidencyLevel(strings.ToLower(text)))
		return operand{num: int64(level)}, level >= 0
	case kindClaim:
		n, err := strconv.ParseInt(text, 10, 64)
		return operand{num: n, word: newPattern(text), isWord: err != nil || strconv.FormatInt(n, 10) != text}, true
	case kindVersion:
		v, rest := parseVersion(text)
		return operand{version: v}, v.n > 0 && rest == ""
	case kindSwitch:
		if strings.EqualFold(text, "true") {
			return operand{num: 1}, true
		}
		return operand{}, strings.EqualFold(text, "false")
	case kindKey:
		key, err := ParseKey(text)
		return operand{key: key}, err == nil
	}
	n, ok := k.form().parseNumber(text)
	return operand{num: n}, ok
}

// unlimited is how a limit that is none is written.
const unlimited = "unlimited"

// show writes an operand so that parseOperand reads the same again.
func (d operand) show(k kind) string {
	switch k {
	case kindWord, kindClaim:
		return d.word.typed
	case kindProof:
		return string(residencyLevels()[d.num])
	case kindMoney:
		if d.num == endless {
			return unlimited
		}
		return Micro(d.num).String()
	case kindTime:
		if d.num == endless {
			return unlimited
		}
		return showTime(d.num)
	case kindVersion:
		return d.version.String()
	case kindSwitch:
		return strconv.FormatBool(d.num == 1)
	case kindKey:
		return d.key.String()
	default:
		f := k.form()
		return showDecimal(d.num, f.digits) + f.suffix
	}
}

// matches reports whether a known value is the operand's: by glob, to the last digit, or as far as a version is written.
func (d *operand) matches(v *value, k kind) bool {
	switch k {
	case kindWord:
		for i := range v.images {
			if v.digests && d.word.match(v.images[i].Digest) || !v.digests && d.word.match(v.images[i].Name) {
				return true
			}
		}
		return v.text != "" && d.word.match(v.text) || slices.ContainsFunc(v.words, d.word.match)
	case kindVersion:
		return v.version.compare(d.version, d.version.n) == 0
	case kindKey:
		return v.key == d.key
	case kindClaim:
		if v.text != "" {
			return d.word.match(v.text)
		}
		return !d.isWord && v.num == d.num
	default:
		return v.num == d.num
	}
}

// order compares a known value with the operand.
func (d *operand) order(v *value, k kind) int {
	if k == kindVersion {
		return v.version.compare(d.version, d.version.n)
	}
	return cmp.Compare(v.num, d.num)
}

// Bounds of a number in a query: they keep every step of its arithmetic in 64 or 128 bits.
const (
	maxWholeDigits = 12
	maxPartDigits  = 6
)

// parseNumber reads a decimal and its unit into the base of the form.
func (f form) parseNumber(text string) (int64, bool) {
	end := strings.IndexFunc(text, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end < 0 {
		end = len(text)
	}
	whole, part, point := strings.Cut(text[:end], ".")
	if whole == "" || len(whole) > maxWholeDigits || len(part) > maxPartDigits || point && part == "" || strings.Contains(part, ".") {
		return 0, false
	}
	digits, err := strconv.ParseInt(whole+part, 10, 64)
	if err != nil {
		return 0, false
	}
	for _, u := range f.units {
		if strings.EqualFold(u.suffix, text[end:]) {
			return f.scale(digits, u, len(part))
		}
	}
	return 0, false
}

// scale computes digits × num ÷ (den × 10^places), to the nearest where the form rounds.
func (f form) scale(digits int64, u unit, places int) (int64, bool) {
	divisor := uint64(u.den) * uint64(math.Pow10(places))
	hi, lo := bits.Mul64(uint64(digits), uint64(u.num))
	if hi >= divisor {
		return 0, false
	}
	n, remainder := bits.Div64(hi, lo, divisor)
	if n >= math.MaxInt64/2 || f.exact && remainder != 0 {
		return 0, false
	}
	if remainder >= divisor-remainder {
		n++
	}
	return int64(n), f.below == 0 || int64(n) < f.below
}

// showDecimal writes n ÷ 10^digits without zeros at the end.
func showDecimal(n int64, digits int) string {
	s := strconv.FormatInt(n, 10)
	if digits == 0 {
		return s
	}
	if len(s) <= digits {
		s = strings.Repeat("0", digits+1-len(s)) + s
	}
	whole, part := s[:len(s)-digits], strings.TrimRight(s[len(s)-digits:], "0")
	if part == "" {
		return whole
	}
	return whole + "." + part
}

// showTime writes milliseconds in the largest unit that needs no fraction.
func showTime(ms int64) string {
	units := kindTime.form().units
	for i := len(units) - 1; i > 0; i-- {
		if ms != 0 && ms%units[i].num == 0 {
			return strconv.FormatInt(ms/units[i].num, 10) + units[i].suffix
		}
	}
	return strconv.FormatInt(ms, 10) + units[0].suffix
}

// blanksToUnderscores writes a word so that it needs no quotes for its blanks.
func blanksToUnderscores(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return '_'
		}
		return r
	}, s)
}
