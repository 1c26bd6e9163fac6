package tui

import "strings"

// grid is a table of which only the visible rows exist: a hundred thousand rows cost what a hundred do. It holds a place in
// a list that somebody else owns.
type grid struct {
	at, top, rows int // rows is what was visible last, for moving by pages
}

// column is one column of a grid over rows of type T.
type column[T any] struct {
	title string
	rank  int // columns of high rank are left out first; 0 always stays
	width int // at least
	grow  int // at most so many columns more, where there is room
	right bool
	cell  func(T) string
	paint func(T) paint // nil for none
}

// move goes down by a number of rows, up by a negative one.
func (g *grid) move(by, n int) { g.to(g.at+by, n) }

// to goes to a row of n.
func (g *grid) to(at, n int) { g.at = max(0, min(at, n-1)) }

// page returns the rows to move for a page.
func (g *grid) page() int { return max(1, g.rows-1) }

// window returns the rows that are visible in a height.
func (g *grid) window(n, height int) (from, to int) {
	g.rows = max(0, height)
	g.to(g.at, n)
	g.top = min(g.top, g.at, max(0, n-g.rows))
	g.top = max(g.top, g.at-g.rows+1, 0)
	return g.top, min(n, g.top+g.rows)
}

// show renders the heading and the visible rows of a list of n.
func show[T any](g *grid, look theme, columns []column[T], n int, row func(int) T, width, height int) []string {
	if height < 1 {
		return nil
	}
	columns, widths := layout(columns, width-2)
	used := 2 * len(widths) // the mark and the gaps
	for _, w := range widths {
		used += w
	}
	whole := func(s string) string { // s takes the columns in use: no need to measure what may hold styles
		if used > width {
			return line(s, width)
		}
		return s + strings.Repeat(" ", width-used)
	}
	out := make([]string, 0, height)
	var b strings.Builder
	b.WriteString("  ")
	for i, c := range columns {
		cell(&b, i, fit(c.title, widths[i], c.right, look.sign.more))
	}
	out = append(out, look.faint.on(whole(b.String())))
	from, to := g.window(n, height-1)
	for r := from; r < to; r++ {
		b.Reset()
		item, chosen := row(r), r == g.at
		if chosen {
			b.WriteString(look.sign.mark + " ")
		} else {
			b.WriteString("  ")
		}
		for i, c := range columns {
			text := fit(c.cell(item), widths[i], c.right, look.sign.more)
			if !chosen && c.paint != nil {
				text = c.paint(item).on(text)
			}
			cell(&b, i, text)
		}
		text := whole(b.String())
		if chosen {
			text = look.accent.on(look.sign.mark) + look.cursor.on(text[len(look.sign.mark):])
		}
		out = append(out, text)
	}
	blank := strings.Repeat(" ", width)
	for len(out) < height {
		out = append(out, blank)
	}
	return out
}

func cell(b *strings.Builder, i int, text string) {
	if i > 0 {
		b.WriteString("  ")
	}
	b.WriteString(text)
}

// layout chooses the columns that fit and their widths.
func layout[T any](all []column[T], width int) ([]column[T], []int) {
	columns := make([]column[T], 0, len(all))
	for _, c := range all {
		if c.width > 0 {
			columns = append(columns, c)
		}
	}
	total := func() int {
		sum := 2 * max(0, len(columns)-1)
		for _, c := range columns {
			sum += c.width
		}
		return sum
	}
	for len(columns) > 1 && total() > width {
		worst := 0
		for i, c := range columns {
			if c.rank >= columns[worst].rank {
				worst = i
			}
		}
		if columns[worst].rank == 0 {
			break
		}
		columns = append(columns[:worst], columns[worst+1:]...)
	}
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = c.width
	}
	spare := width - total()
	for i, c := range columns {
		more := max(0, min(spare, c.grow))
		widths[i] += more
		spare -= more
	}
	return columns, widths
}

// step returns how far a key moves in a list of n, and whether it moves at all.
func (g *grid) step(a act, n int) (by int, moves bool) {
	switch a {
	case actUp:
		return -1, true
	case actDown:
		return 1, true
	case actPageUp:
		return -g.page(), true
	case actPageDown:
		return g.page(), true
	case actTop:
		return -n - maxScroll, true
	case actBottom:
		return n + maxScroll, true
	}
	return 0, false
}

// maxScroll is more lines than a page of text has.
const maxScroll = 1 << 16
