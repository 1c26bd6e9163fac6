package market

import (
	"encoding/binary"
	"math"
)

// packed is an array of numbers that may be unknown. Each chunk keeps them as offsets from its own base, as narrow as they go;
// a chunk in which all are the same keeps one. Its zero value is empty.
type packed struct {
	chunks []packedChunk
}

type packedChunk struct {
	data  []byte // chunkRows codes of width bytes, little endian; nil where width is 0
	base  int64  // code 0 is unknown, code n+1 is base+n
	same  uint64 // the code of all where width is 0
	width uint8  // 0, 1, 2, 4 or 8

	written bool // something
}

// set writes a number. What a row has that was never written is not said: the first number of a chunk stands for all.
func (p *packed) set(row uint32, known bool, n int64) {
	for uint32(len(p.chunks))*chunkRows <= row {
		p.chunks = append(p.chunks, packedChunk{})
	}
	c := &p.chunks[row/chunkRows]
	if !c.written {
		*c = packedChunk{written: true, base: n, same: uint64(truthOf(known))}
		return
	}
	code, ok := c.code(known, n)
	if !ok {
		c.widen(n)
		code, _ = c.code(known, n)
	}
	if c.width == 0 {
		if code == c.same {
			return
		}
		c.spread(widthOf(max(code, c.same)))
	}
	if widthOf(code) > c.width {
		c.spread(widthOf(code))
	}
	c.put(row%chunkRows, code)
}

// get reads a number.
func (p *packed) get(row uint32) (n int64, known bool) {
	if int(row/chunkRows) >= len(p.chunks) {
		return 0, false
	}
	c := &p.chunks[row/chunkRows]
	return c.number(c.at(row % chunkRows))
}

func (c *packedChunk) number(code uint64) (int64, bool) {
	if code == 0 {
		return 0, false
	}
	return c.base + int64(code-1), true
}

// code is how the chunk writes a number; false where it is below its base. The one number that is too far above the least one of all is
// written as the one before it.
func (c *packedChunk) code(known bool, n int64) (uint64, bool) {
	if !known {
		return 0, true
	}
	offset := min(uint64(n)-uint64(c.base), math.MaxUint64-1)
	return offset + 1, n >= c.base
}

// widen lowers the base so far that a number below it has a code, with as much room below as the width leaves anyway.
func (c *packedChunk) widen(n int64) {
	most, any := int64(math.MinInt64), false
	for i := range uint32(chunkRows) {
		if v, known := c.number(c.at(i)); known {
			most, any = max(most, v), true
		}
		if c.width == 0 {
			break
		}
	}
	old := *c
	if !any {
		*c = packedChunk{written: true, base: n}
		return // all were unknown and stay so
	}
	span := uint64(most) - uint64(n)
	c.width, c.base = widthOf(max(span, span+2)), n // span+2 may be too much for 64 bits
	if c.width < 8 {
		room := int64((uint64(1)<<(8*c.width) - span - 3) / 2)
		c.base = max(n, math.MinInt64+room) - room
	}
	c.data = make([]byte, chunkRows*int(c.width))
	for i := range uint32(chunkRows) {
		v, known := old.number(old.at(i))
		code, _ := c.code(known, v)
		c.put(i, code)
	}
}

// spread writes the codes wider than they are.
func (c *packedChunk) spread(width uint8) {
	old := *c
	c.width, c.data = width, make([]byte, chunkRows*int(width))
	for i := range uint32(chunkRows) {
		c.put(i, old.at(i))
	}
}

func (c *packedChunk) at(i uint32) uint64 {
	switch c.width {
	case 0:
		return c.same
	case 1:
		return uint64(c.data[i])
	case 2:
		return uint64(binary.LittleEndian.Uint16(c.data[2*i:]))
	case 4:
		return uint64(binary.LittleEndian.Uint32(c.data[4*i:]))
	default:
		return binary.LittleEndian.Uint64(c.data[8*i:])
	}
}

func (c *packedChunk) put(i uint32, code uint64) {
	switch c.width {
	case 1:
		c.data[i] = byte(code)
	case 2:
		binary.LittleEndian.PutUint16(c.data[2*i:], uint16(code))
	case 4:
		binary.LittleEndian.PutUint32(c.data[4*i:], uint32(code))
	default:
		binary.LittleEndian.PutUint64(c.data[8*i:], code)
	}
}

func widthOf(code uint64) uint8 {
	switch {
	case code <= math.MaxUint8:
		return 1
	case code <= math.MaxUint16:
		return 2
	case code <= math.MaxUint32:
		return 4
	}
	return 8
}
