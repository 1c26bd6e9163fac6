package cli

import (
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// LedgerHelp says what the columns of a ledger mean.
const LedgerHelp = "Owners and currencies are never added up. USED is what the leases cost so far as the rig says, SIGNED what both signed of it,\n" +
	"PAID what the payee signed for. OWED is used and not paid, BALANCE paid and free for another lease. AGEING is what is owed for\n" +
	"at most 7, 30 and 90 days, and longer, since the lease ended."

// InvoiceFormats are the forms in which ShowInvoice writes.
func InvoiceFormats() []string { return []string{"text", "json", "csv"} }

// Amount writes money with its currency.
func Amount(m view.Money) string {
	if m.Currency == "" {
		return m.Text
	}
	return m.Text + " " + m.Currency
}

// day writes the date of a wall time in milliseconds, for the person at this machine; "" for none.
func day(ms int64) string {
	if ms == 0 {
		return ""
	}
	return time.UnixMilli(ms).Local().Format(time.DateOnly)
}

// ShowLedger writes what owners owe each other, one row for each owner and currency.
func (t Terminal) ShowLedger(l view.Ledger, asJSON bool) error {
	switch {
	case asJSON:
		return t.JSON(l)
	case len(l.Entries) == 0:
		t.Say("no leases yet, so nobody owes anybody anything")
		return nil
	}
	rows := make([][]string, 0, len(l.Entries))
	var notes []string
	for _, e := range l.Entries {
		ageing := make([]string, 0, len(e.Ageing))
		for _, m := range e.Ageing {
			ageing = append(ageing, m.Text)
		}
		rows = append(rows, []string{
			e.Owner, e.Name, e.Currency, e.Used.Text, e.Signed.Text, e.Paid.Text, e.Owed.Text, e.Balance.Text, day(e.OldestMs), strings.Join(ageing, " "),
		})
		notes = append(notes, notesOf(e)...)
	}
	if err := t.Table("OWNER NAME CURRENCY USED SIGNED PAID OWED BALANCE OLDEST AGEING", rows); err != nil {
		return err
	}
	for _, n := range notes {
		t.Say("%s", n)
	}
	return nil
}

// notesOf says what of an account has no column.
func notesOf(e view.LedgerEntry) []string {
	who := "with " + market.Printable(e.Owner)
	if e.Name != "" {
		who = "with " + market.Printable(e.Name)
	}
	var notes []string
	for _, n := range []struct {
		m    view.Money
		text string
	}{
		{e.Unspent, "are paid for open leases and not used yet"},
		{e.Disputed, "are in leases that are disputed"},
		{e.Guaranteed, "are reserved from guarantees"},
	} {
		if n.m.Micro > 0 {
			notes = append(notes, who+", "+Amount(n.m)+" "+n.text)
		}
	}
	return notes
}

// ShowInvoice writes an account as a document, in one of InvoiceFormats.
func (t Terminal) ShowInvoice(i view.Invoice, format string) error {
	switch format {
	case "json":
		return t.JSON(i)
	case "csv":
		return t.invoiceCSV(i)
	case "text":
		return t.invoiceText(i)
	}
	return Usage("--format knows no "+market.Printable(format), "it knows "+strings.Join(InvoiceFormats(), ", "))
}

func (t Terminal) invoiceText(i view.Invoice) error {
	if err := t.Facts("invoice", time.UnixMilli(i.At).Local().Format(time.DateTime), "payee", i.Payee, "payer", i.Payer, "currency", i.Currency); err != nil {
		return err
	}
	t.Show("")
	if len(i.Lines) == 0 {
		t.Show("nothing was billed")
	} else {
		rows := make([][]string, 0, len(i.Lines))
		for _, l := range i.Lines {
			receipt := ""
			if l.Receipt > 0 {
				receipt = "#" + strconv.FormatUint(uint64(l.Receipt), 10)
			}
			rows = append(rows, []string{short(l.Lease), day(l.Begun), l.What, l.Quantity, l.Rate.Text, l.Amount.Text, receipt})
		}
		if err := t.Table("LEASE BEGUN WHAT QUANTITY RATE AMOUNT RECEIPT", rows); err != nil {
			return err
		}
	}
	if len(i.Payments) > 0 {
		t.Show("")
		rows := make([][]string, 0, len(i.Payments))
		for _, p := range i.Payments {
			rows = append(rows, []string{day(p.At), short(p.Lease), p.Amount.Text, p.Method, p.Reference})
		}
		if err := t.Table("PAID LEASE AMOUNT METHOD REFERENCE", rows); err != nil {
			return err
		}
	}
	t.Show("")
	facts := []string{"total", Amount(i.Total), "paid", Amount(i.Paid), "due", Amount(i.Due)}
	if i.Balance.Micro > 0 {
		facts = append(facts, "balance", Amount(i.Balance))
	}
	return t.Facts(facts...)
}

// invoiceCSV writes lines and payments in one table, so that amounts of bills and, below zero, of payments add up to what is due.
func (t Terminal) invoiceCSV(i view.Invoice) error {
	w := csv.NewWriter(t.Out)
	rows := [][]string{{"kind", "payee", "payer", "currency", "lease", "date", "what", "quantity", "rate", "amount", "receipt", "reference"}}
	date := func(ms int64) string {
		if ms == 0 {
			return ""
		}
		return time.UnixMilli(ms).UTC().Format(time.RFC3339)
	}
	for _, l := range i.Lines {
		rows = append(rows, []string{
			"bill", i.Payee, i.Payer, i.Currency, l.Lease, date(l.Begun), l.What, l.Quantity, l.Rate.Text, l.Amount.Text,
			strconv.FormatUint(uint64(l.Receipt), 10), "",
		})
	}
	for _, p := range i.Payments {
		kind, amount := "payment", market.Micro(-p.Amount.Micro).String()
		if p.Method == market.PayBalance { // it was moved from another lease: the sum has it already
			kind, amount = "moved", market.Micro(0).String()
		}
		rows = append(rows, []string{
			kind, i.Payee, i.Payer, i.Currency, p.Lease, date(p.At), p.Method, p.Amount.Text, "", amount, "", p.Reference,
		})
	}
	for _, row := range rows {
		for n, cell := range row {
			row[n] = harmless(cell)
		}
	}
	if err := w.WriteAll(rows); err != nil {
		return fmt.Errorf("write the invoice: %w", err)
	}
	return nil
}

// harmless keeps what another side wrote from being taken for a formula by a spreadsheet. Numbers below zero stay numbers.
func harmless(cell string) string {
	cell = market.Printable(cell)
	if cell == "" || !strings.ContainsAny(cell[:1], "=+-@") {
		return cell
	}
	if _, err := strconv.ParseFloat(cell, 64); err == nil {
		return cell
	}
	return "'" + cell
}

// ShowHistory writes what a program knows of another owner: counts, and never one number for all.
func (t Terminal) ShowHistory(h view.History, asJSON bool) error {
	if asJSON {
		return t.JSON(h)
	}
	paid := make([]string, 0, len(h.Paid))
	for _, m := range h.Paid {
		paid = append(paid, Amount(m))
	}
	faults := make([]string, 0, len(h.Faults))
	for _, f := range h.Faults {
		faults = append(faults, strconv.Itoa(f.Count)+" × "+f.Name)
	}
	count := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	facts := []string{"owner", h.Owner, "leases", strconv.Itoa(h.Leases)}
	if h.Leases > 0 {
		facts = append(facts, "slot-hours", h.Hours, "paid", strings.Join(paid, ", "), "completed", strconv.Itoa(h.Completed),
			"disputed", strconv.Itoa(h.Disputed), "ended early", "by the rig "+strconv.Itoa(h.EndedByRig)+", by the renter "+strconv.Itoa(h.EndedByMe),
			"unpaid", count(h.Unpaid), "nothing billed", count(h.Void), "faults", strings.Join(faults, ", "), "start", startTime(h.StartMs),
			"known since", day(h.FirstSeen))
	}
	if h.Shown > 0 {
		facts = append(facts, "rig's own count", strconv.FormatInt(h.Shown, 10)+" accepted outcomes, of renters that you do not know")
	}
	return t.Facts(facts...)
}

// HistoryLine says the same in one line; "" where there is nothing to say.
func HistoryLine(h view.History) string {
	if h.Leases == 0 {
		return ""
	}
	parts := []string{plural(h.Leases, "lease"), h.Hours + " slot-hours"}
	for _, m := range h.Paid {
		parts = append(parts, "paid "+Amount(m))
	}
	parts = append(parts, strconv.Itoa(h.Completed)+" completed")
	faults := 0
	for _, f := range h.Faults {
		faults += f.Count
	}
	for _, n := range []struct {
		n    int
		text string
	}{{h.EndedByRig, "ended early by the rig"}, {h.Disputed, "disputed"}, {h.Unpaid, "unpaid"}} {
		if n.n > 0 {
			parts = append(parts, strconv.Itoa(n.n)+" "+n.text)
		}
	}
	if faults > 0 {
		parts = append(parts, plural(faults, "fault"))
	}
	return strings.Join(parts, ", ")
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}

// startTime writes how long a start takes, in seconds with one digit behind the point.
func startTime(ms int64) string {
	if ms <= 0 {
		return ""
	}
	return strconv.FormatFloat(float64(ms)/1000, 'f', 1, 64) + "s from both signatures, the median"
}

// short is how people name a lease.
func short(id string) string {
	if len(id) > 8 {
		return id[:8]
	}
	return id
}
