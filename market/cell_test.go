package market_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"haggle/market"
)

func cellRig(n int) market.Key { return market.Key(market.HashOf(fmt.Appendf(nil, "cell test %d", n))) }

// Names are looked up in the DHT by programs of other versions: they never change.
func TestNamesOfCellsAreStable(t *testing.T) {
	for _, c := range []struct {
		depth int
		want  []string
	}{
		{0, []string{"model/RTX_4090"}},
		{2, []string{"model/RTX_4090#2/1", "model/RTX_4090"}},
		{4, []string{"model/RTX_4090#4/7", "model/RTX_4090#2/1", "model/RTX_4090"}},
		{6, []string{"model/RTX_4090#6/1f", "model/RTX_4090#4/7", "model/RTX_4090#2/1"}},
	} {
		if diff := cmp.Diff(c.want, market.Cells("model/RTX_4090", cellRig(10), c.depth)); diff != "" {
			t.Errorf("depth %d: %s", c.depth, diff)
		}
	}
}

func TestTextThatCellDoesNotMakeNamesNoCell(t *testing.T) {
	for _, name := range []string{
		"", "#2/0", "any#", "any#2", "any#2/", "any#2/4", "any#1/0", "any#0/0", "any#22/0", "any#2/00", "any#2/-1", "any#02/1", "any#4/A",
		"any#4/a/1", "any#4/a#2/0", "any#2/0 ", "any#99999999999999999999/0",
	} {
		if bucket, depth, prefix, ok := market.ParseCell(name); ok {
			t.Errorf("%q is taken for %q %d %x", name, bucket, depth, prefix)
		}
	}
}

func TestARigIsFoundInOneCellOfItsDepthAndAboveItOnlyInThoseThatHoldThatCell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bucket := rapid.SampledFrom([]string{"any", "model/H100", "region/DE"}).Draw(t, "bucket")
		rig := cellRig(rapid.Int().Draw(t, "rig"))
		depth := rapid.IntRange(-3, 30).Draw(t, "depth")
		place := market.CellPlace(bucket, rig)
		last := -1
		for i, name := range market.Cells(bucket, rig, depth) {
			b, d, prefix, ok := market.ParseCell(name)
			if !ok || b != bucket {
				t.Fatalf("%q is not a cell of %s", name, bucket)
			}
			if i == 0 && (d > max(depth, 0) || d < min(depth, market.MaxCellDepth)-1) {
				t.Fatalf("a rig of depth %d has its cell at %d", depth, d)
			}
			if i > 0 && d != last-market.CellStep {
				t.Fatalf("above depth %d it is found at %d", last, d)
			}
			if prefix != market.CellPrefix(place, d) {
				t.Fatalf("%q does not hold the rig's place %x", name, place)
			}
			last = d
		}
	})
}

// One in four of the rigs of a depth is found one step above, from all four cells alike.
func TestACellAboveHasAFairSampleOfAllCellsBelow(t *testing.T) {
	const rigs, depth = 40_000, 6
	found := map[int]int{}
	leaves := map[uint64]int{}
	for i := range rigs {
		place := market.CellPlace("any", cellRig(i))
		for _, d := range market.CellDepths(place, depth) {
			found[d]++
			if d == 0 {
				leaves[market.CellPrefix(place, depth)]++
			}
		}
	}
	for d, want := depth, rigs; d >= 0; d, want = d-market.CellStep, want/4 {
		if got := found[d]; got < want*9/10 || got > want*11/10 {
			t.Errorf("depth %d: %d of %d rigs are found, want about %d", d, got, rigs, want)
		}
	}
	if len(leaves) < 60 {
		t.Errorf("the sample at the top comes from %d of 64 cells", len(leaves))
	}
}

// crowd is a bucket whose rigs come and go, each at its own depth.
type crowd struct {
	places []uint64
	depths []int
	held   map[[2]uint64]int // rigs with a prefix, by its depth and itself
}

