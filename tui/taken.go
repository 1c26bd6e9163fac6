package tui

import (
	"strconv"

	tea "charm.land/bubbletea/v2"

	"haggle/market"
)

// check looks whether an error means that the agent is gone, and then looks for it.
func (m *Model) check(err error) tea.Cmd {
	if !away(err) || m.link.state != linkUp || m.ctx.Err() != nil {
		return nil
	}
	return m.link.lost(err)
}

// tookStatus learns whether the agent answers.
func (m *Model) tookStatus(msg statusMsg) tea.Cmd {
	if msg.epoch != m.link.epoch {
		return nil
	}
	if away(msg.err) {
		return m.link.lost(msg.err)
	}
	if msg.err != nil { // it answers, though not this
		msg.status = m.link.status
	}
	news := m.link.up(msg.status)
	m.alerts.take(m.link.status.Alerts, m.leases.list)
	if !news {
		return nil
	}
	m.offers.asking, m.receipts.asking, m.peers.asking, m.ledger.asking = false, false, false, false
	m.leases.tail.forget()
	return tea.Batch(m.link.watch(), m.link.poll(true), m.offers.load(m.link.epoch), m.leases.load(m.link.epoch), m.entered())
}

// tookChanges shows what changed and listens on.
func (m *Model) tookChanges(msg changesMsg) tea.Cmd {
	if msg.epoch != m.link.epoch {
		return nil
	}
	for _, l := range msg.leases {
		m.leases.change(l)
	}
	m.alerts.take(m.link.status.Alerts, m.leases.list)
	m.renewPayment()
	if msg.closed {
		return m.link.lost(errGone)
	}
	return tea.Batch(m.link.next(msg), m.seen())
}

// seen asks for what the page shows beside the list of leases: the log, the clocks, the receipts.
func (m *Model) seen() tea.Cmd {
	visible := m.page == inLeases
	cmds := []tea.Cmd{m.leases.follow(visible), m.leases.tick(visible)}
	if m.page == inReceipts {
		if l, ok := m.receipts.neighbour(m.leases.list, 0); ok {
			cmds = append(cmds, m.receipts.turn(l))
		}
	}
	return tea.Batch(cmds...)
}

// entered asks for what a page needs when it is opened.
func (m *Model) entered() tea.Cmd {
	if m.link.state != linkUp {
		return nil
	}
	switch m.page {
	case inOffers:
		return tea.Batch(m.offers.load(m.link.epoch), m.seen())
	case inReceipts:
		return tea.Batch(m.receipts.load(), m.seen())
	case inPeers:
		return tea.Batch(m.peers.load(), m.link.probe(false))
	case inMoney:
		return tea.Batch(m.ledger.load(), m.seen())
	}
	return m.seen()
}

// poll looks at what no stream tells: the status, and what the page shows.
func (m *Model) poll(msg pollMsg) tea.Cmd {
	if msg.epoch != m.link.epoch || m.link.state != linkUp {
		return nil
	}
	cmds := []tea.Cmd{m.link.probe(false)}
	soon := false
	switch m.page {
	case inOffers:
		soon = m.offers.shelf.Known == 0 || m.offers.shelf.Reason != "" || m.offers.shelf.Reading
		cmds = append(cmds, m.offers.load(m.link.epoch))
		if m.facets != nil {
			cmds = append(cmds, m.facets.load(&m.offers))
		}
	case inPeers:
		cmds = append(cmds, m.peers.load())
	case inMoney:
		cmds = append(cmds, m.ledger.load())
	}
	return tea.Batch(append(cmds, m.link.poll(soon))...)
}

func (m *Model) tookOffers(msg offersMsg) tea.Cmd {
	if msg.epoch != m.link.epoch {
		return nil
	}
	m.offers.take(msg)
	if cmd := m.check(msg.err); cmd != nil {
		return cmd
	}
	if m.offers.pending || msg.asked != m.offers.want() {
		return m.offers.load(m.link.epoch)
	}
	m.renewForm()
	return m.offers.inspect()
}

