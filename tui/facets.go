package tui

import (
	"context"
	"strings"

	tea "charm.land/bubbletea/v2"

	"haggle/internal/view"
	"haggle/market"
)

// facetFields are the fields whose values are offered for choice, with the words that people have for them.
var facetFields = []struct{ field, word string }{
	{"gpu_name", "Card"},
	{"gpu_ram", "Memory"},
	{"total", "Price of my job"},
	{"geolocation", "Country"},
	{"reach", "Reach"},
	{"pay_auto", "Pays by itself"},
	{"checked", "Checked by me"},
	{"isolation", "Isolation"},
}

// option is one line of the choice: a heading, a value, or a saved query.
type option struct {
	heading string // the line is no option
	text    string
	clause  string // that asks for the value; empty for a saved query
	query   string // that was saved
	offers  int
}

// facetsMsg answers a question for the values that there are.
type facetsMsg struct {
	asked  string // the query
	facets []view.Facet
	saved  []view.SavedQuery
	err    error
}

// savedMsg brings the queries that the user named, for the filter.
type savedMsg struct{ saved []view.SavedQuery }

// loadSaved asks for them. An agent that cannot tell leaves their names unknown.
func (m *Model) loadSaved() tea.Cmd {
	if m.link.state != linkUp {
		return nil
	}
	return m.ask(func(ctx context.Context) tea.Msg {
		saved, err := m.Market.SavedQueries(ctx)
		if err != nil {
			return nil
		}
		return savedMsg{saved}
	})
}

// facets is the choice of what the market has, counted: a query by keys alone.
type facets struct {
	*kit
	grid
	options []option
	parts   clauses // of the filter
	query   string  // of the filter
	asking  bool
	known   bool
	err     error
}

// openFacets shows what can be chosen.
func (m *Model) openFacets() tea.Cmd {
	if m.offers.filter.editing {
		return nil
	}
	m.facets = &facets{kit: m.kit}
	return m.facets.load(&m.offers)
}

// load counts the values for the present filter. One question is under way at a time.
func (f *facets) load(o *offers) tea.Cmd {
	f.query = o.filter.query
	f.parts = splitQuery(f.query)
	if f.asking {
		return nil
	}
	f.asking = true
	names := make([]string, len(facetFields))
	for i, one := range facetFields {
		names[i] = one.field
	}
	q := view.OfferQuery{Query: f.query, Facets: strings.Join(names, ","), Limit: 1, Job: o.job}
	return f.ask(func(ctx context.Context) tea.Msg {
		list, err := f.Market.Offers(ctx, q)
		msg := facetsMsg{asked: q.Query, facets: list.Facets, err: err}
		if err == nil {
			if saved, err := f.Market.SavedQueries(ctx); err == nil { // an agent that keeps none leaves them out
				msg.saved = saved
			}
		}
		return msg
	})
}

func (m *Model) tookFacets(msg facetsMsg) tea.Cmd {
	f := m.facets
	if f == nil {
		return m.check(msg.err)
	}
	f.asking = false
	if f.err = msg.err; msg.err != nil {
		return m.check(msg.err)
	}
	f.take(msg)
	if msg.asked != m.offers.filter.query {
		return f.load(&m.offers)
	}
	return nil
}

// take lays the options out. The cursor stays on what it stood on.
func (f *facets) take(msg facetsMsg) {
	var under option
	if len(f.options) > 0 {
		under = f.options[f.grid.at]
	}
	f.known, f.options = true, nil
	if len(msg.saved) > 0 {
		f.options = append(f.options, option{heading: "Saved queries"})
		for _, s := range msg.saved {
			f.options = append(f.options, option{text: clean(s.Name), query: s.Query})
		}
	}
	for _, facet := range msg.facets {
		if len(facet.Values) == 0 {
			continue
		}
		f.options = append(f.options, option{heading: facetWord(facet.Field)})
		for _, v := range facet.Values {
			f.options = append(f.options, option{text: valueWord(v), clause: v.Clause, offers: v.Offers})
		}
	}
	f.grid.to(0, len(f.options))
	for i, o := range f.options {
		if o.heading == "" && o.clause == under.clause && o.query == under.query && (o.clause != "" || o.text == under.text) {
			f.grid.to(i, len(f.options))
		}
	}
	f.settle(1)
}

