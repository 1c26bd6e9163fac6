package tui

import tea "charm.land/bubbletea/v2"

// press carries out what a key asks for where the user is. In a text, a key without a meaning is typed.
func (m *Model) press(k tea.KeyPressMsg) tea.Cmd {
	s := m.scope()
	a := meaning(s, k.String())
	if m.dialog != nil && !m.dialog.armed && a != actQuit {
		return nil // meant for what was there before the dialog
	}
	m.notice = notice{}
	m.looked()
	if a == actNone {
		return m.typed(k)
	}
	cmd, _ := m.do(s, a)
	return cmd
}

// typed takes text where there is one to type into.
func (m *Model) typed(msg tea.Msg) tea.Cmd {
	switch m.scope() {
	case inFilter:
		if m.offers.filter.typed(msg) {
			return m.offers.load(m.link.epoch)
		}
	case inForm:
		m.form.typed(msg)
	case inPrompt:
		m.prompt.typed(msg)
	}
	return nil
}

// do carries out an act. It reports whether the scope knows it, so that a test can hold footers to their word.
func (m *Model) do(s scope, a act) (cmd tea.Cmd, handled bool) {
	switch a {
	case actQuit:
		return tea.Quit, true
	case actHelp:
		m.help = &help{of: m.scope()}
		return nil, true
	case actRefresh:
		return m.refresh(), true
	case actOffers, actLeases, actReceipts, actPeers, actMoney:
		return m.turn(inOffers + scope(a-actOffers)), true
	case actCopy:
		return m.copy(s), true
	}
	switch s {
	case inDialog:
		return m.answer(a)
	case inHelp:
		if a == actBack {
			m.help = nil
			return nil, true
		}
		return nil, m.help.do(a)
	case inForm:
		return m.doForm(a)
	case inPrompt:
		return m.doPrompt(a)
	case inPay:
		return nil, m.doPayment(a)
	case inFilter:
		return m.doFilter(a)
	case inOffers, inDetail:
		return m.doOffers(a)
	case inLeases, inLog:
		return m.doLeases(a)
	case inReceipts:
		return m.doReceipts(a)
	case inFacets:
		return m.doFacets(a)
	case inPlan:
		return m.doPlan(a)
	case inPeers:
		if a == actPing {
			return m.ping(), true
		}
		return nil, m.peers.do(a)
	case inMoney, inAccount:
		return m.doMoney(a)
	}
	return nil, false
}

// turn goes to a page.
func (m *Model) turn(to scope) tea.Cmd {
	m.page = to
	return m.entered()
}

// refresh asks again. Where the agent is gone, it is started.
func (m *Model) refresh() tea.Cmd {
	if m.link.state != linkUp {
		m.link.retry = 0
		return m.link.connect(true)
	}
	return tea.Batch(m.link.probe(false), m.entered(), m.leases.load(m.link.epoch))
}

// answer closes the dialog.
func (m *Model) answer(a act) (tea.Cmd, bool) {
	d := m.dialog
	switch a {
	case actYes:
		m.dialog = nil
		return d.do(), true
	case actNo:
		m.dialog = nil
		return nil, true
	}
	return nil, false
}

func (m *Model) doForm(a act) (tea.Cmd, bool) {
	switch a {
	case actBack:
		m.form = nil
		return nil, true
	case actReview:
		return m.review(), true
	}
	return nil, m.form.do(a)
}

func (m *Model) doFilter(a act) (tea.Cmd, bool) {
	changed := false
	switch a {
	case actApply:
		m.offers.filter.apply()
	case actBack:
		changed = m.offers.filter.undo()
	case actComplete:
		changed = m.offers.filter.complete()
	default:
		return nil, false
	}
	if changed {
		return m.offers.load(m.link.epoch), true
	}
	return nil, true
}

func (m *Model) doOffers(a act) (tea.Cmd, bool) {
	switch a {
	case actRent:
		return m.rent(), true
	case actFacets:
		return m.openFacets(), true
	case actPlan:
		return m.askPlan(), true
	case actJob:
		return m.askJob(), true
	case actGive:
		return m.askName(), true
	case actFilter:
		m.offers.do(a)
		return m.loadSaved(), true
	}
	handled, stale := m.offers.do(a)
	if stale {
		return m.offers.load(m.link.epoch), true
	}
	if m.link.state != linkUp || m.offers.chosen.Hash == "" || m.offers.current() {
		return nil, handled
	}
	return m.after(lookPause, lookMsg{m.offers.chosen.Hash}), handled
}

func (m *Model) doLeases(a act) (tea.Cmd, bool) {
	switch a {
	case actStop:
		return m.askStop(false), true
	case actKill:
		return m.askStop(true), true
	case actPay:
		return m.pay(), true
	case actShell, actOpen, actFiles, actExtend, actKeep, actResume, actRemove:
		return m.doInside(a), true
	case actBills:
		if l, ok := m.leases.current(); ok && l.ID != "" {
			return tea.Batch(m.receipts.turn(l), m.turn(inReceipts)), true
		}
		return m.turn(inReceipts), true
	}
	handled := m.leases.do(a)
	return m.leases.follow(m.link.state == linkUp), handled
}

func (m *Model) doReceipts(a act) (tea.Cmd, bool) {
	switch a {
	case actExport:
		if m.receipts.lease.ID == "" {
			m.say("there is no lease to export", true)
			return nil, true
		}
		if !m.ready() {
			return nil, true
		}
		return m.receipts.export(), true
	case actLeft, actRight:
		by := 1
		if a == actLeft {
			by = -1
		}
		if l, ok := m.receipts.neighbour(m.leases.list, by); ok {
			return m.receipts.turn(l), true
		}
		return nil, true
	}
	return nil, m.receipts.do(a)
}

// copy sends an id to the terminal's clipboard. Whether the terminal takes it cannot be known, so the id is shown too.
func (m *Model) copy(s scope) tea.Cmd {
	id := ""
	switch s {
	case inDetail:
		id = m.offers.chosen.ID
	case inLeases:
		l, _ := m.leases.current()
		id = l.ID
	case inReceipts:
		id = m.receipts.lease.ID
	case inPeers:
		id = m.peers.chosen
	case inMoney, inAccount:
		e, _ := m.ledger.current()
		id = e.Owner
	case inPay:
		id = m.payment.payload()
	}
	if id = clean(id); id == "" {
		m.say("there is nothing to copy", true)
		return nil
	}
	m.say("sent to the terminal's clipboard: "+id, false)
	return tea.SetClipboard(id)
}
