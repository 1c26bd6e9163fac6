package tunnel

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

func TestARingIsAQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 16 << 10
		var r ring
		var model []byte
		next := byte(0)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				n := min(rapid.IntRange(1, 6000).Draw(t, "n"), most-len(model))
				if n == 0 {
					return
				}
				room := r.room(n, most)
				if len(room) == 0 || len(room) > n {
					t.Fatalf("room of %d for %d", len(room), n)
				}
				for i := range room {
					room[i] = next
					next++
				}
				r.tail += uint64(len(room))
				model = append(model, room...)
			},
			"take": func(t *rapid.T) {
				n := rapid.IntRange(0, len(model)).Draw(t, "n")
				for n > 0 {
					got := r.at(r.head, n)
					if !bytes.Equal(got, model[:len(got)]) {
						t.Fatal("other bytes")
					}
					r.head += uint64(len(got))
					model = model[len(got):]
					n -= len(got)
				}
			},
			"shrink": func(*rapid.T) { r.shrink() },
			"": func(t *rapid.T) {
				if r.used() != uint64(len(model)) || len(r.buf) > most {
					t.Fatalf("%d bytes in %d, want %d", r.used(), len(r.buf), len(model))
				}
			},
		})
	})
}

func TestWindowIsAPowerOfTwoWithinBounds(t *testing.T) {
	for n, want := range map[uint64]uint64{0: 16 << 10, 1: 16 << 10, 16 << 10: 16 << 10, 16<<10 + 1: 32 << 10, 1 << 20: 1 << 20, 1 << 63: MaxWindow} {
		if got := window(n); got != want {
			t.Errorf("window(%d) = %d, want %d", n, got, want)
		}
	}
}
