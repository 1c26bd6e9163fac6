package tui

import (
	"context"
	"strconv"

	tea "charm.land/bubbletea/v2"

	"haggle/internal/view"
)

type (
	// ledgerMsg answers a question for the accounts and the budgets.
	ledgerMsg struct {
		ledger  view.Ledger
		budgets []view.Budget
		err     error
	}
	// invoiceMsg answers a question for one account.
	invoiceMsg struct {
		account string
		invoice view.Invoice
		rows    []invoiceRow
		err     error
	}
)

// ledger is the page of money: the accounts with other owners, what may be spent, and one account in full.
type ledger struct {
	*kit
	grid
	entries []view.LedgerEntry
	budgets []view.Budget
	chosen  string // account
	known   bool
	err     error
	asking  bool
	whole   bool // one account takes the page
	sheet   sheet
}

// account names one owner in one currency.
func account(e view.LedgerEntry) string { return e.Owner + "/" + e.Currency }

// load asks for the accounts, and for the one that is shown. One question is under way at a time.
func (l *ledger) load() tea.Cmd {
	if l.asking {
		return nil
	}
	l.asking = true
	ask := l.ask(func(ctx context.Context) tea.Msg {
		var m ledgerMsg
		if m.ledger, m.err = l.Market.Ledger(ctx); m.err == nil {
			m.budgets, m.err = l.Market.Budgets(ctx)
		}
		return m
	})
	if l.whole {
		return tea.Batch(ask, l.bill())
	}
	return ask
}

// bill asks for the invoice of the chosen account.
func (l *ledger) bill() tea.Cmd {
	e, ok := l.current()
	if !ok {
		return nil
	}
	return l.ask(func(ctx context.Context) tea.Msg {
		i, err := l.Market.Invoice(ctx, e.Owner, e.Currency)
		return invoiceMsg{account(e), i, invoiceRows(i, e), err}
	})
}

func (l *ledger) take(m ledgerMsg) {
	l.asking = false
	if l.err = m.err; m.err != nil {
		return
	}
	l.entries, l.budgets, l.known = m.ledger.Entries, m.budgets, true
	for i, e := range l.entries {
		if account(e) == l.chosen {
			l.grid.to(i, len(l.entries))
		}
	}
	l.choose()
}

func (l *ledger) choose() {
	l.grid.to(l.grid.at, len(l.entries))
	before := l.chosen
	l.chosen = ""
	if e, ok := l.current(); ok {
		l.chosen = account(e)
	}
	if l.chosen != before {
		l.whole = false // the account that was shown is gone
	}
}

// current returns the chosen account.
func (l *ledger) current() (view.LedgerEntry, bool) {
	if len(l.entries) == 0 {
		return view.LedgerEntry{}, false
	}
	return l.entries[l.grid.at], true
}

// doMoney carries out what a key asks for on the page of money.
func (m *Model) doMoney(a act) (tea.Cmd, bool) {
	l := &m.ledger
	e, ok := l.current()
	switch {
	case a == actExport && !ok:
		m.say("there is no account to write an invoice of", true)
	case a == actExport:
		if m.ready() {
			return l.export(e), true
		}
	case l.whole && a == actBack:
		l.whole = false
	case l.whole:
		by, moved := l.sheet.grid.step(a, len(l.sheet.rows))
		if moved {
			l.sheet.grid.move(by, len(l.sheet.rows))
		}
		return nil, moved
	case a == actAccount && !ok:
		m.say("there is no account yet", true)
	case a == actAccount:
		l.whole, l.sheet = true, sheet{of: account(e)}
		return l.bill(), true
	default:
		by, moved := l.grid.step(a, len(l.entries))
		if moved {
			l.grid.move(by, len(l.entries))
			l.choose()
		}
		return nil, moved
	}
	return nil, true
}

// tookMoney takes what questions about money have come to.
func (m *Model) tookMoney(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case ledgerMsg:
		m.ledger.take(msg)
		return m.check(msg.err)
	case invoiceMsg:
		m.ledger.fill(msg)
		return m.check(msg.err)
	case payMsg:
		return m.tookPay(msg)
	}
	return nil
}

// render shows the page: what may be spent, and the accounts.
func (l *ledger) render(width, height int) []string {
	if l.whole {
		return l.account(width, height)
	}
	note := func(p paint, text string) []string {
		var lines []string
		for _, t := range wrap(text, width-4) {
			lines = append(lines, p.on(t))
		}
		return lines
	}
	switch {
	case l.err != nil && !l.known:
		message, hint := explain(l.err)
		return block(indent(append(note(l.look.bad, l.look.sign.bad+" "+message), note(l.look.faint, hint)...)), width, height)
	case !l.known:
		return block(indent(note(l.look.faint, "Asking for the accounts"+l.look.sign.more)), width, height)
	}
	out := l.spending(width, height)
	if len(l.entries) == 0 {
		text := append(note(l.look.strong, "Nobody owes anybody anything."), "")
		text = append(text, note(l.look.faint, "An account begins with the first lease: 1 shows the market.")...)
		return append(out, block(indent(text), width, height-len(out))...)
	}
	foot := 0
	if height >= 16 {
		foot = 3
	}
	out = append(out, show(&l.grid, l.look, l.columns(), len(l.entries), func(i int) *view.LedgerEntry { return &l.entries[i] }, width, height-len(out)-foot)...)
	if foot > 0 {
		out = append(out, block(l.more(width-2), width, foot)...)
	}
	return out
}

