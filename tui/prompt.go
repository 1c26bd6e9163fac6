package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"
)

// prompt asks for a few words over a page, and does something with them.
type prompt struct {
	title  string
	fields []field
	at     int
	fault  string                           // why it cannot go on, said when the user tried
	quote  func(p *prompt) []string         // what it comes to, below the fields; nil: nothing
	do     func(p *prompt) (tea.Cmd, error) // called from Update; with an error the prompt stays
}

// value returns what a field holds.
func (p *prompt) value(i int) string { return p.fields[i].value() }

func (p *prompt) typed(msg tea.Msg) {
	p.fault = ""
	p.fields[p.at].input.Focus()
	p.fields[p.at].typed(msg)
}

// doPrompt carries out what a key asks of the prompt.
func (m *Model) doPrompt(a act) (tea.Cmd, bool) {
	p := m.prompt
	switch a {
	case actBack:
		m.prompt = nil
	case actReview:
		if !m.ready() {
			return nil, true
		}
		cmd, err := p.do(p)
		if err != nil {
			p.fault, _ = explainField(err)
			return nil, true
		}
		m.prompt = nil
		return cmd, true
	case actUp:
		p.at = (p.at + len(p.fields) - 1) % len(p.fields)
	case actDown:
		p.at = (p.at + 1) % len(p.fields)
	case actLeft, actRight:
		p.fields[p.at].change(a)
	default:
		return nil, false
	}
	return nil, true
}

// render shows the prompt over a page.
func (p *prompt) render(look theme, page []string, width, height int) []string {
	inner := min(70, width-4)
	if inner < 4 || height < len(p.fields)+2 {
		return block([]string{p.fields[p.at].render(look, true, "", width)}, width, height)
	}
	var lines []string
	for i := range p.fields {
		lines = append(lines, p.fields[i].render(look, i == p.at, "", inner))
	}
	below := []string{p.fields[p.at].help + "."}
	if p.quote != nil {
		below = append(p.quote(p), below...)
	}
	color := look.faint
	if p.fault != "" {
		below, color = []string{look.sign.bad + " " + p.fault}, look.bad
	}
	for _, text := range below {
		for _, l := range wrap(text, inner) {
			lines = append(lines, color.on(l))
		}
	}
	return over(look, page, boxed(look, p.title, lines[:min(len(lines), height-2)], "", inner), width, height)
}

// boxed draws lines of a width with a frame around them; bottom stands in its last line.
func boxed(look theme, title string, lines []string, bottom string, inner int) []string {
	c, rule := look.sign.corners, look.sign.rule
	name := " " + fit(title, min(span(clean(title)), inner-2), false, look.sign.more) + " "
	top := c[0] + rule + look.strong.on(name)
	top += strings.Repeat(rule, max(0, inner+3-span(top)))
	box := []string{top + c[1]}
	for _, l := range lines {
		box = append(box, look.sign.side+" "+line(l, inner)+" "+look.sign.side)
	}
	last := c[2] + bottom
	return append(box, last+strings.Repeat(rule, max(0, inner+3-span(last)))+c[3])
}
