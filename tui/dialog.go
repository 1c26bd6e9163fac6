package tui

import (
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
	c, rule := look.sign.corners, look.sign.rule
	title := " " + fit(d.title, min(span(clean(d.title)), inner-2), false, look.sign.more) + " "
	top := c[0] + rule + look.strong.on(title)
	for span(top) < inner+3 {
		top += rule
	}
	box := []string{top + c[1]}
	for _, l := range text {
		box = append(box, look.sign.side+" "+line(l, inner)+" "+look.sign.side)
	}
	bottom := c[2]
	for span(bottom) < inner+3 {
		bottom += rule
	}
	return over(look, page, append(box, bottom+c[3]), width, height)
}

// over lays a box in the middle of a page, which steps back.
func over(look theme, page, box []string, width, height int) []string {
	out := make([]string, height)
	top := max(0, (height-len(box))/2)
	left := max(0, (width-span(box[0]))/2)
	for i := range out {
		under := ""
		if i < len(page) {
			under = stripped(page[i])
		}
		if i < top || i >= top+len(box) {
			out[i] = look.faint.on(line(under, width))
			continue
		}
		right := left + span(box[0])
		out[i] = look.faint.on(line(cut(under, 0, left), left)) + box[i-top] + look.faint.on(line(cut(under, right, width), width-right))
	}
	return out
}
