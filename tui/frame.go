package tui

import (
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// Sizes of the frame.
const (
	leastWidth  = 20
	leastHeight = 4
	roomy       = 14 // lines from which the status bar has a line of its own
)

// View draws the frame: the pages' names, the page, the status bar and the keys.
func (m *Model) View() (v tea.View) {
	defer func() {
		if r := recover(); r != nil {
			m.crashed(r, "the view")
			v = tea.NewView("")
		}
	}()
	v = tea.NewView(strings.Join(m.lines(), "\n"))
	v.AltScreen = true
	v.WindowTitle = "haggle"
	return v
}

// lines renders the frame: exactly the terminal's height and width.
func (m *Model) lines() []string {
	if m.width < 1 || m.height < 1 {
		return nil
	}
	if m.width < leastWidth || m.height < leastHeight {
		return block([]string{"too small"}, m.width, m.height)
	}
	body := m.height - 2
	bar := m.height >= roomy
	if bar {
		body--
	}
	out := append(make([]string, 0, m.height), m.tabs())
	out = append(out, m.body(m.width, body)...)
	if bar {
		out = append(out, m.bar())
	}
	return append(out, m.foot(bar))
}

// tabs names the pages.
func (m *Model) tabs() string {
	names := []string{"1 Market", "2 Leases", "3 Receipts", "4 Peers", "5 Money"}
	for i, name := range names {
		switch {
		case scope(i) == m.page:
			names[i] = m.look.strong.on("[" + name + "]")
		case m.width >= 60:
			names[i] = " " + name + " "
		case m.width < 48: // there is no room for all
			names[i] = name[:1]
		}
	}
	left := strings.Join(names, " ")
	if m.width >= 60 {
		left = strings.Join(names, "")
	}
	right := ""
	switch {
	case m.link.state == linkAway:
		right = m.look.warn.on(m.link.word() + " ")
	case m.height < roomy && m.alerts.top != "":
		right = m.look.warn.on(fit(m.look.sign.warn+" "+m.alerts.top, max(0, m.width-span(left)-1), false, m.look.sign.more))
	}
	return spread(left, right, m.width)
}

// body renders the page and what lies over it. What an agent that is gone said last stays, dimmed.
func (m *Model) body(width, height int) []string {
	var out []string
	switch {
	case m.link.state == linkNew:
		out = block(indent(wrap("Asking the agent"+m.look.sign.more, width-4)), width, height)
	case m.scope() == inAway:
		out = block(indent(m.gone(width-4)), width, height)
	default:
		out = m.under(width, height)
		if m.link.state == linkAway {
			for i := range out {
				out[i] = m.look.faint.on(stripped(out[i]))
			}
			out = append(out[:height-1], m.look.warn.on(fit(" "+m.look.sign.warn+" "+m.stale(width), width, false, m.look.sign.more)))
		}
	}
	if m.payment != nil {
		out = m.payment.render(m.kit, width, height)
	}
	if m.help != nil {
		out = m.help.render(m.look, m.Version, width, height)
	}
	if m.prompt != nil {
		out = m.prompt.render(m.look, out, width, height)
	}
	if m.dialog != nil {
		out = m.dialog.render(m.look, out, width, height)
	}
	return out
}

// stale says that what is shown is old, and what to do.
func (m *Model) stale(width int) string {
	switch {
	case width < 70:
		return "the agent is away; r looks for it"
	case m.Start == nil:
		return "the agent is away; this is what it said last. r looks for it."
	}
	return "the agent is away; this is what it said last. r starts it again."
}

// under renders the page itself.
func (m *Model) under(width, height int) []string {
	switch {
	case m.form != nil:
		return m.form.render(width, height)
	case m.facets != nil:
		return m.facets.render(&m.offers, width, height)
	case m.plan != nil:
		return m.plan.render(&m.offers, width, height)
	case m.page == inLeases:
		return m.leases.render(width, height)
	case m.page == inReceipts:
		return m.receipts.render(width, height)
	case m.page == inPeers:
		return m.peers.render(m.link.status, width, height)
	case m.page == inMoney:
		return m.ledger.render(width, height)
	}
	return m.offers.render(width, height)
}

// anything reports whether there is something to show without an agent.
func (m *Model) anything() bool { return m.offers.known || m.leases.known }

// gone says that there is no agent, and what to do.
func (m *Model) gone(width int) []string {
	message, _ := explain(m.link.fault)
	out := []string{m.look.bad.on(m.look.sign.bad + " The agent does not answer."), ""}
	for _, l := range wrap(message, width) {
		out = append(out, m.look.faint.on(l))
	}
	out = append(out, "")
	what := "It is looked for again and again. r starts it now; q leaves."
	if m.Start == nil {
		what = "It is looked for again and again. `haggle status` starts it; r looks now; q leaves."
	}
	out = append(out, wrap(what, width)...)
	if m.Home != "" {
		out = append(append(out, ""), wrap("Its folder is "+m.Home, width)...)
	}
	return out
}

// bar is the status bar, or what happened last.
func (m *Model) bar() string {
	if m.notice.text != "" {
		return m.noticed()
	}
	if m.alerts.top != "" {
		return m.look.warn.on(fit(" "+m.look.sign.warn+" "+m.alerts.top, m.width, false, m.look.sign.more))
	}
	dot := " " + m.look.sign.dot + " "
	left := " " + m.link.word()
	if n := m.link.status.Network; n.Name != "" {
		left = " " + clean(n.Name) + dot + plural(n.Peers, "peer", "peers") + dot + m.link.word()
		if !n.Ready && m.link.state == linkUp {
			left += dot + m.look.sign.warn + " joining the network"
		}
	}
	if m.leases.bidding > 0 {
		left += dot + "bidding" + m.look.sign.more
	}
	count, sums := m.leases.sums()
	right := "no open lease "
	if count > 0 {
		right = plural(count, "open lease", "open leases") + dot + sums + " "
		if span(left)+span(right) >= m.width {
			right = strconv.Itoa(count) + " open "
		}
	}
	return m.look.faint.on(spread(left, right, m.width))
}

func (m *Model) noticed() string {
	if m.notice.bad {
		return m.look.bad.on(fit(" "+m.look.sign.bad+" "+m.notice.text, m.width, false, m.look.sign.more))
	}
	return m.look.good.on(fit(" "+m.look.sign.ok+" "+m.notice.text, m.width, false, m.look.sign.more))
}

// foot names the keys. Without a status bar, what happened last takes its place until the next key.
func (m *Model) foot(bar bool) string {
	if !bar && m.notice.text != "" {
		return m.noticed()
	}
	if m.dialog != nil {
		if !m.dialog.armed {
			return line("", m.width)
		}
		return line(" "+m.look.accent.on("y")+" "+m.look.strong.on(m.dialog.yes)+"  "+m.look.accent.on("n")+" "+m.look.faint.on("no"), m.width)
	}
	return " " + m.look.footer(m.scope(), m.rows(), m.width-1)
}

// rows reports whether there is a row to act on. What is no page always has one.
func (m *Model) rows() bool {
	switch m.scope() {
	case inOffers:
		return len(m.offers.shelf.Offers) > 0
	case inLeases:
		return len(m.leases.list) > 0
	case inReceipts:
		return m.receipts.lease.ID != ""
	case inPeers:
		return len(m.peers.list) > 0
	case inMoney:
		return len(m.ledger.entries) > 0
	}
	return true
}
