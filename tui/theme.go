package tui

import (
	"strings"

	"charm.land/lipgloss/v2"
)

// paint is a style boiled down to what stands before and behind a text. A frame has hundreds of cells, and rendering each
// through Lip Gloss would cost more than everything else together.
type paint struct{ open, close string }

func newPaint(s lipgloss.Style) paint {
	open, end, _ := strings.Cut(s.Render("x"), "x")
	return paint{open, end}
}

// on paints a text of one line.
func (p paint) on(s string) string {
	if s == "" || p.open == "" {
		return s
	}
	return p.open + s + p.close
}

// theme is the meaning of colours and characters. Colours are the terminal's own sixteen, no text has a background, and
// nothing is said by a colour alone.
type theme struct {
	strong, faint, accent, good, warn, bad, cursor paint
	code                                           paint // of a QR code, which must be light and dark whatever the terminal is
	sign                                           signs
}

// signs are the characters that stand for something.
type signs struct {
	mark, ok, bad, warn, now, later string // states
	more, times, dot, next          string // text
	full, empty, rule, side, degree string // lines, bars and units
	corners                         [4]string
	updown, sides, caret            string // keys and the text cursor
	ascending, descending           string
	block, upper, lower             string // halves of a cell, for pictures; empty where there are none
}

func newTheme(noColor, ascii bool) theme {
	colored := func(color string) lipgloss.Style {
		if noColor {
			return lipgloss.NewStyle()
		}
		return lipgloss.NewStyle().Foreground(lipgloss.Color(color))
	}
	t := theme{
		strong: newPaint(lipgloss.NewStyle().Bold(true)),
		faint:  newPaint(lipgloss.NewStyle().Faint(true)),
		accent: newPaint(colored("6")),
		good:   newPaint(colored("2")),
		warn:   newPaint(colored("3").Bold(true)),
		bad:    newPaint(colored("1").Bold(true)),
		cursor: newPaint(lipgloss.NewStyle().Reverse(true)),
		code:   newPaint(onDark(colored("15"), noColor)),
		sign: signs{
			mark: "▌", ok: "✓", bad: "✗", warn: "!", now: "●", later: "○", more: "…", times: "×", dot: "·", next: "→",
			full: "━", empty: "─", rule: "─", side: "│", degree: "°", corners: [4]string{"┌", "┐", "└", "┘"},
			updown: "↑↓", sides: "←→", caret: "█", ascending: "↑", descending: "↓",
			block: "█", upper: "▀", lower: "▄",
		},
	}
	if ascii {
		t.sign = signs{
			mark: ">", ok: "+", bad: "x", warn: "!", now: "*", later: "o", more: "~", times: "x", dot: "-", next: ">",
			full: "#", empty: ".", rule: "-", side: "|", degree: "", corners: [4]string{"+", "+", "+", "+"},
			updown: "up/down", sides: "left/right", caret: "_", ascending: "up", descending: "down",
		}
	}
	return t
}

func onDark(s lipgloss.Style, noColor bool) lipgloss.Style {
	if noColor {
		return s
	}
	return s.Background(lipgloss.Color("0"))
}

// gauge is a bar of twelve columns that is full at 1000 permille.
func (t theme) gauge(permille int64) string {
	const cells = 12
	full := int(min(1000, max(0, permille)) * cells / 1000)
	return t.accent.on(strings.Repeat(t.sign.full, full)) + t.faint.on(strings.Repeat(t.sign.empty, cells-full))
}