func facetWord(field string) string {
	for _, f := range facetFields {
		if f.field == field {
			return f.word
		}
	}
	return field
}

// valueWord writes a value for people.
func valueWord(v market.FacetValue) string {
	switch v.Value {
	case "true":
		return "yes"
	case "false":
		return "no"
	}
	return strings.ReplaceAll(clean(v.Value), "_", " ")
}

// settle moves the cursor off a heading, in a direction where that is possible.
func (f *facets) settle(by int) {
	n := len(f.options)
	for range 2 {
		at := f.grid.at
		for at >= 0 && at < n && f.options[at].heading != "" {
			at += by
		}
		if at >= 0 && at < n {
			f.grid.to(at, n)
			return
		}
		by = -by
	}
}

// on reports whether an option is in the filter.
func (f *facets) on(o option) bool {
	if o.clause != "" {
		return f.parts.has(o.clause)
	}
	return o.query != "" && f.query == splitQuery(o.query).String()
}

// doFacets carries out what a key asks of the choice.
func (m *Model) doFacets(a act) (tea.Cmd, bool) {
	f := m.facets
	if by, moved := f.grid.step(a, len(f.options)); moved {
		f.grid.move(by, len(f.options))
		f.settle(map[bool]int{true: -1, false: 1}[by < 0])
		return nil, true
	}
	switch a {
	case actBack:
		m.facets = nil
	case actSave:
		return m.askSave(), true
	case actToggle:
		return m.toggle(), true
	default:
		return nil, false
	}
	return nil, true
}

// toggle puts the option under the cursor into the filter or takes it out.
func (m *Model) toggle() tea.Cmd {
	f := m.facets
	if len(f.options) == 0 || f.options[f.grid.at].heading != "" {
		return nil
	}
	o := f.options[f.grid.at]
	query := ""
	switch {
	case o.clause != "":
		query = f.parts.toggle(o.clause).String()
	case !f.on(o):
		query = splitQuery(o.query).String()
		if query == "" {
			m.say("this query asks for nothing, or makes no sense any more: "+o.query, true)
			return nil
		}
	}
	m.offers.filter.query = query
	return tea.Batch(f.load(&m.offers), m.offers.load(m.link.epoch))
}

// render shows the choice; where there is room, beside the offers that it leaves.
func (f *facets) render(o *offers, width, height int) []string {
	out := o.filter.render(o.count(width), width)
	height -= len(out)
	if width < 100 {
		return append(out, f.list(width, height)...)
	}
	const pane = 44
	left, right := f.list(pane, height), o.list(width-pane-2, height)
	for i := range left {
		out = append(out, left[i]+o.look.faint.on(o.look.sign.side)+" "+right[i])
	}
	return out
}

// list shows the options.
func (f *facets) list(width, height int) []string {
	switch {
	case f.err != nil:
		message, hint := explain(f.err)
		return block(indent(wrap(message+"; "+hint, width-4)), width, height)
	case !f.known:
		return block(indent([]string{f.look.faint.on("Counting what there is" + f.look.sign.more)}), width, height)
	case len(f.options) == 0:
		return block(indent(wrap("There is nothing to choose from yet.", width-4)), width, height)
	}
	return show(&f.grid, f.look, f.columns(width), len(f.options), func(i int) *option { return &f.options[i] }, width, height)
}

func (f *facets) columns(width int) []column[*option] {
	return []column[*option]{
		{title: "CHOOSE", width: max(8, min(60, width-14)), cell: f.text, paint: func(o *option) paint {
			switch {
			case o.heading != "":
				return f.look.strong
			case f.on(*o):
				return f.look.accent
			}
			return paint{}
		}},
		{title: "OFFERS", rank: 1, width: 6, right: true, cell: func(o *option) string {
			if o.clause == "" {
				return ""
			}
			return grouped(o.offers)
		}},
	}
}

// text writes an option with its mark: what is chosen is told by more than a colour.
func (f *facets) text(o *option) string {
	if o.heading != "" {
		return o.heading
	}
	mark := "  "
	if f.on(*o) {
		mark = f.look.sign.ok + " "
	}
	if o.clause == "" {
		return mark + o.text + ": " + o.query
	}
	return mark + o.text
}
