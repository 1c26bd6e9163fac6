package tui

import (
	"context"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"haggle/internal/view"
	"haggle/market"
)

// saidMsg tells what became of something that the user asked for beside the pages.
type saidMsg struct {
	text   string
	reload bool // the lists say something else now
	err    error
}

func (m *Model) tookSaid(msg saidMsg) tea.Cmd {
	if msg.err != nil {
		m.fault(msg.err)
		return m.check(msg.err)
	}
	m.say(msg.text, false)
	switch {
	case !msg.reload:
		return nil
	case m.facets != nil:
		return tea.Batch(m.facets.load(&m.offers), m.offers.load(m.link.epoch))
	}
	m.offers.looked = look{} // what it holds has the old names
	return m.offers.load(m.link.epoch)
}

// askJob asks for the job for which all is priced.
func (m *Model) askJob() tea.Cmd {
	j := m.offers.job
	size := func(mb int64) string {
		if mb == 0 {
			return ""
		}
		return strconv.FormatInt(mb/1000, 10)
	}
	m.prompt = &prompt{
		title: "My job: every price is told for it",
		fields: []field{
			textField("Cards", strconv.Itoa(max(1, j.GPUs)), "all in one rig; offers with fewer free cards are left out"),
			textField("Time", lasting(j.DurationMs), "running time, such as 90s, 2h or 7d"),
			textField("Disk", size(j.DiskMB), "in GB; empty for what comes with the cards"),
			textField("Sent", size(j.InMB), "traffic into the job in GB"),
			textField("Brought", size(j.OutMB), "traffic out of the job in GB"),
			textField("Image", j.Image, "a rig that has it starts sooner; empty where you do not know yet"),
		},
		do: func(p *prompt) (tea.Cmd, error) {
			job, err := readJob(p)
			if err != nil {
				return nil, err
			}
			m.offers.job = job
			for _, f := range m.drafts {
				f.suit(job)
			}
			return m.offers.load(m.link.epoch), nil
		},
	}
	return nil
}

// readJob reads the prompt for the job.
func readJob(p *prompt) (view.JobShape, error) {
	j := view.JobShape{Image: p.value(5)}
	cards, err := strconv.Atoi(p.value(0))
	if err != nil || cards < 1 || cards > market.MaxSlots {
		return j, errBadCards
	}
	j.GPUs = cards
	d, err := parseSpan(p.value(1))
	if err != nil {
		return j, err
	}
	j.DurationMs = d.Milliseconds()
	for i, mb := range []*int64{&j.DiskMB, &j.InMB, &j.OutMB} {
		if text := p.value(2 + i); text != "" {
			if *mb, err = parseDisk(text); err != nil {
				return j, err
			}
		}
	}
	return j, nil
}

// askName asks for the user's own name of the chosen rig's owner.
func (m *Model) askName() tea.Cmd {
	o := m.offers.chosen
	if o.Owner == "" {
		m.say("there is no offer whose owner could be named", true)
		return nil
	}
	m.prompt = &prompt{
		title: "Your name for the owner of " + clean(o.Rig),
		fields: []field{
			textField("Name", o.GivenName, "nobody else sees it; a rig may call itself anything, its key stays. Empty takes the name back"),
		},
		do: func(p *prompt) (tea.Cmd, error) {
			name := p.value(0)
			return m.ask(func(ctx context.Context) tea.Msg {
				_, err := m.Market.GiveName(ctx, o.Owner, name)
				text := "the owner of " + o.Rig + " is " + name + " now"
				if name == "" {
					text = "the owner of " + o.Rig + " has no name of yours any more"
				}
				return saidMsg{text: text, reload: true, err: err}
			}), nil
		},
	}
	return nil
}

// askSave asks for a name under which the filter is kept.
func (m *Model) askSave() tea.Cmd {
	query := m.offers.filter.query
	if query == "" {
		m.say("the filter is empty: choose something first", true)
		return nil
	}
	m.prompt = &prompt{
		title:  "Keep the filter",
		fields: []field{textField("Name", "", "small letters, digits and dashes; @NAME asks for it on the command line")},
		quote:  func(*prompt) []string { return []string{query} },
		do: func(p *prompt) (tea.Cmd, error) {
			name := strings.TrimPrefix(p.value(0), "@")
			if err := market.CheckSavedName(name); err != nil {
				return nil, err
			}
			return m.ask(func(ctx context.Context) tea.Msg {
				_, err := m.Market.SaveQuery(ctx, name, query)
				return saidMsg{text: "kept as @" + name, reload: true, err: err}
			}), nil
		},
	}
	return nil
}

// ping calls the chosen program.
func (m *Model) ping() tea.Cmd {
	key := m.peers.chosen
	if key == "" || !m.ready() {
		return nil
	}
	m.say("calling "+middle(key, 18, m.look.sign.more)+m.look.sign.more, false)
	return m.ask(func(ctx context.Context) tea.Msg {
		p, err := m.Market.Ping(ctx, key)
		return saidMsg{text: pinged(p), err: err}
	})
}

// pinged says by which way a program was reached.
func pinged(p view.Ping) string {
	way := map[string]string{
		"direct": "reached directly", "punched": "reached through a punched hole", "relayed": "reached through a relay", "loopback": "reached on this machine",
	}[p.Path]
	if way == "" {
		way = "reached"
	}
	if p.Small {
		way += " that carries no shells, ports and files"
	}
	return way + ", " + latency(&view.Peer{LatencyMs: p.RTTMs}) + " there and back, at " + clean(p.Addr)
}
