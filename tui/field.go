package tui

import (
	"strings"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
)

// field is one line of a form: a text, or a choice where there are options.
type field struct {
	label   string
	help    string
	options []string
	at      int
	input   textinput.Model
}

func textField(label, value, help string) field {
	in := newInput(4096)
	in.SetValue(value)
	in.CursorEnd()
	return field{label: label, help: help, input: in}
}

func choiceField(label string, options []string, at int, help string) field {
	return field{label: label, help: help, options: options, at: max(0, min(at, len(options)-1)), input: newInput(1)}
}

// value returns what the field holds.
func (f *field) value() string {
	if len(f.options) > 0 {
		return f.options[f.at]
	}
	return strings.TrimSpace(f.input.Value())
}

// typed takes a key or a paste. In a choice a letter goes to the next option that begins with it.
func (f *field) typed(msg tea.Msg) {
	if len(f.options) == 0 {
		f.input, _ = f.input.Update(msg) // without a blinking cursor it has no commands
		return
	}
	k, ok := msg.(tea.KeyPressMsg)
	if !ok || k.Text == "" {
		return
	}
	for i := range f.options {
		if next := (f.at + 1 + i) % len(f.options); strings.HasPrefix(f.options[next], k.Text) {
			f.at = next
			return
		}
	}
}

// change goes to another option, or moves in the text.
func (f *field) change(a act) {
	switch {
	case len(f.options) > 0 && a == actLeft:
		f.at = max(0, f.at-1)
	case len(f.options) > 0:
		f.at = min(len(f.options)-1, f.at+1)
	case a == actLeft:
		f.input, _ = f.input.Update(tea.KeyPressMsg{Code: tea.KeyLeft})
	default:
		f.input, _ = f.input.Update(tea.KeyPressMsg{Code: tea.KeyRight})
	}
}

// render shows the field in one line. ghost stands where nothing was typed.
func (f *field) render(look theme, focused bool, ghost string, width int) string {
	label := fit(f.label, min(11, max(1, width/3)), false, look.sign.more) + " "
	room := width - span(label) - 2
	mark := "  "
	if focused {
		mark = look.accent.on(look.sign.mark) + " "
		label = look.strong.on(label)
	}
	return line(mark+label+f.body(look, focused, ghost, room), width)
}

func (f *field) body(look theme, focused bool, ghost string, room int) string {
	if len(f.options) > 0 {
		text := fit(f.options[f.at], min(max(1, room-4), span(clean(f.options[f.at]))), false, look.sign.more)
		if focused {
			return look.accent.on("<") + " " + text + " " + look.accent.on(">")
		}
		return "  " + text
	}
	if !focused {
		f.input.Blur()
		if f.value() == "" {
			return "  " + look.faint.on(fit(ghost, max(1, room-2), false, look.sign.more))
		}
		return "  " + fit(f.value(), max(1, room-2), false, look.sign.more)
	}
	f.input.Focus()
	f.input.SetWidth(max(1, room-4))
	if f.input.Value() == "" && ghost != "" {
		return "  " + look.cursor.on(" ") + look.faint.on(fit(ghost, max(1, room-3), false, look.sign.more))
	}
	return "  " + f.input.View()
}
