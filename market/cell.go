package market

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// A bucket that many rigs announce themselves in is divided into cells, so that no few programs carry it and nobody has to read all
// of it. A cell is the part of a bucket whose rigs' places begin with the same bits; its depth is the number of these bits. Each rig
// chooses its depth from what it sees of its cell. Of the rigs of a depth, one in four is also found in the cell above, one in
// sixteen in that above it: a fair sample of every cell below, as full as the cells below are. So the bucket's own name, the cell of
// depth 0, always leads to a handful of rigs from all over the bucket, and who wants all of it goes down.
//
// The numbers come from the model in internal/netsim; docs/adr/0014-cells-and-shelves.md has the reasons.
const (
	MaxCell      = 64 // rigs found in a cell from which on it is divided
	MinCell      = 8  // rigs found in a cell below which it is given up: half of what a cell has just after it was divided
	CellStep     = 2  // bits between a depth and the next: a cell is divided in four
	MaxCellDepth = 20 // of 10^6 rigs in one bucket no cell is deeper than 16
)

// CellPlace is where a rig stands in a bucket: a hash, so that nobody chooses a neighbourhood without choosing a new key. Anybody can
// tell from it which part of a bucket a rig belongs to.
func CellPlace(bucket string, rig Key) uint64 {
	h := HashOf([]byte("haggle/cell/1/" + bucket + "\x00" + string(rig[:])))
	var n uint64
	for _, b := range h[:8] {
		n = n<<8 | uint64(b)
	}
	return n
}

// CellPrefix is the first depth bits of a place.
func CellPrefix(place uint64, depth int) uint64 { return place >> (64 - depth) & (1<<depth - 1) }

// CellDepths returns the depths of the cells in which a rig of a depth is found, the deepest first. The last bits of its place say
// how far up it is found: they are independent of the first, so that a cell above has rigs of all cells below.
func CellDepths(place uint64, depth int) []int {
	depth = min(max(depth, 0), MaxCellDepth) / CellStep * CellStep
	depths := []int{depth}
	for up := CellStep; up <= depth && bits.TrailingZeros64(place) >= up; up += CellStep {
		depths = append(depths, depth-up)
	}
	return depths
}

// Cell names a cell of a bucket: the bucket itself at depth 0, else with its prefix of depth bits.
func Cell(bucket string, depth int, prefix uint64) string {
	if depth == 0 {
		return bucket
	}
	return fmt.Sprintf("%s#%d/%x", bucket, depth, prefix)
}

// ParseCell takes a name apart that Cell made; false for any other text.
func ParseCell(name string) (bucket string, depth int, prefix uint64, ok bool) {
	bucket, rest, divided := strings.Cut(name, "#")
	if !divided {
		return bucket, 0, 0, bucket != ""
	}
	left, right, _ := strings.Cut(rest, "/")
	depth, err := strconv.Atoi(left)
	if err != nil || depth < CellStep || depth > MaxCellDepth || depth%CellStep != 0 {
		return "", 0, 0, false
	}
	prefix, err = strconv.ParseUint(right, 16, 64)
	if err != nil || prefix>>depth != 0 || Cell(bucket, depth, prefix) != name || bucket == "" {
		return "", 0, 0, false
	}
	return bucket, depth, prefix, true
}

// Cells returns the names of the cells in which a rig of a depth is found, the deepest first.
func Cells(bucket string, rig Key, depth int) []string {
	place := CellPlace(bucket, rig)
	var cells []string
	for _, d := range CellDepths(place, depth) {
		cells = append(cells, Cell(bucket, d, CellPrefix(place, d)))
	}
	return cells
}

// Shelved reports whether a rig keeps the offers of its mates in a bucket in which its depth is so many bits. All offers of a model or
// a region are asked for together; the rest of what a renter wants at first is among them. A bucket that is not divided costs little.
func Shelved(bucket string, depth int) bool {
	return depth == 0 || strings.HasPrefix(bucket, bucketModel) || strings.HasPrefix(bucket, bucketRegion)
}

// SettleDepth is the depth that a rig of a depth goes to. held says how many rigs are known, this rig included, whose places begin like
// its own with so many bits, whatever their depth: a rig knows that of its own cell and all below from its shelf. Because those who
// have gone down are still counted above, all of a full cell go down and none comes back.
func SettleDepth(depth int, held func(depth int) int) int {
	for depth+CellStep <= MaxCellDepth && held(depth) > MaxCell && held(depth+CellStep) >= MinCell+MinCell/2 {
		depth += CellStep
	}
	for depth > 0 && held(depth) < MinCell {
		depth -= CellStep
	}
	return depth
}

// CellCount estimates the rigs of a bucket from those found in a cell of a depth that was as deep as any.
func CellCount(depth, found int) int {
	if depth > 0 && bits.Len(uint(found))+depth > 40 {
		return 1 << 40
	}
	return found << depth
}
