package tui

import (
	"context"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"haggle/internal/view"
	"haggle/market"
)

// planMsg answers a question for a plan.
type planMsg struct {
	asked view.PlanRequest
	plan  view.Plan
	err   error
}

// plan is what a budget buys: three ways of spending it.
type plan struct {
	*kit
	grid
	asked   view.PlanRequest
	told    view.Plan
	choices []planChoice
	known   bool
	err     error
}

// planChoice is one of the ways.
type planChoice struct {
	word string
	*view.Choice
}

// askPlan asks for the budget.
func (m *Model) askPlan() tea.Cmd {
	j := m.offers.job
	budget, length := "", ""
	if m.plan != nil {
		budget = market.Micro(m.plan.asked.BudgetMicro).String()
		if ms := m.plan.asked.DurationMs; ms > 0 {
			length = lasting(ms)
		}
	}
	currency := "USD"
	if c := m.offers.chosen.Price.Currency; c != "" {
		currency = clean(c)
	}
	m.prompt = &prompt{
		title: "What does a budget buy?",
		fields: []field{
			textField("Budget", budget, "in "+currency+", such as 5"),
			textField("Time", length, "that the job runs; empty: as long as the budget lasts"),
		},
		do: func(p *prompt) (tea.Cmd, error) {
			micro, err := market.ParseMicro(p.value(0))
			if err != nil {
				return nil, err
			}
			if micro <= 0 {
				return nil, errNoBudget
			}
			r := view.PlanRequest{
				Query: m.offers.filter.query, BudgetMicro: int64(micro), Currency: currency, GPUs: j.GPUs, DiskMB: j.DiskMB,
				InMB: j.InMB, OutMB: j.OutMB, Image: j.Image,
			}
			if text := p.value(1); text != "" {
				d, err := parseSpan(text)
				if err != nil {
					return nil, err
				}
				r.DurationMs = d.Milliseconds()
			}
			m.plan = &plan{kit: m.kit, asked: r}
			return m.plan.load(), nil
		},
	}
	return nil
}

func (p *plan) load() tea.Cmd {
	r := p.asked
	return p.ask(func(ctx context.Context) tea.Msg {
		told, err := p.Market.Plan(ctx, r)
		return planMsg{r, told, err}
	})
}

func (m *Model) tookPlan(msg planMsg) tea.Cmd {
	p := m.plan
	if p == nil || msg.asked != p.asked {
		return m.check(msg.err)
	}
	if p.err = msg.err; msg.err != nil {
		return m.check(msg.err)
	}
	p.known, p.told, p.choices = true, msg.plan, nil
	for _, c := range []planChoice{{"cheapest", msg.plan.Cheapest}, {"quickest", msg.plan.Quickest}, {"safest", msg.plan.Safest}} {
		if c.Choice != nil {
			p.choices = append(p.choices, c)
		}
	}
	p.grid.to(p.grid.at, len(p.choices))
	return nil
}

// doPlan carries out what a key asks of the plan.
func (m *Model) doPlan(a act) (tea.Cmd, bool) {
	p := m.plan
	if by, moved := p.grid.step(a, len(p.choices)); moved {
		p.grid.move(by, len(p.choices))
		return nil, true
	}
	switch a {
	case actBack:
		m.plan = nil
	case actPlan:
		return m.askPlan(), true
	case actRent:
		return m.rentChoice(), true
	default:
		return nil, false
	}
	return nil, true
}

// rentChoice opens the form for the choice under the cursor, with the time that was planned.
func (m *Model) rentChoice() tea.Cmd {
	p := m.plan
	if len(p.choices) == 0 {
		m.say("nothing fits the budget: P asks for another one", true)
		return nil
	}
	c := p.choices[p.grid.at]
	m.offers.chosen = c.Offer
	if at, ok := m.offers.shelf.find(c.Offer); ok {
		m.offers.grid.to(at, len(m.offers.shelf.Offers))
		m.offers.choose()
	}
	delete(m.drafts, c.Offer.RigKey)
	cmd := m.rent()
	if m.form != nil {
		job := m.offers.job
		job.DurationMs = c.RunMs
		m.form.suit(job)
	}
	return cmd
}

// render shows the plan.
func (p *plan) render(o *offers, width, height int) []string {
	title := "What " + money(p.budget()) + " buys on " + plural(max(1, p.asked.GPUs), "card", "cards")
	if p.asked.DurationMs > 0 {
		title += " for " + lasting(p.asked.DurationMs)
	}
	out := []string{" " + o.look.strong.on(fit(title, min(span(title), max(1, width-2)), false, o.look.sign.more))}
	para := func(text string) {
		for _, l := range wrap(text, max(1, width-4)) {
			out = append(out, "  "+o.look.faint.on(l))
		}
	}
	if p.asked.Query != "" {
		para("among " + p.asked.Query)
	}
	switch {
	case p.err != nil:
		message, hint := explain(p.err)
		para(message + "; " + hint)
	case !p.known:
		para("Asking" + o.look.sign.more)
	case len(p.choices) == 0:
		out = append(out, p.missed(width)...)
	default:
		para(plural(p.told.Fitting, "offer fits", "offers fit") + " of " + strconv.Itoa(p.told.Matching) + " that match")
		out = append(out, p.ways(o, width, height-len(out))...)
	}
	return block(out, width, height)
}

func (p *plan) budget() view.Money {
	return view.MoneyOf(market.Micro(p.asked.BudgetMicro), p.asked.Currency)
}

// ways shows the choices, with their reasons where there is room.
func (p *plan) ways(o *offers, width, height int) []string {
	var out []string
	more := o.look.sign.more
	for i, c := range p.choices {
		chosen := i == p.grid.at
		mark := "  "
		if chosen {
			mark = o.look.accent.on(o.look.sign.mark) + " "
		}
		v := &c.Offer
		head := fit(c.word, 9, false, more) + " " + model(v.Model) + " on " + rigName(v) + " " + badges(*v)
		price := money(c.Total) + " for " + lasting(c.RunMs) + " "
		room := max(1, width-3-span(price))
		text := fit(clean(head), room, false, more) + " " + price
		if chosen {
			text = o.look.cursor.on(text)
		}
		if height >= 9 {
			out = append(out, "")
		}
		out = append(out, mark+text)
		if height < 9 {
			continue
		}
		reasons := []string{c.Why}
		if c.LastsMs > c.RunMs {
			reasons = append(reasons, "the whole budget would last "+lasting(c.LastsMs))
		}
		if v.Why != nil && !strings.Contains(c.Why, v.Why.Worst.Text) {
			reasons = append(reasons, v.Why.Worst.Text)
		}
		for _, l := range wrap(strings.Join(reasons, "; "), max(1, width-14)) {
			out = append(out, strings.Repeat(" ", 12)+o.look.faint.on(l))
		}
	}
	return out
}

// missed says what stands in the way where nothing fits.
func (p *plan) missed(width int) []string {
	var out []string
	put := func(c paint, text string) {
		for _, l := range wrap(text, max(1, width-4)) {
			out = append(out, "  "+c.on(l))
		}
	}
	out = append(out, "")
	put(p.look.warn, "Nothing fits the budget.")
	n := p.told.Nearest
	if n == nil {
		return out
	}
	text := n.Why
	if n.Offer != nil {
		text = "Nearest: " + model(n.Offer.Model) + " on " + rigName(n.Offer) + ": " + n.Why
	}
	put(paint{}, text)
	if n.Funnel != nil && n.Funnel.Nearest != "" {
		put(p.look.faint, "Nearest: "+n.Funnel.Nearest)
	}
	return out
}
