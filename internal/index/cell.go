package index

import "haggle/market"

// cell is a cell's name in parts.
type cell struct {
	bucket string
	depth  int
	prefix uint64
}

func (c cell) String() string { return market.Cell(c.bucket, c.depth, c.prefix) }

// kids are the cells into which a cell is divided.
func (c cell) kids() []cell {
	if c.depth+market.CellStep > market.MaxCellDepth {
		return nil
	}
	var kids []cell
	for i := range uint64(1) << market.CellStep {
		kids = append(kids, cell{c.bucket, c.depth + market.CellStep, c.prefix<<market.CellStep | i})
	}
	return kids
}

// parseCells takes names apart and leaves out those that are none.
func parseCells(names []string) []cell {
	var cells []cell
	for _, name := range names {
		if bucket, depth, prefix, ok := market.ParseCell(name); ok {
			cells = append(cells, cell{bucket, depth, prefix})
		}
	}
	return cells
}

// home is a bucket to which an offer belongs, with its rig's place in it.
type home struct {
	bucket string
	place  uint64
}

// homesOf returns all homes of an offer.
func homesOf(o market.Offer) []home {
	var homes []home
	for _, bucket := range market.Buckets(o) {
		homes = append(homes, home{bucket, market.CellPlace(bucket, o.Rig)})
	}
	return homes
}

func (h home) in(c cell) bool {
	return h.bucket == c.bucket && market.CellPrefix(h.place, c.depth) == c.prefix
}

// in reports whether an offer belongs to one of some cells. One that was withdrawn still does.
func (s *Statement) in(cells []cell) bool {
	homes := s.homes
	if homes == nil {
		homes = homesOf(s.Offer)
	}
	for _, c := range cells {
		for _, h := range homes {
			if h.in(c) {
				return true
			}
		}
	}
	return false
}
