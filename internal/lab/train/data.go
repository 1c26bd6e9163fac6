package train

import "math/rand/v2"

const (
	side    = 8           // a picture is side x side pixels
	inputs  = side * side // of which each is one input
	classes = 10
)

// picture is one drawn digit: its pixels, about 0 for paper and about 1 for ink, and what it shows.
type picture struct {
	pixels [inputs]float64
	digit  int
}

// glyph returns the five by seven dots of a digit, a string per row.
func glyph(digit int) [7]string {
	return [classes][7]string{
		{" ### ", "#   #", "#  ##", "# # #", "##  #", "#   #", " ### "},
		{"  #  ", " ##  ", "  #  ", "  #  ", "  #  ", "  #  ", " ### "},
		{" ### ", "#   #", "    #", "   # ", "  #  ", " #   ", "#####"},
		{" ### ", "#   #", "    #", "  ## ", "    #", "#   #", " ### "},
		{"   # ", "  ## ", " # # ", "#  # ", "#####", "   # ", "   # "},
		{"#####", "#    ", "#### ", "    #", "    #", "#   #", " ### "},
		{"  ## ", " #   ", "#    ", "#### ", "#   #", "#   #", " ### "},
		{"#####", "    #", "   # ", "  #  ", " #   ", " #   ", " #   "},
		{" ### ", "#   #", "#   #", " ### ", "#   #", "#   #", " ### "},
		{" ### ", "#   #", "#   #", " ####", "    #", "   # ", " ##  "},
	}[digit]
}

// draw returns n pictures, as many of each digit as of the others, shifted and blurred with noise.
func draw(rng *rand.Rand, n int) []picture {
	pictures := make([]picture, n)
	for i := range pictures {
		p := &pictures[i]
		p.digit = i % classes
		right, down := rng.IntN(side-5+1), rng.IntN(side-7+1)
		for y, row := range glyph(p.digit) {
			for x, dot := range row {
				if dot == '#' {
					p.pixels[(y+down)*side+x+right] = 1
				}
			}
		}
		for j := range p.pixels {
			p.pixels[j] += 0.3 * rng.NormFloat64()
		}
	}
	return pictures
}
