package tui

import (
	"context"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	tea "charm.land/bubbletea/v2"

	"haggle/internal/view"
)

// sheet is one account in full.
type sheet struct {
	grid
	of      string // account
	invoice view.Invoice
	rows    []invoiceRow
	known   bool
	err     error
}

// invoiceRow is a price line of a lease, or a payment.
type invoiceRow struct {
	lease, what, quantity, rate, amount, note string
	day                                       int64 // Unix milliseconds
	paid                                      bool
}

// invoiceRows makes the rows of an invoice: what was used, then what was paid.
func invoiceRows(i view.Invoice, e view.LedgerEntry) []invoiceRow {
	debts := map[string]string{}
	for _, l := range e.Leases {
		debts[l.Lease] = l.Debt
	}
	rows := make([]invoiceRow, 0, len(i.Lines)+len(i.Payments))
	for _, l := range i.Lines {
		note := debts[l.Lease]
		if l.Receipt > 0 {
			note = strings.TrimSuffix("receipt "+strconv.FormatUint(uint64(l.Receipt), 10)+", "+note, ", ")
		}
		rows = append(rows, invoiceRow{lease: short(l.Lease), what: l.What, quantity: l.Quantity, rate: l.Rate.Text, amount: l.Amount.Text, note: note, day: l.Begun})
	}
	for _, p := range i.Payments {
		rows = append(rows, invoiceRow{
			lease: short(p.Lease), what: "paid by " + p.Method, amount: "-" + p.Amount.Text, note: p.Reference, day: p.At, paid: true,
		})
	}
	return rows
}

// fill shows an invoice. One of another account is too late.
func (l *ledger) fill(m invoiceMsg) {
	if m.account != l.sheet.of {
		return
	}
	if l.sheet.err = m.err; m.err == nil {
		l.sheet.invoice, l.sheet.rows, l.sheet.known = m.invoice, m.rows, true
	}
}

// more says of the chosen account what has no column.
func (l *ledger) more(width int) []string {
	e, ok := l.current()
	if !ok {
		return nil
	}
	parts := []string{plural(len(e.Leases), "lease", "leases")}
	if e.Credit.Most.Micro > 0 || e.Credit.Unlimited {
		parts = append(parts, "open leases may owe "+moneyLimit(e.Credit))
	}
	for _, n := range []struct {
		m    view.Money
		text string
	}{{e.Unspent, " paid for open leases and not used"}, {e.Guaranteed, " guaranteed by others"}} {
		if n.m.Micro > 0 {
			parts = append(parts, money(n.m)+n.text)
		}
	}
	if e.OldestMs > 0 && e.Owed.Micro > 0 {
		parts = append(parts, "owed since "+l.day(e.OldestMs))
	}
	return []string{
		l.look.faint.on(strings.Repeat(l.look.sign.rule, width+2)),
		" " + fit(l.owner(&e, 24)+": "+strings.Join(parts, "; "), width, false, l.look.sign.more),
		" " + l.look.faint.on(fit("key "+e.Owner, width, false, l.look.sign.more)),
	}
}

// day writes the date of a wall time for the person at this machine.
func (l *ledger) day(ms int64) string {
	if ms <= 0 {
		return ""
	}
	return time.UnixMilli(ms).In(l.Clock().Location()).Format(time.DateOnly)
}

// account shows the chosen account: its sums, then every price line and payment.
func (l *ledger) account(width, height int) []string {
	e, _ := l.current()
	s, look := &l.sheet, l.look
	out := []string{line(" account with "+look.strong.on(l.owner(&e, 40))+", "+clean(e.Currency), width)}
	switch {
	case s.err != nil:
		message, hint := explain(s.err)
		return append(out, block(indent(wrap(look.sign.bad+" "+message+"; "+hint, width-4)), width, height-1)...)
	case !s.known:
		return append(out, block(indent([]string{look.faint.on("Asking for the account" + look.sign.more)}), width, height-1)...)
	}
	i := s.invoice
	sum := "signed " + i.Total.Text + ", paid " + i.Paid.Text + ", "
	if i.Balance.Micro > 0 {
		sum += "balance " + money(i.Balance)
	} else {
		sum += "due " + money(i.Due)
	}
	out = append(out, line(" "+look.strong.on(clean(sum)), width))
	if len(s.rows) == 0 {
		return append(out, block(indent(wrap("No receipt and no payment is signed yet.", width-4)), width, height-len(out))...)
	}
	return append(out, show(&s.grid, look, l.sheetColumns(), len(s.rows), func(i int) *invoiceRow { return &s.rows[i] }, width, height-len(out))...)
}