func (m *Model) tookOffer(msg offerMsg) tea.Cmd {
	again, renewed := m.offers.learn(msg)
	if cmd := m.check(msg.err); cmd != nil {
		return cmd
	}
	m.renewForm()
	switch {
	case again:
		return m.offers.inspect()
	case renewed: // the rig told another offer than the list shows
		return m.offers.load(m.link.epoch)
	}
	return nil
}

// tookLook asks the rig of a row on which the user stayed.
func (m *Model) tookLook(msg lookMsg) tea.Cmd {
	if m.link.state != linkUp || msg.hash != m.offers.chosen.Hash {
		return nil
	}
	return m.offers.inspect()
}

// renewForm shows the form's offer as it is now. A dialog that names another price than the form does is taken back.
func (m *Model) renewForm() {
	if m.form == nil || m.offers.chosen.RigKey != m.form.offer.RigKey {
		return
	}
	before, _, _ := m.form.order()
	m.form.renew(m.offers.about(), m.link.status.Methods)
	after, _, err := m.form.order()
	if m.dialog != nil && (err != nil || after.bill.Total != before.bill.Total || after.budget != before.budget) {
		m.dialog = nil
		m.say("the rig changed its offer; look at the price again", true)
	}
}

func (m *Model) tookLeases(msg leasesMsg) tea.Cmd {
	if msg.epoch != m.link.epoch {
		return nil
	}
	m.leases.take(msg)
	m.alerts.take(m.link.status.Alerts, m.leases.list)
	m.renewPayment()
	if cmd := m.check(msg.err); cmd != nil {
		return cmd
	}
	return m.seen()
}

// tookBid shows the new lease, or why there is none.
func (m *Model) tookBid(msg bidMsg) tea.Cmd {
	m.leases.bidding--
	if msg.err != nil {
		m.fault(msg.err)
		return tea.Batch(m.check(msg.err), m.leases.load(m.link.epoch))
	}
	m.leases.change(msg.lease)
	m.leases.pick(msg.lease.Bid)
	m.say("lease "+short(msg.lease.ID)+" is signed by both; the budget is "+money(msg.lease.Budget), false)
	return m.seen()
}

func (m *Model) tookStop(msg stopMsg) tea.Cmd {
	if msg.err != nil {
		m.fault(msg.err)
		return m.check(msg.err)
	}
	m.leases.change(msg.lease)
	m.say("lease "+short(msg.lease.ID)+" is told to stop", false)
	return m.seen()
}

// tookSecond lets the clocks of the leases go on.
func (m *Model) tookSecond(msg secondMsg) tea.Cmd {
	if msg.turn != m.leases.turn {
		return nil
	}
	m.leases.ticking = false
	return m.leases.tick(m.page == inLeases)
}

func (m *Model) tookReceipts(msg receiptsMsg) tea.Cmd {
	again := m.receipts.take(msg)
	if cmd := m.check(msg.err); cmd != nil {
		return cmd
	}
	if again {
		return m.receipts.load()
	}
	return nil
}

func (m *Model) tookExport(msg exportMsg) tea.Cmd {
	if msg.err != nil {
		m.fault(msg.err)
		return m.check(msg.err)
	}
	text := "wrote " + msg.path + ", " + strconv.Itoa(msg.bytes) + " bytes"
	if msg.judged {
		text += "; `haggle verify` checks it"
	}
	m.say(text, false)
	return nil
}

// say shows what happened until the next key.
func (m *Model) say(text string, bad bool) { m.notice = notice{clean(text), bad} }

// fault shows an error until the next key.
func (m *Model) fault(err error) {
	message, hint := explain(err)
	if hint != "" {
		message += "; " + hint
	}
	m.say(message, true)
}

// errGone: the stream of changes ended.
var errGone = market.NewError(market.CodeUnreachable, "peer", "the agent")
