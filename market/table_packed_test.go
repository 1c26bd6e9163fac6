package market

import (
	"testing"

	"pgregory.net/rapid"
)

func TestAPackedArrayKeepsWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p packed
		type cell struct {
			n     int64
			known bool
		}
		model := map[uint32]cell{}
		for range rapid.IntRange(1, 200).Draw(t, "writes") {
			row := rapid.Uint32Range(0, 2*chunkRows).Draw(t, "row")
			c := cell{known: rapid.Bool().Draw(t, "known")}
			if c.known {
				c.n = rapid.OneOf(rapid.Int64Range(-3, 300), rapid.Int64Range(1e9, 1e9+70_000), rapid.Int64Range(-1<<62, 1<<63-1)).Draw(t, "n")
			}
			p.set(row, c.known, c.n)
			model[row] = c
		}
		for row, c := range model {
			if n, known := p.get(row); n != c.n || known != c.known {
				t.Fatalf("row %d: %d %t, want %d %t", row, n, known, c.n, c.known)
			}
		}
	})
}