func (l *ledger) sheetColumns() []column[*invoiceRow] {
	color := func(v *invoiceRow) paint {
		if v.paid {
			return l.look.good
		}
		return paint{}
	}
	return []column[*invoiceRow]{
		{title: "LEASE", width: 8, cell: func(v *invoiceRow) string { return v.lease }},
		{title: "DAY", rank: 3, width: 10, cell: func(v *invoiceRow) string { return l.day(v.day) }},
		{title: "WHAT", width: 12, grow: 8, cell: func(v *invoiceRow) string { return v.what }, paint: color},
		{title: "QUANTITY", rank: 2, width: 16, grow: 8, right: true, cell: func(v *invoiceRow) string { return v.quantity }},
		{title: "RATE", rank: 4, width: 8, right: true, cell: func(v *invoiceRow) string { return v.rate }},
		{title: "AMOUNT", width: 10, right: true, cell: func(v *invoiceRow) string { return v.amount }, paint: color},
		{title: "NOTE", rank: 1, width: 10, grow: 40, cell: func(v *invoiceRow) string { return v.note }},
	}
}

// export writes the invoice of an account, as it is now, into a file.
func (l *ledger) export(e view.LedgerEntry) tea.Cmd {
	folder, zone := l.Exports, l.Clock().Location()
	return l.ask(func(ctx context.Context) tea.Msg {
		i, err := l.Market.Invoice(ctx, e.Owner, e.Currency)
		if err != nil {
			return exportMsg{err: err}
		}
		return export(folder, "invoice-"+tame(e.Owner[max(0, len(e.Owner)-8):])+"-"+tame(e.Currency)+".txt", []byte(invoiceText(i, e, zone)))
	})
}

// tame keeps of a foreign text what a file's name may hold.
func tame(s string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' && r < 'A' || r > 'Z' && r < 'a' || r > 'z' {
			return -1
		}
		return r
	}, s)
}

// invoiceText writes an invoice as a text that a person reads.
func invoiceText(i view.Invoice, e view.LedgerEntry, zone *time.Location) string {
	var b strings.Builder
	day := func(ms int64) string { return time.UnixMilli(ms).In(zone).Format(time.DateOnly) }
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0) // a strings.Builder takes all
	row := func(cells ...string) {
		for n, c := range cells {
			cells[n] = clean(c)
		}
		_, _ = w.Write([]byte(strings.Join(cells, "\t") + "\n"))
	}
	row("invoice", time.UnixMilli(i.At).In(zone).Format(time.DateTime))
	row("payee", strings.TrimSpace(i.Payee+" "+e.Name))
	row("payer", i.Payer)
	row("currency", i.Currency)
	row("")
	row("LEASE", "BEGUN", "WHAT", "QUANTITY", "RATE", "AMOUNT", "RECEIPT")
	for _, l := range i.Lines {
		receipt := ""
		if l.Receipt > 0 {
			receipt = strconv.FormatUint(uint64(l.Receipt), 10)
		}
		row(short(l.Lease), day(l.Begun), l.What, l.Quantity, l.Rate.Text, l.Amount.Text, receipt)
	}
	if len(i.Payments) > 0 {
		row("")
		row("LEASE", "PAID", "METHOD", "AMOUNT", "REFERENCE")
	}
	for _, p := range i.Payments {
		row(short(p.Lease), day(p.At), p.Method, p.Amount.Text, p.Reference)
	}
	row("")
	row("total", money(i.Total))
	row("paid", money(i.Paid))
	row("due", money(i.Due))
	if i.Balance.Micro > 0 {
		row("balance", money(i.Balance))
	}
	_ = w.Flush() // into memory
	var text strings.Builder
	for l := range strings.Lines(b.String()) {
		text.WriteString(strings.TrimRight(l, " \n") + "\n")
	}
	return text.String()
}
