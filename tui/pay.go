package tui

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"haggle/internal/view"
	"haggle/market"
)

// payMsg is the outcome of a payment.
type payMsg struct {
	lease view.Lease
	err   error
}

// pay lets the user pay for the chosen lease: what its rig waits for, or what is owed, or ahead.
func (m *Model) pay() tea.Cmd {
	l, ok := m.leases.current()
	switch {
	case !ok || l.ID == "" || l.State == stateRefused:
		m.say("there is no lease here to pay for", true)
		return nil
	case l.Serves != "":
		m.say("this agent is only a deputy here: it pays by itself, within its cap", true)
		return nil
	}
	if l.Pay != nil && l.Pay.Asked != nil {
		return m.payAsked(l)
	}
	switch {
	case !open(l) && owing(l) == 0:
		m.say("nothing is owed for this lease", false)
		return nil
	case !m.ready():
		return nil
	case len(m.link.status.Methods) == 0:
		m.say("this machine has no payment program; `haggle status` lists the ways in which it can pay", true)
		return nil
	case len(m.payMethods(l)) == 0:
		m.say("the rig takes no payment program that this machine has: settle it with the rig's owner", true)
		return nil
	}
	m.prompt = m.payPrompt(l)
	return nil
}

// payAsked shows what a person must do for a slice, or has it tried again.
func (m *Model) payAsked(l view.Lease) tea.Cmd {
	a := l.Pay.Asked
	switch a.State {
	case view.SliceWaiting:
		m.payment = newPayment(l, m.look)
		return nil
	case view.SliceHeld, view.SliceFailed:
		if !m.ready() {
			return nil
		}
		lines := []string{
			"lease " + called(&l) + " on " + l.Rig, "The rig asks for " + money(a.Amount) + ". It was not paid: " + orReason(a.Why) + ".",
			"It is paid now if nothing stands against it any more.",
		}
		return m.open(&dialog{title: "Try to pay again?", yes: "pay", lines: lines, do: func() tea.Cmd { return m.leases.pay(l.ID, view.PayRequest{}) }})
	}
	m.say(money(a.Amount)+" is on its way; nothing is to be done", false)
	return nil
}

// payMethods are the ways in which this machine can pay for a lease: the lease's own first. What its rig takes is known while its
// offer is.
func (m *Model) payMethods(l view.Lease) []string {
	mine := m.link.status.Methods
	if at, known := m.offers.shelf.byRig[l.RigKey]; known {
		takes := m.offers.shelf.Offers[at].Pays
		mine = slices.DeleteFunc(slices.Clone(mine), func(name string) bool {
			return !slices.ContainsFunc(takes, func(p market.PayMethod) bool { return p.Name == name })
		})
	}
	if l.Pay == nil || !slices.Contains(mine, l.Pay.Method) {
		return mine
	}
	own := l.Pay.Method
	return append([]string{own}, slices.DeleteFunc(slices.Clone(mine), func(name string) bool { return name == own })...)
}

// payPrompt asks how much is paid, and how.
func (m *Model) payPrompt(l view.Lease) *prompt {
	owed, unit := owing(l), " "+l.Spent.Currency
	state := "Nothing is owed now. What is paid ahead and not used stays yours, with this rig's owner."
	if owed > 0 {
		state = "Owed now: " + owed.String() + unit + "."
	}
	return &prompt{
		title: "Pay for lease " + called(&l),
		fields: []field{
			choiceField("Way", m.payMethods(l), 0, "the payment programs of this machine"),
			textField("Amount", "", "how much; empty is all that is owed"),
		},
		quote: func(*prompt) []string { return []string{state} },
		do: func(p *prompt) (tea.Cmd, error) {
			amount := market.Micro(0)
			if text := p.value(1); text != "" {
				var err error
				if amount, err = market.ParseMicro(text); err != nil {
					return nil, err
				}
			}
			if amount == 0 && owed == 0 {
				return nil, errors.New("nothing is owed; write how much to pay ahead")
			}
			lines := []string{
				cmp.Or(amount, owed).String() + unit + " by " + p.value(0) + ", for lease " + called(&l) + " on " + l.Rig,
				"The payment program sends it at once, or shows you what to do. Only the rig's owner can give it back.",
			}
			r := view.PayRequest{Method: p.value(0), AmountMicro: int64(amount)}
			return m.open(&dialog{title: "Pay?", yes: "pay", lines: lines, do: func() tea.Cmd { return m.leases.pay(l.ID, r) }}), nil
		},
	}
}

// pay makes the command that pays.
func (l *leases) pay(id string, r view.PayRequest) tea.Cmd {
	return l.work(func(ctx context.Context) tea.Msg {
		one, err := l.Market.PayLease(ctx, id, r)
		return payMsg{one, err}
	})
}

