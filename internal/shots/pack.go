package main

import (
	"cmp"
	"image"
	"image/color"
	"image/png"
	"io"
	"slices"
)

// maxColors is what a picture with a palette can hold.
const maxColors = 256

// pack rewrites a PNG with a palette, which makes a screen a third as large. Of more colours than fit, the most frequent stay
// and the others become the nearest of them: they are shades at the edges of letters.
func pack(in io.Reader, out io.Writer) error {
	from, err := png.Decode(in)
	if err != nil {
		return err
	}
	bounds := from.Bounds()
	count := map[color.RGBA]int{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			count[shade(from, x, y)]++
		}
	}
	to := image.NewPaletted(bounds, palette(count))
	index := map[color.RGBA]uint8{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := shade(from, x, y)
			at, known := index[c]
			if !known {
				at = uint8(to.Palette.Index(c)) //nolint:gosec // a palette has at most 256 colours
				index[c] = at
			}
			to.SetColorIndex(x, y, at)
		}
	}
	return (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(out, to)
}

// shade is the colour of a pixel, with steps that no eye sees taken out.
func shade(from image.Image, x, y int) color.RGBA {
	c := color.RGBAModel.Convert(from.At(x, y)).(color.RGBA)
	const step = 0xf8
	return color.RGBA{c.R & step, c.G & step, c.B & step, c.A & step}
}

// palette returns the most frequent colours.
func palette(count map[color.RGBA]int) color.Palette {
	type frequent struct {
		c color.RGBA
		n int
	}
	var all []frequent
	for c, n := range count {
		all = append(all, frequent{c, n})
	}
	number := func(c color.RGBA) uint32 { return uint32(c.R)<<24 | uint32(c.G)<<16 | uint32(c.B)<<8 | uint32(c.A) }
	slices.SortFunc(all, func(a, b frequent) int { return cmp.Or(b.n-a.n, cmp.Compare(number(a.c), number(b.c))) })
	var p color.Palette
	for _, f := range all[:min(len(all), maxColors)] {
		p = append(p, f.c)
	}
	return p
}
