package tui

import (
	"context"
	"errors"
	"strconv"

	tea "charm.land/bubbletea/v2"

	"haggle/internal/view"
	"haggle/market"
)

type (
	// orderMsg is the outcome of an order about a lease; done says what was done.
	orderMsg struct {
		lease view.Lease
		done  string
		err   error
	}
	// linkMsg is the outcome of carrying a port to this machine.
	linkMsg struct {
		lease, link string
		err         error
	}
	// shellMsg is the end of a shell.
	shellMsg struct{ err error }
)

// doInside carries out an order about the chosen lease.
func (m *Model) doInside(a act) tea.Cmd {
	l, ok := m.leases.current()
	paused := l.State == string(market.JobPaused)
	switch {
	case !ok || l.ID == "":
		m.say("there is no lease here to enter", true)
		return nil
	case a == actResume && !paused || a == actRemove && !paused:
		m.say("only a lease whose disk is kept can be started again or removed; K keeps the disk", true)
		return nil
	case a == actKeep && l.State != string(market.JobRunning):
		m.say("only the disk of a job that runs can be kept", true)
		return nil
	case a == actExtend && !open(l):
		m.say("this lease is over", true)
		return nil
	case !m.ready():
		return nil
	}
	switch a {
	case actShell:
		return m.shell(l)
	case actOpen:
		return m.openPort(l)
	case actFiles:
		m.prompt = m.filesPrompt(l)
	case actExtend:
		m.prompt = m.extendPrompt(l)
	case actKeep:
		return m.askKeep(l)
	case actResume:
		return m.leases.order("lease "+called(&l)+" starts again", func(ctx context.Context) (view.Lease, error) { return m.Market.Resume(ctx, l.ID) })
	case actRemove:
		return m.askRemove(l)
	}
	return nil
}

// tookInside takes what orders about the inside of a lease have come to.
func (m *Model) tookInside(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case orderMsg:
		return m.tookOrder(msg)
	case linkMsg:
		return m.tookLink(msg)
	case shellMsg:
		return m.tookShell(msg)
	case copyMsg:
		return m.leases.tookCopy(msg)
	case copiedMsg:
		return m.tookCopied(msg)
	case facetsMsg:
		return m.tookFacets(msg)
	case savedMsg:
		m.offers.filter.keep(msg.saved)
	case planMsg:
		return m.tookPlan(msg)
	case saidMsg:
		return m.tookSaid(msg)
	}
	return m.tookMoney(msg)
}

// order makes the command of an order.
func (l *leases) order(done string, do func(ctx context.Context) (view.Lease, error)) tea.Cmd {
	return l.work(func(ctx context.Context) tea.Msg {
		one, err := do(ctx)
		return orderMsg{one, done, err}
	})
}

func (m *Model) tookOrder(msg orderMsg) tea.Cmd {
	if msg.err != nil {
		m.fault(msg.err)
		return m.check(msg.err)
	}
	m.leases.change(msg.lease)
	m.say(msg.done, false)
	return m.seen()
}

// shell opens a shell on this terminal; the screens come back after it.
func (m *Model) shell(l view.Lease) tea.Cmd {
	if m.Shell == nil {
		m.say("there is no shell here; `haggle shell "+short(l.ID)+"` opens one", true)
		return nil
	}
	return tea.ExecProcess(m.Shell(l.ID), func(err error) tea.Msg { return shellMsg{err} })
}

func (m *Model) tookShell(msg shellMsg) tea.Cmd {
	var code interface{ ExitCode() int }
	switch {
	case errors.As(msg.err, &code):
		m.say("the shell ended with code "+strconv.Itoa(code.ExitCode()), false)
	case msg.err != nil:
		m.say("the shell did not start: "+msg.err.Error(), true)
	default:
		m.say("the shell has ended", false)
	}
	return nil
}

// openPort carries a port to this machine: the only one that the job named, or the one that the user chooses.
func (m *Model) openPort(l view.Lease) tea.Cmd {
	if m.Forward == nil {
		m.say("`haggle open "+short(l.ID)+" PORT` opens a port", true)
		return nil
	}
	if len(l.Ports) == 1 {
		return m.leases.forward(l.ID, l.Ports[0].Port)
	}
	ask := textField("Port", "", "the number of the port that the job listens on")
	if len(l.Ports) > 1 {
		var names []string
		for _, d := range l.Ports {
			names = append(names, portName(d))
		}
		ask = choiceField("Port", names, 0, "the ports that the job named")
	}
	m.prompt = &prompt{title: "Open a port", fields: []field{ask}, do: func(p *prompt) (tea.Cmd, error) {
		if len(l.Ports) > 1 {
			return m.leases.forward(l.ID, l.Ports[p.fields[0].at].Port), nil
		}
		n, err := strconv.ParseUint(p.value(0), 10, 16)
		if err != nil || n == 0 {
			return nil, errors.New("write a port from 1 to 65535")
		}
		return m.leases.forward(l.ID, uint16(n)), nil
	}}
	return nil
}

