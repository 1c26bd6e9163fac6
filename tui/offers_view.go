package tui

import (
	"strconv"
	"strings"

	"haggle/internal/view"
	"haggle/market"
)

// Badges stand beside every card that they are true of.
const (
	badgeSimulated  = "SIM"
	badgeUnisolated = "NO ISOLATION"
	badgeListed     = "NOT RENTABLE"
	badgeTrusted    = "TRUST" // bids of trusted owners only
)

// badges returns what must be known of an offer at first sight.
func badges(o view.Offer) string {
	var b []string
	if o.Simulated {
		b = append(b, badgeSimulated)
	}
	if unisolated(o) {
		b = append(b, badgeUnisolated)
	}
	if trustedOnly(o) {
		b = append(b, badgeTrusted)
	}
	if !o.Rentable {
		b = append(b, badgeListed)
	}
	return strings.Join(b, " ")
}

// model names a card for people: models are written without blanks in offers.
func model(name string) string { return strings.ReplaceAll(name, "_", " ") }

// widthOfDetail is the width of the pane beside the list.
func widthOfDetail(width int) int {
	switch {
	case width >= 160:
		return 62
	case width >= 100:
		return 44
	}
	return 0
}

// render shows the page.
func (o *offers) render(width, height int) []string {
	out := o.filter.render(o.count(width), width)
	height -= len(out)
	if o.whole && o.chosen.Hash != "" {
		return append(out, o.scrolled(o.facts(o.about(), width-2), width, height)...)
	}
	pane := widthOfDetail(width)
	if len(o.shelf.Offers) == 0 || o.err != nil && !o.known {
		pane = 0
	}
	list := o.list(width-pane, height)
	if pane == 0 {
		return append(out, list...)
	}
	detail := block(o.facts(o.about(), pane-4), pane-4, height)
	for i := range list {
		out = append(out, list[i]+" "+o.look.faint.on(o.look.sign.side)+" "+detail[i]+" ")
	}
	return out
}

// scrolled shows the details as a page.
func (o *offers) scrolled(facts []string, width, height int) []string {
	o.scroll = max(0, min(o.scroll, len(facts)-height))
	lines := make([]string, 0, height)
	for _, f := range facts[o.scroll:min(len(facts), o.scroll+height)] {
		lines = append(lines, " "+f)
	}
	return block(lines, width, height)
}

// count says how many offers there are and in which order they stand.
func (o *offers) count(width int) string {
	if !o.known {
		return ""
	}
	arrow := o.look.sign.ascending
	if strings.HasSuffix(o.asked.Sort, "-") {
		arrow = o.look.sign.descending
	}
	text := o.found(width)
	if width < 60 && o.filter.query != "" {
		return text
	}
	if o.shelf.Reading && width < 100 {
		return text
	}
	order := sorts[o.sort].word + " " + arrow
	if sorts[o.sort].by == market.SortBest && !o.reversed {
		order = sorts[o.sort].word
	}
	text += " " + o.look.sign.dot + " " + order
	if width >= 100 {
		text += " " + o.look.sign.dot + " " + jobWords(o.job)
	}
	return text
}

// found says how many offers match, of how many, and how far the reading came.
func (o *offers) found(width int) string {
	s, n := &o.shelf, len(o.shelf.Offers)
	matches := max(s.Matches, n)
	text := plural(matches, "offer", "offers")
	if matches != s.Known {
		text = strconv.Itoa(matches) + " of " + plural(s.Known, "offer", "offers")
	}
	if s.Reading && s.About > s.Known {
		read := grouped(s.Known) + " of about " + grouped(s.About) + " offers read"
		if width < 60 {
			read = grouped(s.Known) + " of ~" + grouped(s.About) + " read"
		}
		if matches == s.Known || width < 80 {
			return read
		}
		return strconv.Itoa(matches) + " match " + o.look.sign.dot + " " + read
	}
	if n < matches && width >= 60 {
		text = "first " + grouped(n) + " of " + grouped(matches) + " offers"
	}
	return text
}

// grouped writes a number with blanks between its thousands.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + " " + text[at:]
	}
	return text
}

// list shows the offers, or says why there are none.
func (o *offers) list(width, height int) []string {
	if len(o.shelf.Offers) == 0 {
		return block(indent(o.empty(width-4)), width, height)
	}
	why := ""
	switch {
	case o.err != nil:
		why, _ = explain(o.err)
	case o.shelf.Reason != "":
		why = o.shelf.Reason
	}
	if why == "" || height < 6 {
		return show(&o.grid, o.look, o.columns(width), len(o.shelf.Offers), o.row, width, height)
	}
	out := show(&o.grid, o.look, o.columns(width), len(o.shelf.Offers), o.row, width, height-1)
	return append(out, o.look.warn.on(fit(" "+o.look.sign.warn+" "+why, width, false, o.look.sign.more)))
}

func (o *offers) row(i int) *view.Offer { return &o.shelf.Offers[i] }

