package view

import (
	"cmp"
	"slices"
	"strconv"

	"haggle/market"
)

// LedgerEntryOf words an account. Name, Credit and Guaranteed are the caller's.
func LedgerEntryOf(a market.Account) LedgerEntry {
	money := func(m market.Micro) Money { return MoneyOf(m, a.Currency) }
	e := LedgerEntry{
		Owner: a.Owner.String(), Currency: market.Printable(a.Currency), Used: money(a.Used), Signed: money(a.Signed), Paid: money(a.Paid),
		Owed: money(a.Owed), Balance: money(a.Balance), Disputed: money(a.Disputed), Guaranteed: money(0), OldestMs: a.Oldest,
		Unspent: money(a.Unspent), Credit: MoneyLimit{Now: money(a.Owed), Most: money(0)}, Ageing: []Money{}, Leases: []LedgerLease{},
	}
	for _, m := range a.Ageing {
		e.Ageing = append(e.Ageing, money(m))
	}
	for _, f := range a.Leases {
		e.Leases = append(e.Leases, LedgerLease{
			Lease: f.Lease.String(), Model: modelOf(f.Terms), State: string(f.Job), Debt: string(f.Debt), Begun: f.Begun, Ended: f.Ended,
			Signed: money(f.Signed), Used: money(f.Used), Paid: money(f.Paid),
		})
	}
	return e
}

func modelOf(t market.Terms) string {
	if len(t.Slots) == 0 {
		return ""
	}
	return market.Printable(t.Slots[0].Model)
}

// HistoryOf words what was lived through with an owner. Shown is the caller's.
func HistoryOf(owner market.Key, h market.History) History {
	v := History{
		Owner: owner.String(), Leases: h.Leases, Hours: hours(h.SlotMs), Paid: []Money{}, Completed: h.Completed,
		Disputed: h.Disputed, EndedByRig: h.EndedByRig, EndedByMe: h.EndedByRenter, Unpaid: h.Unpaid, Void: h.Void,
		StartMs: h.StartMs, FirstSeen: h.FirstSeen,
	}
	for _, s := range h.Paid {
		v.Paid = append(v.Paid, MoneyOf(s.Amount, s.Currency))
	}
	for _, f := range h.Faults {
		v.Faults = append(v.Faults, Tally{Name: market.Printable(string(f.Reason)), Count: f.Count})
	}
	return v
}

// Invoiced is one lease of an invoice.
type Invoiced struct {
	Facts    market.LeaseFacts
	Head     market.Head      // of the newest receipt that both signed; Seq 0 for none
	Payments []market.Payment // that the payee signed, by number
}

// InvoiceOf makes the invoice of an account at a wall time. Only what both signed is on it, or what a guarantor decided. What
// was moved from one lease's money to another's is listed and not counted again. The error has code CodeOverflow.
func InvoiceOf(payee, payer market.Key, currency string, now int64, leases []Invoiced) (Invoice, error) {
	i := Invoice{Payee: payee.String(), Payer: payer.String(), Currency: market.Printable(currency), At: now, Lines: []InvoiceLine{}, Payments: []PaymentLine{}}
	var total, paid market.Micro
	for _, l := range leases {
		lines, cost, err := linesOf(l)
		if err != nil {
			return Invoice{}, err
		}
		i.Lines = append(i.Lines, lines...)
		total += cost
		for _, p := range l.Payments {
			i.Payments = append(i.Payments, PaymentLine{
				Lease: p.Lease.String(), Amount: MoneyOf(p.Amount, currency), Method: market.Printable(p.Method),
				Reference: market.Printable(p.Reference), At: p.Wall,
			})
			if p.Method != market.PayBalance {
				paid += p.Amount
			}
		}
	}
	slices.SortStableFunc(i.Lines, func(a, b InvoiceLine) int { return cmp.Compare(a.Begun, b.Begun) })
	slices.SortStableFunc(i.Payments, func(a, b PaymentLine) int { return cmp.Compare(a.At, b.At) })
	i.Total, i.Paid = MoneyOf(total, currency), MoneyOf(paid, currency)
	i.Due, i.Balance = MoneyOf(max(0, total-paid), currency), MoneyOf(max(0, paid-total), currency)
	return i, nil
}

// linesOf returns the lines of a lease, and what they come to.
func linesOf(l Invoiced) ([]InvoiceLine, market.Micro, error) {
	f, p := l.Facts, l.Facts.Terms.Prices
	if l.Head.Seq == 0 && f.Decided == nil {
		return nil, 0, nil
	}
	bill, err := p.Lines(l.Head.Usage)
	if err != nil {
		return nil, 0, err
	}
	var lines []InvoiceLine
	var total market.Micro
	add := func(b market.Line) {
		total += b.Amount
		lines = append(lines, InvoiceLine{
			Lease: f.Lease.String(), What: b.What, Quantity: b.Quantity, Rate: MoneyOf(market.Micro(b.Rate), p.Currency),
			Amount: MoneyOf(b.Amount, p.Currency), Receipt: l.Head.Seq, Begun: f.Begun, Ended: f.Ended,
		})
	}
	for _, b := range bill {
		add(b)
	}
	if f.Decided != nil && *f.Decided != total {
		add(market.Line{What: "guarantor's decision", Quantity: "1", Rate: market.Rate(*f.Decided - total), Amount: *f.Decided - total})
	}
	return lines, total, nil
}

// hours writes milliseconds as hours: a decimal of at most two places, rounded down.
func hours(ms int64) string {
	cents := ms / (36 * 1000)
	return strconv.FormatInt(cents/100, 10) + "." + strconv.FormatInt(cents%100+100, 10)[1:]
}