func (c *crowd) count(i, by int) {
	for d := 0; d <= market.MaxCellDepth; d += market.CellStep {
		c.held[[2]uint64{uint64(d), market.CellPrefix(c.places[i], d)}] += by
	}
}

// round lets every rig look at its cell once, in any order, and returns how many moved.
func (c *crowd) round(rng *rand.Rand) (moved int) {
	for _, i := range rng.Perm(len(c.places)) {
		next := market.SettleDepth(c.depths[i], func(d int) int { return c.held[[2]uint64{uint64(d), market.CellPrefix(c.places[i], d)}] })
		if next != c.depths[i] {
			moved++
		}
		c.depths[i] = next
	}
	return moved
}

func (c *crowd) resize(n int, next *int) {
	for len(c.places) > n {
		last := len(c.places) - 1
		c.count(last, -1)
		c.places, c.depths = c.places[:last], c.depths[:last]
	}
	for len(c.places) < n {
		c.places = append(c.places, market.CellPlace("any", cellRig(*next)))
		c.depths = append(c.depths, 0)
		*next++
		c.count(len(c.places)-1, 1)
	}
}

// found counts the rigs found in each cell.
func (c *crowd) found() map[[2]uint64]int {
	found := map[[2]uint64]int{}
	for i, place := range c.places {
		for _, d := range market.CellDepths(place, c.depths[i]) {
			found[[2]uint64{uint64(d), market.CellPrefix(place, d)}]++
		}
	}
	return found
}

func TestDepthsSettleAtOnceWhateverComesAndGoes(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	c := &crowd{held: map[[2]uint64]int{}}
	next := 0
	for _, n := range []int{1, 10, 60, 64, 65, 70, 80, 300, 5_000, 100_000, 20_000, 500, 40, 2_000, 3} {
		c.resize(n, &next)
		c.round(rng)
		if moved := c.round(rng); moved > 0 {
			t.Errorf("%d rigs: %d still move the second time", n, moved)
		}
		for cell, found := range c.found() {
			if found > 2*market.MaxCell {
				t.Errorf("%d rigs: %d are found in cell %v", n, found, cell)
			}
		}
		if n <= market.MinCell && slices.Max(c.depths) > 0 {
			t.Errorf("%d rigs: one is alone in a cell of depth %d", n, slices.Max(c.depths))
		}
	}
}

// Rigs come and go all the time; few move when one in a hundred of the market has changed.
func TestARigThatComesOrGoesMovesFewOthers(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	c := &crowd{held: map[[2]uint64]int{}}
	next, moved := 0, 0
	c.resize(10_000, &next)
	c.round(rng)
	for range 20 {
		c.resize(9_900, &next)
		moved += c.round(rng)
		c.resize(10_000, &next)
		moved += c.round(rng) // those who came find their depth: that is no move
	}
	if most := 20 * 2 * 100; moved > most {
		t.Errorf("%d moves in 20 changes of 100 rigs, want at most %d", moved, most)
	}
}

func TestTheSizeOfABucketIsTakenFromOneCell(t *testing.T) {
	for _, c := range []struct{ depth, found, want int }{{0, 12, 12}, {4, 30, 480}, {10, 40, 40960}, {64, 1 << 20, 1 << 40}} {
		if got := market.CellCount(c.depth, c.found); got != c.want {
			t.Errorf("CellCount(%d, %d) = %d, want %d", c.depth, c.found, got, c.want)
		}
	}
}

func FuzzACellsNameIsReadOnlyAsItIsWritten(f *testing.F) {
	f.Add("any")
	f.Add("model/RTX_4090#6/1f")
	f.Add("any#2/4")
	f.Fuzz(func(t *testing.T, name string) {
		bucket, depth, prefix, ok := market.ParseCell(name)
		if ok && market.Cell(bucket, depth, prefix) != name {
			t.Errorf("%q is read as %q %d %x", name, bucket, depth, prefix)
		}
	})
}