func (o *offers) columns(width int) []column[*view.Offer] {
	flags := -1 // the blank that the first badge does not need
	for _, b := range []struct {
		some bool
		text string
	}{{o.shelf.simulated, badgeSimulated}, {o.shelf.unisolated, badgeUnisolated}, {o.shelf.trusted, badgeTrusted}} {
		if b.some {
			flags += 1 + len(b.text)
		}
	}
	flags = max(0, flags)
	badge := func(v *view.Offer) string { return badges(*v) }
	if width < 100 && o.shelf.unisolated { // the details say it in full
		flags -= len(badgeUnisolated) - len("NO ISO")
		badge = func(v *view.Offer) string {
			return strings.NewReplacer(badgeUnisolated, "NO ISO", badgeListed, "NOT YET").Replace(badges(*v))
		}
	}
	columns := []column[*view.Offer]{
		{title: "CARD", width: 14, grow: 8, cell: func(v *view.Offer) string { return model(v.Model) }},
		{width: flags, cell: badge, paint: func(*view.Offer) paint { return o.look.warn }},
		{title: "FREE", rank: 2, width: 5, right: true, cell: func(v *view.Offer) string { return strconv.Itoa(v.Free) + "/" + strconv.Itoa(v.Slots) }},
		{title: "MEMORY", rank: 5, width: 7, right: true, cell: func(v *view.Offer) string { return strconv.FormatInt(v.MemoryGiB, 10) + " GiB" }},
		{title: "PRICE/H", rank: 3, width: 9, grow: 4, right: true, cell: func(v *view.Offer) string { return money(v.Price) }},
		{title: "MY JOB", width: min(14, max(9, o.shelf.totalWidth)), right: true, cell: total, paint: func(*view.Offer) paint { return o.look.strong }},
		{title: "RIG", rank: 1, width: 14, grow: min(36, max(0, o.shelf.rigWidth-14)), cell: rigName},
		{title: "HEARD", rank: 4, width: 5, cell: o.heard},
		{title: "START", rank: 6, width: 6, right: true, cell: start},
		{title: "REACH", rank: 7, width: 8, cell: func(v *view.Offer) string { return v.Reach }},
		{title: "WHERE", rank: 8, width: 5, cell: func(v *view.Offer) string { return orUnknown(v.Country) }},
		{title: "ID", rank: 9, width: 8, cell: func(v *view.Offer) string { return v.ID }},
	}
	for i := range columns { // what nobody but this machine's disk says steps back
		own := columns[i].paint
		columns[i].paint = func(v *view.Offer) paint {
			switch {
			case remembered(v):
				return o.look.faint
			case own != nil:
				return own(v)
			}
			return paint{}
		}
	}
	return columns
}

func orUnknown(s string) string {
	if s == "" {
		return "?"
	}
	return s
}

func indent(lines []string) []string {
	out := []string{""}
	for _, l := range lines {
		out = append(out, "  "+l)
	}
	return out
}

// empty says why there is no offer and what to do.
func (o *offers) empty(width int) []string {
	para := func(p paint, text string) []string {
		var out []string
		for _, l := range wrap(text, width) {
			out = append(out, p.on(l))
		}
		return append(out, "")
	}
	lab := para(o.look.faint, "`haggle lab up` starts a whole market on this machine, with simulated cards.")
	switch {
	case o.err != nil && !o.known:
		message, hint := explain(o.err)
		out := append(para(o.look.bad, o.look.sign.bad+" "+message), para(o.look.faint, hint)...)
		if market.CodeOf(o.err) == market.CodeNoPeers {
			out = append(out, lab...)
		}
		return out
	case !o.known:
		return para(o.look.faint, "Looking for offers"+o.look.sign.more)
	case o.shelf.Known == 0:
		out := para(o.look.strong, "No rig offers anything yet.")
		if o.shelf.Reason != "" {
			out = append(out, para(o.look.warn, o.look.sign.warn+" "+o.shelf.Reason)...)
		}
		out = append(out, lab...)
		return append(out, para(o.look.faint, "This list looks again every 2 seconds; 4 shows the peers.")...)
	}
	return o.funnel(width, para)
}

// funnel says what each clause of the filter left.
func (o *offers) funnel(width int, para func(paint, string) []string) []string {
	out := para(o.look.strong, "None of "+plural(o.shelf.Known, "offer", "offers")+" matches.")
	if f := o.shelf.Funnel; f != nil {
		for _, s := range f.Steps {
			left := strconv.Itoa(s.Left) + " left"
			out = append(out, fit(s.Clause, max(4, min(width-12, 40)), false, o.look.sign.more)+"  "+left)
		}
		out = append(out, "")
		if f.Nearest != "" {
			out = append(out, para(o.look.faint, "Nearest: "+f.Nearest)...)
		}
	}
	return append(out, para(o.look.faint, "esc clears the filter, / changes it.")...)
}
