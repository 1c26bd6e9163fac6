package tui

import (
	"context"

	tea "charm.land/bubbletea/v2"
)

// Model is the whole screen program as Bubble Tea runs it. It is made by New and used by one goroutine, Bubble Tea's or a
// test's.
type Model struct {
	*kit
	link     link
	width    int
	height   int
	page     scope // inOffers, inLeases, inReceipts, inPeers or inMoney
	offers   offers
	leases   leases
	receipts receipts
	peers    peers
	ledger   ledger
	alerts   alerts
	form     *form            // over the market's page
	facets   *facets          // over the market's page: what can be chosen instead
	plan     *plan            // over the market's page: what a budget buys
	drafts   map[string]*form // by rig: what was typed into a form and not sent
	payment  *payment         // over a page: what a person must pay
	prompt   *prompt          // over a page
	dialog   *dialog          // over everything
	help     *help
	notice   notice
	crash    *crash
}

// notice is what happened last. It stays until a key is pressed.
type notice struct {
	text string
	bad  bool
}

// New makes the program. Nothing is asked before Init's command runs. c's Market and Demux must be set; ctx bounds what is
// asked.
func New(ctx context.Context, c Config) *Model { return newModel(ctx, func() {}, c) }

func newModel(ctx context.Context, stop context.CancelFunc, c Config) *Model {
	k := &kit{Config: c.filled(), look: newTheme(c.NoColor, c.ASCII), ctx: ctx, stop: stop}
	return &Model{
		kit: k, link: link{kit: k}, offers: newOffers(k), leases: newLeases(k), receipts: receipts{kit: k}, peers: peers{kit: k},
		ledger: ledger{kit: k}, alerts: alerts{seen: map[string]bool{}},
		drafts: map[string]*form{},
	}
}

// Init asks for the agent, and starts it where none answers.
func (m *Model) Init() tea.Cmd { return m.link.connect(true) }

// Update takes one message. It never waits: what takes time is in the command that it returns.
func (m *Model) Update(msg tea.Msg) (_ tea.Model, cmd tea.Cmd) {
	defer m.rescue(&cmd)
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		cmd = m.press(msg)
	case tea.PasteMsg:
		cmd = m.typed(msg)
	case statusMsg:
		cmd = m.tookStatus(msg)
	case changesMsg:
		cmd = m.tookChanges(msg)
	case retryMsg:
		if msg.epoch == m.link.epoch {
			cmd = m.link.probe(false)
		}
	case pollMsg:
		cmd = m.poll(msg)
	case offersMsg:
		cmd = m.tookOffers(msg)
	case offerMsg:
		cmd = m.tookOffer(msg)
	case lookMsg:
		cmd = m.tookLook(msg)
	case leasesMsg:
		cmd = m.tookLeases(msg)
	case bidMsg:
		cmd = m.tookBid(msg)
	case stopMsg:
		cmd = m.tookStop(msg)
	case secondMsg:
		cmd = m.tookSecond(msg)
	case followMsg:
		cmd = m.leases.tail.begin(msg.turn)
	case logMsg:
		cmd = m.leases.tail.take(msg)
	case receiptsMsg:
		cmd = m.tookReceipts(msg)
	case exportMsg:
		cmd = m.tookExport(msg)
	case peersMsg:
		m.peers.take(msg)
		cmd = m.check(msg.err)
	case armMsg:
		if m.dialog == msg.dialog && m.dialog != nil {
			m.dialog.armed = true
		}
	case crashMsg:
		m.crash = &crash{value: msg.value, stack: msg.stack, where: "a command"}
		cmd = tea.Quit
	default:
		cmd = m.tookInside(msg)
	}
	return m, cmd
}

// scope is where the user is.
func (m *Model) scope() scope {
	switch {
	case m.dialog != nil:
		return inDialog
	case m.help != nil:
		return inHelp
	case m.prompt != nil:
		return inPrompt
	case m.payment != nil:
		return inPay
	case m.form != nil:
		return inForm
	case m.facets != nil:
		return inFacets
	case m.plan != nil:
		return inPlan
	case m.link.state == linkAway && !m.anything():
		return inAway
	case m.page == inOffers && m.offers.filter.editing:
		return inFilter
	case m.page == inOffers && m.offers.whole:
		return inDetail
	case m.page == inLeases && m.leases.whole:
		return inLog
	case m.page == inMoney && m.ledger.whole:
		return inAccount
	}
	return m.page
}
