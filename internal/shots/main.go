// Command shots draws a terminal's screen as SVG: what `tmux capture-pane -e -p` printed goes in, a picture comes out. It is
// how `make shots` makes docs/screens, so that people can look before they build.
//
//	shots WIDTH HEIGHT < screen.ansi > screen.svg
//	shots -pack < large.png > small.png
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"html"
	"image/color"
	"io"
	"os"
	"strconv"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

// Sizes in pixels of one cell, and of the frame around the screen.
const (
	cellWidth, cellHeight = 9, 19
	baseline              = 14.5
	margin                = 8
	fontSize              = 15
	maxScreen             = 4 << 20 // bytes of input
)

// Colours of a terminal that says nothing about its own.
const (
	background = "#11131a"
	foreground = "#d6d9e0"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "shots:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) == 1 && args[0] == "-pack" {
		return pack(in, out)
	}
	if len(args) != 2 {
		return fmt.Errorf("usage: shots WIDTH HEIGHT, or shots -pack")
	}
	width, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	height, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(in, maxScreen))
	if err != nil {
		return err
	}
	screen := vt.NewEmulator(width, height)
	text = bytes.TrimRight(text, "\n") // the last line's end would scroll the screen
	if _, err := screen.Write(bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))); err != nil {
		return err
	}
	w := bufio.NewWriter(out)
	draw(w, screen, width, height)
	return w.Flush()
}

// draw writes one rectangle per coloured cell and one text per cell that shows something.
func draw(w io.Writer, screen *vt.Emulator, width, height int) {
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="DejaVu Sans Mono, WenQuanYi Micro Hei Mono, monospace" font-size="%d">`+"\n",
		width*cellWidth+2*margin, height*cellHeight+2*margin, fontSize)
	fmt.Fprintf(w, `<rect width="100%%" height="100%%" rx="6" fill="%s"/>`+"\n", background)
	for y := range height {
		for x := range width {
			if c := screen.CellAt(x, y); c != nil && c.Width > 0 {
				drawCell(w, c, x, y)
			}
		}
	}
	fmt.Fprintln(w, "</svg>")
}

func drawCell(w io.Writer, c *uv.Cell, x, y int) {
	fg, bg := hex(c.Style.Fg, foreground), hex(c.Style.Bg, "")
	if c.Style.Attrs&uv.AttrReverse != 0 {
		fg, bg = hex(c.Style.Bg, background), hex(c.Style.Fg, foreground)
	}
	left, top := margin+x*cellWidth, margin+y*cellHeight
	if bg != "" {
		fmt.Fprintf(w, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`+"\n", left, top, c.Width*cellWidth, cellHeight, bg)
	}
	if c.Content == "" || c.Content == " " || drawBlock(w, c, fg, left, top) {
		return
	}
	extra := ""
	if c.Style.Attrs&uv.AttrBold != 0 {
		extra += ` font-weight="bold"`
	}
	if c.Style.Attrs&uv.AttrFaint != 0 {
		extra += ` opacity=".6"`
	}
	if c.Style.Underline != 0 {
		extra += ` text-decoration="underline"`
	}
	fmt.Fprintf(w, `<text x="%d" y="%.1f" fill="%s"%s xml:space="preserve">%s</text>`+"\n", left, float64(top)+baseline, fg, extra, html.EscapeString(c.Content))
}

// hex writes a colour as SVG wants it, or the fallback where there is none.
func hex(c color.Color, fallback string) string {
	if c == nil {
		return fallback
	}
	if basic, ok := c.(ansi.BasicColor); ok {
		return basicColors()[basic]
	}
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}

// basicColors are the sixteen that a terminal's user chooses; the program names them by number only.
func basicColors() [16]string {
	return [16]string{
		"#1d202b", "#f7768e", "#9ece6a", "#e0af68", "#7aa2f7", "#bb9af7", "#6cc7d4", "#d6d9e0",
		"#5b6078", "#ff8fa3", "#b5e07f", "#f0c583", "#93b4ff", "#cdb0ff", "#8fdde8", "#ffffff",
	}
}

// drawBlock draws the characters that fill cells, as terminals do: a font's own leave gaps between lines.
func drawBlock(w io.Writer, c *uv.Cell, fg string, left, top int) bool {
	width, opacity := cellWidth, "1"
	switch c.Content {
	case "█":
	case "▌":
		width = cellWidth / 2
	default:
		return false
	}
	if c.Style.Attrs&uv.AttrFaint != 0 {
		opacity = ".6"
	}
	fmt.Fprintf(w, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s" opacity="%s"/>`+"\n", left, top, width, cellHeight, fg, opacity)
	return true
}