func (m *Model) tookPay(msg payMsg) tea.Cmd {
	if msg.err != nil {
		m.fault(msg.err)
		return m.check(msg.err)
	}
	one := msg.lease
	m.leases.change(one)
	text := "the payment for lease " + called(&one) + " has come: paid so far "
	switch p := one.Pay; {
	case p == nil:
		text = "the payment for lease " + called(&one) + " is on its way"
	case p.Asked == nil:
		text += money(p.Paid)
	case p.Asked.State == view.SliceWaiting:
		text = "lease " + called(&one) + " waits for you: p shows how to pay"
		if current, _ := m.leases.current(); m.scope() == inLeases && current.ID == one.ID {
			m.payment = newPayment(one, m.look)
		}
	default:
		text = money(p.Asked.Amount) + " for lease " + called(&one) + " is on its way"
	}
	m.say(text, false)
	return m.seen()
}

// payment shows what a person must do so that a slice is paid: words, and a code to scan.
type payment struct {
	lease  view.Lease
	code   []string // drawn once; empty where there is none
	scroll int
	shown  int
}

func newPayment(l view.Lease, look theme) *payment {
	return &payment{lease: l, code: qrCode(l.Pay.Asked.QR, look)}
}

// payload is what there is to copy.
func (p *payment) payload() string { return cmp.Or(p.lease.Pay.Asked.QR, p.lease.Pay.Asked.Text) }

// renewPayment follows what has become of the slice that is shown.
func (m *Model) renewPayment() {
	if m.payment == nil {
		return
	}
	before := m.payment.lease.Pay.Asked
	at := slices.IndexFunc(m.leases.list, func(l view.Lease) bool { return l.ID == m.payment.lease.ID })
	if at < 0 {
		m.payment = nil
		return
	}
	now := m.leases.list[at]
	if now.Pay != nil && now.Pay.Asked != nil && now.Pay.Asked.Slice == before.Slice && now.Pay.Asked.State == view.SliceWaiting {
		if now.Pay.Asked.QR != before.QR {
			m.payment.code = qrCode(now.Pay.Asked.QR, m.look)
		}
		m.payment.lease = now
		return
	}
	m.payment = nil
	if now.Pay != nil && now.Pay.Asked == nil && open(now) {
		m.say("the rig has signed for it: paid so far "+money(now.Pay.Paid), false)
	}
}

// doPayment carries out what a key asks for.
func (m *Model) doPayment(a act) (handled bool) {
	if a == actBack {
		m.payment = nil
		return true
	}
	g := grid{rows: m.payment.shown}
	by, moved := g.step(a, 0)
	if moved {
		m.payment.scroll = max(0, m.payment.scroll+by)
	}
	return moved
}

// render shows the page: the words, with the code beside or below them. Where the code does not fit, what it holds is written.
func (p *payment) render(k *kit, width, height int) []string {
	look, a := k.look, p.lease.Pay.Asked
	size := 0
	if len(p.code) > 0 {
		size = span(p.code[0])
	}
	beside := size > 0 && len(p.code) <= height && width-size-4 >= 26
	room := width - 2
	if beside {
		room -= size + 2
	}
	lines := p.words(k, room)
	switch {
	case beside:
		lines = block(lines[min(p.scroll, max(0, len(lines)-height)):], room, height)
		for i := range lines {
			if i < len(p.code) {
				lines[i] += "  " + p.code[i]
			}
		}
	case size > 0 && size <= width-2 && len(lines)+1+len(p.code) <= height:
		lines = append(append(lines, ""), p.code...)
	case a.QR != "":
		lines = append(lines, "")
		for _, l := range wrap(a.QR, room) {
			lines = append(lines, look.accent.on(l))
		}
	}
	p.shown = height
	if !beside {
		p.scroll = max(0, min(p.scroll, len(lines)-height))
		lines = lines[p.scroll:]
	}
	for i := range lines {
		lines[i] = " " + lines[i]
	}
	return block(lines, width, height)
}

// words says what to pay, whom, for what, and by when.
func (p *payment) words(k *kit, width int) []string {
	a, look := p.lease.Pay.Asked, k.look
	var out []string
	put := func(color paint, text string) {
		for _, l := range wrap(text, width) {
			out = append(out, color.on(l))
		}
	}
	put(look.strong, "Pay "+money(a.Amount)+" for lease "+called(&p.lease))
	about := "to the owner of " + p.lease.Rig
	if a.ForMs > 0 {
		about += ", for " + lasting(a.ForMs) + " of running time"
	}
	put(paint{}, about)
	if a.Deadline > 0 {
		put(look.warn, look.sign.warn+" the lease ends in "+lasting(a.Deadline-k.Clock().UnixMilli())+" without it")
	}
	out = append(out, "")
	const hyphen = "\ue000" // stands for "-" while lines are broken: a reference that is typed off the screen stays whole
	for _, l := range strings.Split(a.Text, "\n") {
		for _, w := range wrap(strings.ReplaceAll(l, "-", hyphen), width) {
			out = append(out, strings.ReplaceAll(w, hyphen, "-"))
		}
	}
	out = append(out, "")
	put(look.faint, "This page goes when the rig's owner says that the money has come. y copies, esc goes back.")
	return out
}
