package market

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"
)

// value is what one slot of an offer has in one field. Which part holds it follows from the field's kind. It is not
// known where the offer is silent, and then no clause on it holds.
type value struct {
	known   bool
	num     int64 // in the base of its kind
	text    string
	version version
	key     Key
	images  []ImageName
	digests bool // of images, their digests and not their names
	words   []string
}

const gib = int64(1) << 30

func number(n int64) value { return value{known: true, num: n} }

func word(s string) value { return value{known: s != "", text: s} }

func optional(n *int64) value {
	if n == nil {
		return value{}
	}
	return number(*n)
}

func truth(b *bool) value {
	switch {
	case b == nil:
		return value{}
	case *b:
		return number(1)
	}
	return number(0)
}

func versionValue(s string) value {
	v, rest := parseVersion(s) // what follows, such as -open, says nothing about its age; a number that is cut off would
	return value{known: v.n > 0 && (rest == "" || rest[0] < '0' || rest[0] > '9'), version: v}
}

// asSold turns bytes into thousandths of a GiB, rounded to whole GiB from one GiB on: a card that is sold with 24 GB has
// 24564 MiB, and a driver keeps a little of every card for itself.
func asSold(bytes int64) int64 {
	if bytes < gib {
		return bytes * 1000 / gib
	}
	return (bytes/gib + bytes%gib*2/gib) * 1000
}

// show writes a value for people, in the words that a query would use.
func (v value) show(k kind) string {
	if !v.known {
		return "unknown"
	}
	switch k {
	case kindClaim:
		if v.text != "" {
			return Printable(v.text)
		}
		return strconv.FormatInt(v.num, 10)
	case kindWord:
		if v.text != "" {
			return Printable(v.text)
		}
		names := make([]string, len(v.images))
		for i, image := range v.images {
			names[i] = Printable(image.Name)
			if v.digests {
				names[i] = Printable(image.Digest)
			}
		}
		for _, w := range v.words {
			names = append(names, Printable(w))
		}
		return cmp.Or(strings.Join(names, ","), "none")
	default:
		return operand{num: v.num, version: v.version, key: v.key}.show(k)
	}
}

// compare orders two known values of a kind.
func (v value) compare(w value, k kind) int {
	switch k {
	case kindClaim:
		return cmp.Or(cmp.Compare(v.firstWord(), w.firstWord()), cmp.Compare(v.num, w.num))
	case kindWord:
		return cmp.Compare(v.firstWord(), w.firstWord())
	case kindVersion:
		return v.version.compare(w.version, maxVersionParts)
	case kindKey:
		return bytes.Compare(v.key[:], w.key[:])
	default:
		return cmp.Compare(v.num, w.num)
	}
}

// firstWord returns the folded word by which a value is sorted: of a list, the first.
func (v value) firstWord() string {
	if len(v.images) > 0 {
		if v.digests {
			return foldWord(v.images[0].Digest)
		}
		return foldWord(v.images[0].Name)
	}
	if len(v.words) > 0 {
		return foldWord(v.words[0])
	}
	return foldWord(v.text)
}
