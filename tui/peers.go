package tui

import (
	"context"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"haggle/internal/view"
)

// peersMsg answers a question for the peers.
type peersMsg struct {
	list []view.Peer
	err  error
}

// peers is the page of the network: where the agent stands, and whom it is connected with.
type peers struct {
	*kit
	grid
	list   []view.Peer
	chosen string // key
	known  bool
	err    error
	asking bool
}

// load asks for the peers. One question is under way at a time.
func (p *peers) load() tea.Cmd {
	if p.asking {
		return nil
	}
	p.asking = true
	return p.ask(func(ctx context.Context) tea.Msg {
		list, err := p.Market.Peers(ctx)
		return peersMsg{list, err}
	})
}

func (p *peers) take(m peersMsg) {
	p.asking = false
	if p.err = m.err; m.err != nil {
		return
	}
	p.list, p.known = m.list, true
	for i, one := range p.list {
		if one.Key == p.chosen {
			p.grid.to(i, len(p.list))
		}
	}
	p.choose()
}

func (p *peers) choose() {
	p.grid.to(p.grid.at, len(p.list))
	p.chosen = ""
	if len(p.list) > 0 {
		p.chosen = p.list[p.grid.at].Key
	}
}

func (p *peers) do(a act) (handled bool) {
	by, moved := p.grid.step(a, len(p.list))
	if moved {
		p.grid.move(by, len(p.list))
		p.choose()
	}
	return moved
}

// render shows the page. Where there is little room, the peers go first.
func (p *peers) render(s view.AgentStatus, width, height int) []string {
	out := p.standing(s, width, height >= 16)
	height -= len(out)
	switch {
	case p.err != nil:
		message, hint := explain(p.err)
		return append(out, block(indent(wrap(message+"; "+hint, width-4)), width, height)...)
	case !p.known:
		return append(out, block(indent([]string{p.look.faint.on("Asking for the peers" + p.look.sign.more)}), width, height)...)
	case len(p.list) == 0:
		return append(out, block(indent(wrap("No peer is connected. Compare `network` and `bootstrap` in the configuration; `haggle lab up` starts a whole market on this machine.", width-4)), width, height)...)
	}
	return append(out, show(&p.grid, p.look, p.columns(width), len(p.list), func(i int) *view.Peer { return &p.list[i] }, width, height)...)
}

// mostLines bounds what is told about the reach, and about what would be better.
const mostLines = 3

// standing tells where the agent stands.
func (p *peers) standing(s view.AgentStatus, width int, long bool) []string {
	n := s.Network
	sign, color, word := p.look.sign.ok, p.look.good, "ready"
	if !n.Ready {
		sign, color, word = p.look.sign.warn, p.look.warn, "not ready"
		if n.Reason != "" {
			word += ": " + clean(n.Reason)
		}
	}
	head := " network " + p.look.strong.on(clean(n.Name)) + "  " + color.on(sign+" "+word)
	out := []string{line(head, width)}
	if !long {
		return out
	}
	row := func(label, text string) {
		out = append(out, line(" "+p.look.faint.on(fit(label, 9, false, p.look.sign.more))+fit(text, width-11, false, p.look.sign.more), width))
	}
	up := "less than a minute"
	if s.Uptime >= 60 {
		up = lasting(s.Uptime / 60 * 60_000)
	}
	row("agent", clean(s.Version)+", process "+strconv.Itoa(s.PID)+", up "+up)
	row("home", s.Home)
	row("key", n.Key)
	row("address", strings.Join(n.Addrs, " "))
	if r := n.Reach; r != nil {
		for _, said := range []struct{ label, text string }{{"reach", r.Found}, {"better", r.Fix}} {
			for i, l := range wrap(said.text, max(1, width-11)) {
				if i > 0 {
					said.label = ""
				}
				if i < mostLines {
					row(said.label, l)
				}
			}
		}
	}
	if from := sources(n.Sources); from != "" {
		row("found by", from)
	}
	row("knows", plural(n.Peers, "peer", "peers")+", "+plural(s.Offers, "offer", "offers")+", routing table "+strconv.Itoa(n.Table))
	return append(out, line("", width))
}

// sources names the ways to the first peers that gave somebody.
func sources(list []view.PeerSource) string {
	var parts []string
	for _, s := range list {
		if s.On && s.Found > 0 {
			parts = append(parts, clean(s.Name)+" "+strconv.Itoa(s.Found))
		}
	}
	return strings.Join(parts, ", ")
}

func (p *peers) columns(width int) []column[*view.Peer] {
	key := 18 // all keys begin alike: both ends are shown
	if width >= 120 {
		key = 52
	}
	return []column[*view.Peer]{
		{title: "KEY", width: key, cell: func(v *view.Peer) string { return middle(v.Key, key, p.look.sign.more) }},
		{title: "PROGRAM", rank: 2, width: 14, grow: 10, cell: func(v *view.Peer) string { return v.Agent }},
		{title: "LATENCY", rank: 1, width: 8, right: true, cell: latency},
		{title: "WAY", rank: 3, width: 3, cell: func(v *view.Peer) string { return v.Direction }},
		{title: "ADDRESS", rank: 4, width: 20, grow: 60, cell: func(v *view.Peer) string { return strings.Join(v.Addrs, " ") }},
	}
}

func latency(v *view.Peer) string {
	switch {
	case v.LatencyMs <= 0:
		return "?"
	case v.LatencyMs < 10:
		return strconv.FormatFloat(v.LatencyMs, 'f', 1, 64) + " ms"
	}
	return strconv.FormatFloat(v.LatencyMs, 'f', 0, 64) + " ms"
}
