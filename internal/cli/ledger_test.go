package cli_test

import (
	"encoding/csv"
	"strings"
	"testing"

	"haggle/internal/cli"
	"haggle/internal/view"
	"haggle/market"
)

func usd(m market.Micro) view.Money { return view.MoneyOf(m, "USD") }

func invoice() view.Invoice {
	return view.Invoice{
		Payee: "payee", Payer: "payer", Currency: "USD", At: 1_700_000_000_000,
		Lines: []view.InvoiceLine{
			{Lease: "30d65cd8ffff", What: "slots", Quantity: "3.5 slot-hours", Rate: usd(400_000), Amount: usd(1_400_000), Receipt: 4, Begun: 1_700_000_000_000},
			{Lease: "30d65cd8ffff", What: "guarantor's decision", Quantity: "1", Rate: usd(-200_000), Amount: usd(-200_000), Begun: 1_700_000_000_000},
		},
		Payments: []view.PaymentLine{
			{Lease: "30d65cd8ffff", Amount: usd(500_000), Method: "hand", Reference: "=cmd|' /C calc'!A0", At: 1_700_000_100_000},
			{Lease: "30d65cd8ffff", Amount: usd(100_000), Method: market.PayBalance, Reference: "from \x1b[2Jb", At: 1_700_000_200_000},
		},
		Total: usd(1_200_000), Paid: usd(500_000), Due: usd(700_000), Balance: usd(0),
	}
}

func TestInvoiceAsCSVAddsUpToWhatIsDueAndHoldsNoFormula(t *testing.T) {
	var out strings.Builder
	if err := (cli.Terminal{Out: &out}).ShowInvoice(invoice(), "csv"); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var sum market.Micro
	for _, row := range rows[1:] {
		text, minus := strings.CutPrefix(row[9], "-")
		m, err := market.ParseMicro(text)
		if err != nil {
			t.Fatalf("amount %q: %v", row[9], err)
		}
		if minus {
			m = -m
		}
		sum += m
		for _, cell := range row {
			if strings.HasPrefix(cell, "=") || strings.Contains(cell, "\x1b") {
				t.Errorf("a cell that a program may run: %q", cell)
			}
		}
	}
	if want := market.Micro(invoice().Due.Micro); sum != want {
		t.Errorf("the amounts add up to %s, and %s are due", sum, want)
	}
}

func TestInvoiceInNoKnownFormIsRefused(t *testing.T) {
	err := (cli.Terminal{Out: &strings.Builder{}}).ShowInvoice(invoice(), "xml")
	if err == nil || !strings.Contains(err.Error(), "xml") {
		t.Errorf("got %v", err)
	}
}

func TestInvoiceAsTextShowsLinesPaymentsAndSums(t *testing.T) {
	var out strings.Builder
	if err := (cli.Terminal{Out: &out}).ShowInvoice(invoice(), "text"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3.5 slot-hours", "#4", "guarantor's decision", "-0.20", "hand", "due    0.70 USD"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "\nbalance") || strings.Contains(out.String(), "\x1b") {
		t.Errorf("an empty balance, or a control sequence:\n%s", out.String())
	}
}

func TestLedgerNamesWhatHasNoColumn(t *testing.T) {
	var out, talk strings.Builder
	l := view.Ledger{Side: "rig", Entries: []view.LedgerEntry{{
		Owner: "12D3KooWx", Name: "Ada\x1b[2J", Currency: "USD", Used: usd(3), Signed: usd(2), Paid: usd(0), Owed: usd(3), Balance: usd(0),
		Unspent: usd(0), Disputed: usd(2_000_000), Guaranteed: usd(5_000_000), Ageing: []view.Money{usd(3), usd(0), usd(0), usd(0)},
	}}}
	if err := (cli.Terminal{Program: "haggled", Out: &out, Err: &talk}).ShowLedger(l, false); err != nil {
		t.Fatal(err)
	}
	if got := out.String() + talk.String(); strings.Contains(got, "\x1b") {
		t.Errorf("a control sequence: %q", got)
	}
	for _, want := range []string{"with Ada[2J, 2.00 USD are in leases that are disputed", "5.00 USD are reserved from guarantees"} {
		if !strings.Contains(talk.String(), want) {
			t.Errorf("no %q in %q", want, talk.String())
		}
	}
}
