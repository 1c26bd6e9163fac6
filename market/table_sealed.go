package market

import "encoding/binary"

// Bounds of a packer. A place in the text and one in the record share 16 bits: a record is at most MaxOffer long.
const (
	maxPackText  = 1<<16 - MaxOffer - len(Key{})
	packHashBits = 13
	packWays     = 8
	leastMatch   = 4

	// An offer always has bytes that nobody could have had before: its signature, hashes and times, and those of each slot. What is new
	// beyond them by leastNew is worth learning.
	newPerOffer = 128
	newPerSlot  = 40
	leastNew    = 32
)

// packer keeps sealed offers small. Offers repeat each other's words, so a record is written as pieces of a text that all records
// share, of its own beginning, and of bytes that neither has: keys, signatures and hashes. The text only grows, so what was packed
// before can always be read. The form lives in one program's memory and never leaves it: runs of
//
//	literals(4 bits) match(4 bits) [more literals] [more match] literals… place(16 bits)
//
// where 15 in four bits says that a byte follows, again and again while it is 255; a place from maxPackText on is one in the record.
type packer struct {
	text  []byte
	table [1 << packHashBits][packWays]uint16 // newest places + 1 of four bytes
}

// packHash spreads four bytes (Knuth's multiplicative hash).
func packHash(b []byte) uint32 {
	return binary.LittleEndian.Uint32(b) * 2654435761 >> (32 - packHashBits)
}

// pack returns the packed form of a record of at most MaxOffer bytes, and says how many of its bytes were new to it. The signer's key is
// kept elsewhere, and so is not in the form.
func (p *packer) pack(signer Key, record []byte) (form []byte, fresh int) {
	var own [1 << packHashBits]uint16
	record = append(signer[:], record...)
	own[packHash(record)] = 1
	from := len(signer)
	for at := from; at+leastMatch <= len(record); {
		h := packHash(record[at:])
		place, n := p.longest(record, at, int(own[h])-1, h)
		own[h] = uint16(at + 1)
		if n < leastMatch {
			at++
			continue
		}
		fresh += at - from
		form = appendRun(form, record[from:at], n, place)
		for end := at + n; at < end; at++ {
			if at+leastMatch <= len(record) {
				own[packHash(record[at:])] = uint16(at + 1)
			}
		}
		from = at
	}
	if from < len(record) {
		form = appendRun(form, record[from:], 0, 0)
	}
	return form, fresh + len(record) - from
}

// longest returns the longest piece that a record goes on with: of the text, or of itself.
func (p *packer) longest(record []byte, at, own int, h uint32) (place, n int) {
	for _, c := range p.table[h] {
		if m := same(p.text[max(int(c)-1, 0):], record[at:]); c > 0 && m > n {
			place, n = int(c)-1, m
		}
	}
	if own >= 0 {
		if m := same(record[own:], record[at:]); m > n {
			place, n = maxPackText+own, m
		}
	}
	return place, n
}

func same(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func appendRun(to, literals []byte, match, place int) []byte {
	more := max(match-leastMatch, 0)
	to = append(to, byte(min(len(literals), 15)<<4|min(more, 15)))
	to = appendMore(to, len(literals))
	if match > 0 {
		to = appendMore(to, more)
	}
	to = append(to, literals...)
	if match > 0 {
		to = binary.LittleEndian.AppendUint16(to, uint16(place))
	}
	return to
}

func appendMore(to []byte, n int) []byte {
	for n -= 15; n >= 0; n -= 255 {
		to = append(to, byte(min(n, 255)))
		if n < 255 {
			break
		}
	}
	return to
}

// unpack returns the record of a form that pack made.
func (p *packer) unpack(signer Key, form string) []byte {
	record := append(make([]byte, 0, 4*len(form)), signer[:]...)
	more := func(n int) int {
		if n < 15 {
			return n
		}
		for {
			b := form[0]
			form = form[1:]
			n += int(b)
			if b < 255 {
				return n
			}
		}
	}
	for form != "" {
		head := form[0]
		form = form[1:]
		literals := more(int(head >> 4))
		if literals >= len(form) { // the last run has no match
			return append(record, form...)[len(signer):]
		}
		match := more(int(head&15)) + leastMatch
		record = append(record, form[:literals]...)
		place := int(form[literals]) | int(form[literals+1])<<8
		form = form[literals+2:]
		if place < maxPackText {
			record = append(record, p.text[place:place+match]...)
			continue
		}
		for from := place - maxPackText; match > 0; match-- {
			record = append(record, record[from]) // byte by byte: it may reach into what it writes
			from++
		}
	}
	return record[len(signer):]
}

// learn adds a record to the text while there is room.
func (p *packer) learn(record []byte) {
	if len(p.text)+len(record) > maxPackText {
		return
	}
	at := len(p.text)
	p.text = append(p.text, record...)
	for at = max(0, at-leastMatch+1); at+leastMatch <= len(p.text); at++ {
		e := &p.table[packHash(p.text[at:])]
		copy(e[1:], e[:])
		e[0] = uint16(at + 1)
	}
}