func (l *leases) forward(id string, port uint16) tea.Cmd {
	return l.work(func(ctx context.Context) tea.Msg {
		link, err := l.Forward(ctx, id, port)
		return linkMsg{id, link, err}
	})
}

func (m *Model) tookLink(msg linkMsg) tea.Cmd {
	if msg.err != nil {
		m.fault(msg.err)
		return m.check(msg.err)
	}
	m.leases.links[msg.lease] = append(m.leases.links[msg.lease], msg.link)
	m.say("sent to the terminal's clipboard: "+msg.link, false)
	return tea.SetClipboard(clean(msg.link))
}

// askKeep asks whether a job shall end and its disk be kept.
func (m *Model) askKeep(l view.Lease) tea.Cmd {
	lines := []string{
		"lease " + called(&l) + " on " + l.Rig, "The job ends. Its disk is kept for you, and the cards are free for others.",
		"Kept, it costs " + m.diskPrice(l) + ". R starts the job again if the same cards are free then; D destroys the disk.",
	}
	return m.open(&dialog{title: "Keep the disk?", yes: "keep", lines: lines, do: func() tea.Cmd {
		return m.leases.order("lease "+called(&l)+" is told to stop, its disk is kept", func(ctx context.Context) (view.Lease, error) { return m.Market.Keep(ctx, l.ID) })
	}})
}

// diskPrice says what a lease's disk costs an hour, as far as its rig's offer is known.
func (m *Model) diskPrice(l view.Lease) string {
	for _, o := range m.offers.shelf.Offers {
		if o.RigKey != l.RigKey || o.DiskPrice.Currency == "" {
			continue
		}
		if o.DiskPrice.Micro == 0 {
			return "nothing, as its rig asks now"
		}
		prices := market.Prices{Currency: o.DiskPrice.Currency, Disk: market.Rate(o.DiskPrice.Micro)}
		if bill, err := prices.Bill(market.UsageAt(3_600_000, 0, l.DiskMB, 0, 0)); err == nil {
			return bill.Total.String() + " " + o.DiskPrice.Currency + " an hour, as its rig asks now"
		}
	}
	return "what the lease says for its disk"
}

// askRemove asks whether a kept disk shall be destroyed.
func (m *Model) askRemove(l view.Lease) tea.Cmd {
	what := "Its disk and all that is on it are destroyed"
	if text := use(l); text != "" {
		what += " (" + text + ")"
	}
	lines := []string{"lease " + called(&l) + " on " + l.Rig, what + ". Nobody can bring them back.", "Then the lease is over."}
	return m.open(&dialog{title: "Destroy the disk?", yes: "destroy", lines: lines, do: func() tea.Cmd {
		return m.leases.order("lease "+called(&l)+" is over, its disk is destroyed", func(ctx context.Context) (view.Lease, error) { return m.Market.Remove(ctx, l.ID) })
	}})
}

// extendPrompt asks for time and money to add.
func (m *Model) extendPrompt(l view.Lease) *prompt {
	read := func(p *prompt) (r view.ExtendRequest, cost market.Micro, err error) {
		if text := p.value(0); text != "" {
			d, err := parseSpan(text)
			if err != nil {
				return r, 0, err
			}
			r.DurationMs = d.Milliseconds()
		}
		prices := market.Prices{Currency: l.Price.Currency, Slot: market.Rate(l.Price.Micro)}
		bill, err := prices.Bill(market.UsageAt(r.DurationMs, l.Slots, 0, 0, 0))
		if err != nil {
			return r, 0, err
		}
		cost = bill.Total
		if text := p.value(1); text != "" {
			if cost, err = market.ParseMicro(text); err != nil {
				return r, 0, err
			}
			r.BudgetMicro = int64(cost)
		}
		if r.DurationMs == 0 && r.BudgetMicro == 0 {
			return r, 0, errors.New("write a time, an amount of money, or both")
		}
		return r, cost, nil
	}
	return &prompt{
		title: "Extend lease " + called(&l),
		fields: []field{
			textField("Time", "1h", "running time to add, such as 30m or 2h; at the lease's own price, if the rig agrees"),
			textField("Budget", "", "money to add; empty adds what the time costs"),
		},
		quote: func(p *prompt) []string {
			r, cost, err := read(p)
			if err != nil {
				return nil
			}
			how := " adds "
			if r.BudgetMicro == 0 {
				how = " adds, with the disk beside it, about "
			}
			return []string{
				lasting(r.DurationMs) + how + cost.String() + " " + l.Price.Currency,
				"then " + lasting(l.Duration+r.DurationMs) + " in all, at most " + (market.Micro(l.Budget.Micro) + cost).String() + " " + l.Price.Currency,
			}
		},
		do: func(p *prompt) (tea.Cmd, error) {
			r, _, err := read(p)
			if err != nil {
				return nil, err
			}
			return m.leases.order("both signed more time and money for lease "+called(&l), func(ctx context.Context) (view.Lease, error) { return m.Market.Extend(ctx, l.ID, r) }), nil
		},
	}
}
