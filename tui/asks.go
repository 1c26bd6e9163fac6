package tui

import (
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"haggle/market"
)

// rent opens the form for the chosen offer, with what was typed into it before.
func (m *Model) rent() tea.Cmd {
	o := m.offers.about()
	m.offers.picked = true
	switch {
	case o.Hash == "":
		m.say("there is no offer to rent from", true)
	case o.Free < 1:
		m.say("no card of this offer is free now; s sorts by free cards", true)
	default:
		f := m.drafts[o.RigKey]
		if f == nil {
			f = newForm(m.kit, o, m.link.status.Methods)
			f.suit(m.offers.job)
			m.drafts[o.RigKey] = f
		}
		f.renew(o, m.link.status.Methods)
		m.form = f
	}
	return m.offers.inspect()
}

// ready reports whether the agent can be told to do something, and says so where it cannot.
func (m *Model) ready() bool {
	if m.link.state != linkUp {
		m.say("the agent is away: nothing can be changed now; r looks for it", true)
		return false
	}
	return true
}

// review asks whether the bid of the form shall be placed.
func (m *Model) review() tea.Cmd {
	o, ok := m.form.review()
	if !ok || !m.ready() {
		return nil
	}
	f, unit := m.form, " "+o.currency
	lines := []string{
		strings.Join(strings.Fields(strconv.Itoa(o.cards)+" "+m.look.sign.times+" "+model(f.offer.Model)+" "+badges(f.offer)+" on "+rigName(&f.offer)), " "),
		"image " + f.fields[fieldImage].value() + ", for " + lasting(o.ms) + " of running time",
		"the whole time costs " + o.bill.Total.String() + unit + ", a minute " + o.minute.String(),
		"it can cost at most " + o.budget.String() + unit,
	}
	if j := m.offers.job; f.offer.Why != nil && o.cards == j.GPUs && o.ms == j.DurationMs && o.disk == j.DiskMB { // it is told for my job
		lines = append(lines, clean(f.offer.Why.Worst.Text))
	}
	lines = append(lines, f.payHint(o))
	if o.bid.StopIdle != nil {
		lines = append(lines, "it ends when no card is used above "+percent(o.bid.StopIdle.Permille)+" % for "+lasting(o.bid.StopIdle.ForMs))
	}
	if o.bid.Src != "" {
		lines = append(lines, "the files of "+o.bid.Src+" are sent before the start, which is not billed")
	}
	return m.open(&dialog{title: "Rent?", yes: "rent", lines: lines, do: func() tea.Cmd {
		m.form, m.offers.whole = nil, false
		return tea.Batch(m.leases.bid(o, f.offer), m.turn(inLeases))
	}})
}

// askStop asks whether a job shall be ended.
func (m *Model) askStop(kill bool) tea.Cmd {
	l, ok := m.leases.current()
	if !ok || !open(l) || l.ID == "" {
		m.say("this lease has no job to stop", true)
		return nil
	}
	if l.State == string(market.JobPaused) {
		m.say("the job does not run, its disk is kept; D destroys the disk, R starts the job again", true)
		return nil
	}
	if !m.ready() {
		return nil
	}
	how := "It gets SIGTERM, and SIGKILL when the notice is over."
	title := "Stop the job?"
	if kill {
		title, how = "Kill the job?", "It gets SIGKILL at once and cannot save anything."
	}
	lines := []string{"lease " + short(l.ID) + " on " + l.Rig, how, "Spent so far: " + money(l.Spent) + ". Nothing more is billed after the stop."}
	return m.open(&dialog{title: title, yes: "stop", lines: lines, do: func() tea.Cmd { return m.leases.stop(l.ID, kill) }})
}

// open shows a dialog. It takes keys after its grace period.
func (m *Model) open(d *dialog) tea.Cmd {
	m.dialog = d
	return m.after(grace, armMsg{d})
}
