package tunnel

import "math/bits"

// ring holds the bytes from head to tail of a stream; it grows by doubling. Bytes keep their place in a slice that was given
// out even when the ring grows: it leaves the old one behind.
type ring struct {
	buf  []byte // its length is a power of two, or zero
	base uint64 // the offset of the byte at buf[0]
	head uint64
	tail uint64
}

const (
	ringStart = 4 << 10
	ringKept  = 16 << 10 // an idle ring above it is given back
)

func (r *ring) used() uint64 { return r.tail - r.head }

// at returns up to n bytes from offset off that lie together.
func (r *ring) at(off uint64, n int) []byte {
	i := int((off - r.base) & uint64(len(r.buf)-1))
	return r.buf[i:min(i+n, len(r.buf))]
}

// room returns free space for up to n bytes after tail that lies together; the ring grows to at most most bytes, a power of two.
func (r *ring) room(n int, most uint64) []byte {
	if r.head == r.tail {
		r.base = r.head // start over where the cache is warm
	}
	if want := r.used() + uint64(n); want > uint64(len(r.buf)) && uint64(len(r.buf)) < most {
		r.grow(min(max(uint64(1)<<bits.Len64(want-1), ringStart), most))
	}
	free := uint64(len(r.buf)) - r.used()
	return r.at(r.tail, int(min(uint64(n), free)))
}

func (r *ring) grow(size uint64) {
	next := make([]byte, size)
	n := copy(next, r.at(r.head, int(r.used())))
	if rest := int(r.used()) - n; rest > 0 {
		copy(next[n:], r.at(r.head+uint64(n), rest))
	}
	r.buf, r.base = next, r.head
}

// shrink gives an empty ring's memory back.
func (r *ring) shrink() {
	if r.head == r.tail && len(r.buf) > ringKept {
		r.buf, r.base = nil, r.head
	}
}
