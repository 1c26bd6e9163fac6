package market

import (
	"encoding/binary"
	"hash/maphash"
	"strconv"
	"strings"
)

// dict keeps each value of a column once and counts who uses it. A value that nobody uses any more makes place for another.
type dict struct {
	kind  kind
	seed  maphash.Seed
	nums  list[int64]
	texts list[string]
	keys  list[Key]
	parts *dict // of lists: what they consist of
	refs  list[uint32]
	high  uint32   // codes that were ever given
	free  []uint32 // of them, those that stand for nothing
	find  finder
	bytes int // of texts
}

func newDict(k kind, seed maphash.Seed) *dict {
	d := &dict{kind: k, seed: seed}
	if k == kindWord {
		d.parts = &dict{kind: k, seed: seed}
	}
	return d
}

// isNumber reports whether values of a kind are numbers alone.
func (k kind) isNumber() bool {
	return k != kindWord && k != kindVersion && k != kindKey && k != kindClaim
}

// distinct is the number of values that are kept.
func (d *dict) distinct() int { return int(d.high) - len(d.free) }

// size is the memory that the values' own bytes take.
func (d *dict) size() int {
	if d.parts == nil {
		return d.bytes
	}
	return d.bytes + d.parts.bytes
}

// intern returns the code of a known value, and counts one use of it.
func (d *dict) intern(v *value) uint32 {
	switch {
	case d.kind.isNumber():
		code, known := d.lookup(v)
		if !known {
			code = d.next()
			*d.nums.reach(code) = v.num
		}
		return d.use(code, known)
	case d.kind == kindKey:
		code, known := d.lookup(v)
		if !known {
			code = d.next()
			*d.keys.reach(code) = v.key
		}
		return d.use(code, known)
	case v.images == nil && v.words == nil && d.kind == kindWord:
		return d.internText(escapedText(v.text))
	}
	text := d.listText(v)
	code := d.internText(text)
	if *d.refs.at(code) > 1 {
		d.releaseParts(text) // the one that was there uses them already
	}
	return code
}

func (d *dict) internText(text string) uint32 {
	code, known := d.lookupText(text)
	if !known {
		code = d.next()
		*d.texts.reach(code) = strings.Clone(text)
		d.bytes += len(text)
	}
	return d.use(code, known)
}

// next returns a code that stands for nothing.
func (d *dict) next() uint32 {
	if n := len(d.free); n > 0 {
		code := d.free[n-1]
		d.free = d.free[:n-1]
		return code
	}
	d.high++
	*d.refs.reach(d.high - 1) = 0
	return d.high - 1
}

// use counts one use of a code, which can be found from now on.
func (d *dict) use(code uint32, known bool) uint32 {
	if !known {
		d.find.add(code, d.hashOf)
	}
	*d.refs.at(code)++
	return code
}

// lookup returns the code of a number or a key, where it is kept.
func (d *dict) lookup(v *value) (uint32, bool) {
	if d.kind == kindKey {
		return d.find.find(maphash.Comparable(d.seed, v.key), func(code uint32) bool { return *d.keys.at(code) == v.key })
	}
	return d.find.find(maphash.Comparable(d.seed, v.num), func(code uint32) bool { return *d.nums.at(code) == v.num })
}

func (d *dict) lookupText(text string) (uint32, bool) {
	return d.find.find(maphash.String(d.seed, text), func(code uint32) bool { return *d.texts.at(code) == text })
}

func (d *dict) hashOf(code uint32) uint64 {
	switch {
	case d.kind.isNumber():
		return maphash.Comparable(d.seed, *d.nums.at(code))
	case d.kind == kindKey:
		return maphash.Comparable(d.seed, *d.keys.at(code))
	}
	return maphash.String(d.seed, *d.texts.at(code))
}

// release takes one use of a value back.
func (d *dict) release(code uint32) {
	if *d.refs.at(code)--; *d.refs.at(code) > 0 {
		return
	}
	d.find.remove(code, d.hashOf)
	d.free = append(d.free, code)
	if d.kind.isNumber() || d.kind == kindKey {
		return
	}
	text := d.texts.at(code)
	d.bytes -= len(*text)
	d.releaseParts(*text)
	*text = ""
}

// value returns what a code stands for.
func (d *dict) value(code uint32) value {
	switch {
	case d.kind.isNumber():
		return number(*d.nums.at(code))
	case d.kind == kindKey:
		return value{known: true, key: *d.keys.at(code)}
	}
	text := *d.texts.at(code)
	v := value{known: true}
	switch {
	case d.kind == kindVersion:
		v.version, _ = parseVersion(text)
	case len(text) < 2 || text[0] != escape || text[1] == markText:
		v.text = plainText(text)
	default:
		eachPart(text, func(part uint32) {
			p := *d.parts.texts.at(part)
			if text[1] == markWords {
				v.words = append(v.words, p)
			} else {
				v.images = append(v.images, imageOf(p))
			}
		})
	}
	return v
}

// Marks behind an escape say what a text stands for. A text that begins with one has its own.
const (
	escape     = 0
	markText   = 't'
	markWords  = 'w' // codes of parts
	markImages = 'i'
)

func escapedText(text string) string {
	if text != "" && text[0] == escape {
		return string([]byte{escape, markText}) + text
	}
	return text
}

func plainText(text string) string {
	return strings.TrimPrefix(text, string([]byte{escape, markText}))
}

// listText writes a list by the codes of its parts, which it uses, and a version by its numbers.
func (d *dict) listText(v *value) string {
	if d.kind == kindVersion {
		return v.version.String()
	}
	b := []byte{escape, markWords}
	for _, w := range v.words {
		b = binary.AppendUvarint(b, uint64(d.parts.internText(w)))
	}
	for _, i := range v.images {
		b[1] = markImages
		b = binary.AppendUvarint(b, uint64(d.parts.internText(imageText(i))))
	}
	return string(b)
}

func (d *dict) releaseParts(text string) {
	if d.parts != nil && len(text) >= 2 && text[0] == escape && text[1] != markText {
		eachPart(text, d.parts.release)
	}
}

func eachPart(text string, do func(part uint32)) {
	for b := []byte(text[2:]); len(b) > 0; {
		code, n := binary.Uvarint(b)
		b = b[n:]
		do(uint32(code))
	}
}

// imageText writes an image as one text: its name has no zero byte, and neither has its size.
func imageText(i ImageName) string {
	return i.Name + "\x00" + i.Digest + "\x00" + strconv.FormatInt(i.Size, 10)
}

func imageOf(text string) ImageName {
	name, rest, _ := strings.Cut(text, "\x00")
	at := strings.LastIndexByte(rest, 0)
	size, err := strconv.ParseInt(rest[at+1:], 10, 64)
	if err != nil {
		return ImageName{}
	}
	return ImageName{Name: name, Digest: rest[:at], Size: size}
}
