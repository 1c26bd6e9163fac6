package market

// chunkRows is the number of rows in a chunk of a column, and of those that a clause is asked at once. A chunk that is there
// is never moved: a table grows without copying what it holds, and has at most one chunk of slack in each column.
const chunkRows = 4096

// list is an array that grows by chunks; the first one grows as a slice does, so that a small table is small. Its zero value is empty.
type list[T any] struct {
	chunks [][]T
}

// at returns the place of an index that is below the list's length, until the list grows.
func (l *list[T]) at(i uint32) *T { return &l.chunks[i/chunkRows][i%chunkRows] }

// reach makes room for an index.
func (l *list[T]) reach(i uint32) *T {
	if len(l.chunks) == 0 {
		l.chunks = append(l.chunks, nil)
	}
	if n := uint32(len(l.chunks[0])); i >= n && n < chunkRows {
		grown := make([]T, min(max(16, 2*n, i+1), chunkRows))
		copy(grown, l.chunks[0])
		l.chunks[0] = grown
	}
	for uint32(len(l.chunks))*chunkRows <= i {
		l.chunks = append(l.chunks, make([]T, chunkRows))
	}
	return l.at(i)
}

// finder finds codes by what they stand for: open addressing over codes alone, so that it costs about eight bytes an entry.
// Its users say what is the same and how it is hashed.
type finder struct {
	cells []uint32 // code + 1; 0 is empty
	used  int
}

// find returns the code of a hash for which same holds.
func (f *finder) find(hash uint64, same func(code uint32) bool) (uint32, bool) {
	if len(f.cells) == 0 {
		return 0, false
	}
	mask := uint64(len(f.cells) - 1)
	for at := hash & mask; f.cells[at] != 0; at = (at + 1) & mask {
		if code := f.cells[at] - 1; same(code) {
			return code, true
		}
	}
	return 0, false
}

// add notes a code that is not there yet.
func (f *finder) add(code uint32, hashOf func(code uint32) uint64) {
	if f.used*4 >= len(f.cells)*3 {
		old := f.cells
		f.cells = make([]uint32, max(16, 2*len(old)))
		for _, cell := range old {
			if cell != 0 {
				f.place(cell, hashOf(cell-1))
			}
		}
	}
	f.place(code+1, hashOf(code))
	f.used++
}

func (f *finder) place(cell uint32, hash uint64) {
	mask := uint64(len(f.cells) - 1)
	at := hash & mask
	for f.cells[at] != 0 {
		at = (at + 1) & mask
	}
	f.cells[at] = cell
}

// remove forgets a code. What stands behind it moves up, so that no empty cell cuts a later search short.
func (f *finder) remove(code uint32, hashOf func(code uint32) uint64) {
	mask := uint64(len(f.cells) - 1)
	gap := hashOf(code) & mask
	for f.cells[gap] != code+1 {
		if f.cells[gap] == 0 {
			return
		}
		gap = (gap + 1) & mask
	}
	for at := (gap + 1) & mask; f.cells[at] != 0; at = (at + 1) & mask {
		home := hashOf(f.cells[at]-1) & mask
		if (at-home)&mask >= (at-gap)&mask {
			f.cells[gap] = f.cells[at]
			gap = at
		}
	}
	f.cells[gap] = 0
	f.used--
}
