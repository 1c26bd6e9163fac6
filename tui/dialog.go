package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// grace is how long a dialog takes no keys after it appeared: those were meant for what was there before. Its footer names
// its keys only when they work.
const grace = 300 * time.Millisecond

// armMsg is the end of a dialog's grace period.
type armMsg struct{ dialog *dialog }

// dialog asks before something is done that costs money or ends a job.
type dialog struct {
	title string
	lines []string
	yes   string         // what y does, for the footer
	do    func() tea.Cmd // called from Update
	armed bool
}

// render shows the dialog over a page.
func (d *dialog) render(look theme, page []string, width, height int) []string {
	inner := min(60, width-4)
	if inner < 4 || height < 5 {
		lines := []string{look.strong.on(clean(d.title))}
		for _, l := range d.lines {
			lines = append(lines, clean(l))
		}
		return block(lines, width, height)
	}
	var text []string
	for _, l := range d.lines {
		text = append(text, wrap(l, inner)...)
	}
	text = text[:min(len(text), height-2)]
	bottom := ""
	if d.armed {
		bottom = look.sign.rule + " " + look.accent.on("y") + " " + look.strong.on(d.yes) + "  " + look.accent.on("n") + " no "
	}
	return over(look, page, boxed(look, d.title, text, bottom, inner), width, height)
}

// over lays a box in the middle of a page, which steps back. Beside the box there is nothing: half a word would only be read.
func over(look theme, page, box []string, width, height int) []string {
	out := make([]string, height)
	top := max(0, (height-len(box))/2)
	left := strings.Repeat(" ", max(0, (width-span(box[0]))/2))
	for i := range out {
		switch {
		case i >= top && i < top+len(box):
			out[i] = line(left+box[i-top], width)
		case i == top-1 || i == top+len(box) || i >= len(page):
			out[i] = line("", width)
		default:
			out[i] = look.faint.on(line(stripped(page[i]), width))
		}
	}
	return out
}
