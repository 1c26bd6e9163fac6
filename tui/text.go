package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"haggle/market"
)

// plain reports whether a text is printable ASCII, as most cells are: it needs no washing, and a byte is a column.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// clean makes a foreign text fit to be shown: one line, no control characters.
func clean(s string) string {
	if plain(s) {
		return s
	}
	return market.Printable(strings.NewReplacer("\t", " ", "\n", " ").Replace(s))
}

// span returns the columns that a text takes, which may hold styles.
func span(s string) int {
	if plain(s) {
		return len(s)
	}
	return ansi.StringWidth(s)
}

// fit cleans a text without styles and makes it take exactly so many columns. What is too long ends in more.
func fit(s string, columns int, right bool, more string) string {
	if columns <= 0 {
		return ""
	}
	s = clean(s)
	w := span(s)
	if w > columns {
		s = ansi.Truncate(s, columns, more)
		w = span(s)
	}
	pad := strings.Repeat(" ", max(0, columns-w))
	if right {
		return pad + s
	}
	return s + pad
}

// line makes a line with styles take exactly so many columns.
func line(s string, columns int) string {
	w := span(s)
	if w > columns {
		s = ansi.Truncate(s, columns, "")
		w = span(s)
	}
	return s + strings.Repeat(" ", max(0, columns-w))
}

// block makes lines fill exactly a width and a height.
func block(lines []string, columns, rows int) []string {
	out := make([]string, max(0, rows))
	for i := range out {
		if i < len(lines) {
			out[i] = line(lines[i], columns)
		} else {
			out[i] = strings.Repeat(" ", max(0, columns))
		}
	}
	return out
}

// wrap cleans a text and breaks it between words into lines of at most so many columns.
func wrap(s string, columns int) []string {
	if s = strings.TrimSpace(clean(s)); s == "" {
		return nil
	}
	if columns < 1 {
		return []string{""}
	}
	return strings.Split(ansi.Wrap(s, columns, " "), "\n")
}

// spread puts one text at the left and one at the right end of a line. What does not fit of the right one is left out.
func spread(left, right string, columns int) string {
	l, r := span(left), span(right)
	if right == "" || l+r+1 > columns {
		return line(left, columns)
	}
	return left + strings.Repeat(" ", columns-l-r) + right
}

// short is how people name a lease or an offer.
func short(id string) string { return id[:min(len(id), 8)] }

// middle shortens a long key so that both of its ends are seen.
func middle(s string, columns int, more string) string {
	if s = clean(s); span(s) <= columns || columns < 8 || !plain(s) {
		return s
	}
	room := columns - span(more)
	return s[:room-room/2] + more + s[len(s)-room/2:]
}

// stripped takes the styles off a line.
func stripped(s string) string { return ansi.Strip(s) }