// mostBudgets bounds the lines above the accounts.
const mostBudgets = 3

// spending shows the budgets over all leases, and of their alerts the newest.
func (l *ledger) spending(width, height int) []string {
	var out []string
	if len(l.budgets) == 0 && height >= 16 {
		out = append(out, line(" "+l.look.faint.on(fit("no budget over all leases; `haggle budget --day 5.00 --month 60` sets one", width-2, false, l.look.sign.more)), width))
	}
	for i, b := range l.budgets[:min(len(l.budgets), mostBudgets)] {
		if height < 10 && i > 0 {
			break
		}
		text := " " + l.look.strong.on(fit(b.Currency, 4, false, l.look.sign.more)) + " today " + l.limit(b.SpentDay, b.Day, width) +
			"   month " + l.limit(b.SpentMonth, b.Month, width)
		out = append(out, line(text, width))
		if n := len(b.Alerts); n > 0 && height >= 12 {
			out = append(out, l.look.warn.on(fit("   "+l.look.sign.warn+" "+b.Alerts[n-1].Text, width, false, l.look.sign.more)))
		}
	}
	if height >= 16 {
		out = append(out, line("", width))
	}
	return out
}

// limit shows how much of a budget is spent.
func (l *ledger) limit(spent view.Money, most *view.Money, width int) string {
	if most == nil {
		return clean(spent.Text) + ", no limit"
	}
	permille := int64(1000)
	if most.Micro > 0 {
		permille = min(1000, int64(float64(spent.Micro)/float64(most.Micro)*1000))
	}
	share := strconv.FormatInt(permille/10, 10) + " %"
	text := clean(spent.Text) + " of " + clean(most.Text)
	if width >= 100 {
		text += " " + l.look.gauge(permille)
	}
	if permille >= 800 {
		return text + " " + l.look.warn.on(l.look.sign.warn+" "+share)
	}
	return text + " " + share
}

func (l *ledger) columns() []column[*view.LedgerEntry] {
	amount := func(title string, rank, width int, of func(*view.LedgerEntry) view.Money) column[*view.LedgerEntry] {
		return column[*view.LedgerEntry]{title: title, rank: rank, width: width, grow: 3, right: true, cell: func(v *view.LedgerEntry) string { return of(v).Text }}
	}
	aged := func(title string, i int) column[*view.LedgerEntry] {
		return amount(title, 8, 9, func(v *view.LedgerEntry) view.Money {
			if i < len(v.Ageing) {
				return v.Ageing[i]
			}
			return view.Money{Text: "?"}
		})
	}
	owed := amount("OWED", 0, 9, func(v *view.LedgerEntry) view.Money { return v.Owed })
	owed.paint = func(v *view.LedgerEntry) paint {
		if v.Owed.Micro > 0 {
			return l.look.warn
		}
		return paint{}
	}
	disputed := amount("DISPUTED", 6, 9, func(v *view.LedgerEntry) view.Money { return v.Disputed })
	disputed.paint = func(v *view.LedgerEntry) paint {
		if v.Disputed.Micro > 0 {
			return l.look.bad
		}
		return paint{}
	}
	return []column[*view.LedgerEntry]{
		{title: "OWNER", width: 12, grow: 12, cell: func(v *view.LedgerEntry) string { return l.owner(v, 16) }},
		{title: "CUR", width: 4, cell: func(v *view.LedgerEntry) string { return v.Currency }},
		owed,
		amount("BALANCE", 1, 9, func(v *view.LedgerEntry) view.Money { return v.Balance }),
		amount("PAID", 2, 9, func(v *view.LedgerEntry) view.Money { return v.Paid }),
		amount("SIGNED", 3, 9, func(v *view.LedgerEntry) view.Money { return v.Signed }),
		amount("USED", 5, 9, func(v *view.LedgerEntry) view.Money { return v.Used }),
		disputed,
		{title: "LEASES", rank: 4, width: 6, right: true, cell: func(v *view.LedgerEntry) string { return strconv.Itoa(len(v.Leases)) }},
		aged("OWED <7D", 0), aged("<30D", 1), aged("<90D", 2), aged("OLDER", 3),
	}
}

// owner names the other side of an account: as the user calls it, or by the ends of its key.
func (l *ledger) owner(v *view.LedgerEntry, width int) string {
	if v.Name != "" {
		return clean(v.Name)
	}
	return middle(v.Owner, width, l.look.sign.more)
}
