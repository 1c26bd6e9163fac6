package rigcore

import "testing"

func TestEachCardComesWithItsPartOfTheLine(t *testing.T) {
	for _, c := range []struct {
		name                     string
		line, share, slots, want int64
	}{
		{"two cards divide what jobs may take", 40e6, 80, 2, 16e6},
		{"one card has all of it", 250e6, 90, 1, 225e6},
		{"a line that nobody knows promises nothing", 0, 80, 2, 0},
		{"no card, no promise", 40e6, 80, 0, 0},
		{"less than a job can be limited to is not promised", 100e3, 80, 32, 0},
		{"the widest line does not overflow", 1e12, 100, 1, 1e12},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := perSlot(c.line, c.share, c.slots); got != c.want {
				t.Errorf("%d bits a second, want %d", got, c.want)
			}
		})
	}
}
