package market

import (
	"encoding/binary"
	"math/bits"
)

// selection is a set of rows of one chunk.
type selection [chunkRows / 64]uint64

func (s *selection) empty() bool {
	var any uint64
	for _, w := range s {
		any |= w
	}
	return any == 0
}

func (s *selection) count() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

func (s *selection) has(i uint32) bool { return s[i/64]>>(i%64)&1 != 0 }

func (s *selection) add(i uint32) { s[i/64] |= 1 << (i % 64) }

func (s *selection) drop(i uint32) { s[i/64] &^= 1 << (i % 64) }

func lowest(word uint64) int { return bits.TrailingZeros64(word) }

// narrow asks a chunk of one byte a row: each byte that occurs is asked once.
func (a *asker) narrow(c *packedChunk, in *selection) (out selection) {
	var fits [256]uint8 // 0 not asked yet, 1 no, 2 yes
	fits[0] = 1
	for w := range in {
		if in[w] == 0 {
			continue
		}
		var hits uint64
		for i, code := range c.data[w*64 : w*64+64] {
			f := fits[code]
			if f == 0 && in[w]>>i&1 != 0 {
				f = 1
				if n, _ := c.number(uint64(code)); a.accepts(n) {
					f = 2
				}
				fits[code] = f
			}
			hits |= uint64(f>>1) << i
		}
		out[w] = hits & in[w]
	}
	return out
}

// coded asks a chunk of two bytes a row.
func (a *asker) coded(c *packedChunk, in *selection) (out selection) {
	for w, word := range in {
		data := c.data[w*128 : w*128+128]
		var hits uint64
		for ; word != 0; word &= word - 1 {
			i := lowest(word)
			code := uint64(binary.LittleEndian.Uint16(data[2*i:]))
			if n, known := c.number(code); known && a.accepts(n) {
				hits |= 1 << i
			}
		}
		out[w] = hits
	}
	return out
}
