package tui

import (
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"haggle/internal/view"
	"haggle/market"
)

// filter is the line in which a query is typed. The query that counts is the last one that made sense: while a new one is
// typed, the offers stay, and what is wrong is said beside it.
type filter struct {
	*kit
	input   textinput.Model
	editing bool
	query   string            // that counts
	before  string            // that counted when editing began
	err     error             // of the text
	saved   map[string]string // queries by the names that the user gave them
}

// newInput makes a line for text whose cursor does not blink: a blinking cursor would wake an idle program for ever.
func newInput(limit int) textinput.Model {
	in := textinput.New()
	in.Prompt = ""
	in.CharLimit = limit
	styles := in.Styles()
	styles.Cursor.Blink = false
	styles.Cursor.Color = lipgloss.NoColor{}
	styles.Focused = textinput.StyleState{}
	styles.Blurred = textinput.StyleState{}
	in.SetStyles(styles)
	in.KeyMap.Paste = key.NewBinding(key.WithDisabled()) // the terminal pastes; a clipboard of this machine may be the wrong one
	return in
}

func newFilter(k *kit) filter { return filter{kit: k, input: newInput(1024)} }

func (f *filter) begin() {
	f.editing, f.before = true, f.query
	f.input.SetValue(f.query)
	f.input.CursorEnd()
	f.input.Focus()
	f.err = nil
}

// end stops editing.
func (f *filter) end() {
	f.editing, f.err = false, nil
	f.input.Blur()
}

// clear forgets the query. It reports whether there was one.
func (f *filter) clear() bool {
	had := f.query != ""
	f.query = ""
	return had
}

// apply ends editing if the text makes sense.
func (f *filter) apply() {
	if f.err == nil {
		f.end()
	}
}

// undo ends editing and takes the query of before. It reports whether that is another one.
func (f *filter) undo() bool {
	other := f.query != f.before
	f.query = f.before
	f.end()
	return other
}

// typed takes a key or a paste into the text. It reports whether another query counts now.
func (f *filter) typed(msg tea.Msg) (changed bool) {
	f.input, _ = f.input.Update(msg) // without a blinking cursor it has no commands
	return f.read()
}

// keep takes the queries that the user named.
func (f *filter) keep(saved []view.SavedQuery) {
	f.saved = make(map[string]string, len(saved))
	for _, s := range saved {
		f.saved[s.Name] = s.Query
	}
}

// read judges the text.
func (f *filter) read() (changed bool) {
	text, err := market.ExpandQuery(f.input.Value(), f.saved)
	if f.err = err; err != nil {
		return false
	}
	q, err := market.ParseQuery(text)
	if f.err = err; err != nil {
		return false
	}
	changed = q.String() != f.query
	f.query = q.String()
	return changed
}

// word returns the name of a field that is being typed at the end of the text, and where it begins.
func (f *filter) word() (name string, at int) {
	text := f.input.Value()
	at = strings.LastIndexAny(text, " (|") + 1
	name = text[at:]
	if name == "" || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz_") != "" {
		return "", at
	}
	return name, at
}

// fits returns the fields whose names begin with what is typed.
func (f *filter) fits() []string {
	name, _ := f.word()
	if name == "" {
		return nil
	}
	var names []string
	for _, field := range market.Fields() {
		if strings.HasPrefix(field.Name, strings.ToLower(name)) {
			names = append(names, field.Name)
		}
	}
	return names
}

// complete writes out a field's name, or takes the nearest one for a wrong one. It reports whether another query counts.
func (f *filter) complete() (changed bool) {
	text := f.input.Value()
	if names := f.fits(); len(names) > 0 {
		_, at := f.word()
		f.input.SetValue(text[:at] + names[0])
	} else if e := market.Public(f.err); f.err != nil && e.Code == market.CodeUnknownField && e.Arg("nearest") != "" {
		wrong := e.Arg("field")
		if at := strings.LastIndex(text, wrong); at >= 0 {
			f.input.SetValue(text[:at] + e.Arg("nearest") + text[at+len(wrong):])
		}
	}
	f.input.CursorEnd()
	return f.read()
}

// render shows the filter in one line, and in a second what is to say about it while it is typed.
func (f *filter) render(right string, width int) []string {
	if !f.editing {
		text := f.look.faint.on("/ to filter")
		if f.query != "" {
			text = "/ " + fit(f.query, min(span(f.query), max(8, width-span(right)-4)), false, f.look.sign.more)
		}
		return []string{spread(" "+text, right+" ", width)}
	}
	room := max(1, width-4)
	if right != "" && width >= 60 {
		room -= span(right) + 2
	} else {
		right = ""
	}
	f.input.SetWidth(room - 1)
	text := line(" "+f.look.accent.on("/")+" "+f.input.View(), room+3)
	return []string{spread(text, f.look.faint.on(right+" "), width), line(" "+f.advice(width-2), width)}
}

// advice says what is wrong, what may follow, or what can be typed at all.
func (f *filter) advice(width int) string {
	name, _ := f.word()
	names := f.fits()
	switch {
	case f.err != nil && (len(names) == 0 || market.CodeOf(f.err) != market.CodeBadQuery):
		message, hint := explain(f.err)
		hint, _, _ = strings.Cut(hint, " `haggle") // which points to the command line
		return f.look.warn.on(fit(f.look.sign.warn+" "+message+"; "+hint, width, false, f.look.sign.more))
	case slices.Contains(names, strings.ToLower(name)):
		return f.look.faint.on(fit(name+": "+usage(name), width, false, f.look.sign.more))
	case len(names) > 0:
		return f.look.faint.on(fit("tab: "+strings.Join(names, " "), width, false, f.look.sign.more))
	}
	return f.look.faint.on(fit("such as: gpu_name=RTX_4090 gpu_ram>=24 dph<0.60 (reach=direct OR geolocation in [DE,NL])", width, false, f.look.sign.more))
}

// usage tells how a field is asked for.
func usage(name string) string {
	for _, field := range market.Fields() {
		if field.Name == strings.ToLower(name) {
			return field.Help + "; " + field.Example
		}
	}
	return ""
}
