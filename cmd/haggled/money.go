//go:build linux

package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"haggle/internal/cli"
)

func (p *program) confirmCommand() *cobra.Command {
	var f cli.Confirm
	c := p.action(&cobra.Command{
		Use: "confirm LEASE", Short: "Say that money for a lease has come",
		Long:    cli.ConfirmHelp,
		Example: "  haggled confirm 3f9a12c4\n  haggled confirm 3f9a12c4 --amount 2.50 --reference 'transfer of May 3rd'",
		Args:    cli.Words(1, 1, "LEASE"),
	}, func(ctx context.Context, args []string) error {
		daemon, err := p.daemon()
		if err != nil {
			return err
		}
		return f.Run(ctx, p.Terminal, daemon, args[0])
	})
	f.Register(c.Flags())
	return c
}

func (p *program) ledgerCommand() *cobra.Command {
	var asJSON bool
	c := p.action(&cobra.Command{
		Use: "ledger", Short: "What renters' owners and you owe each other", Long: "What renters' owners and you owe each other.\n" + cli.LedgerHelp,
		Example: "  haggled ledger\n  haggled ledger --json",
	}, func(ctx context.Context, _ []string) error {
		daemon, err := p.daemon()
		if err != nil {
			return err
		}
		l, err := daemon.Ledger(ctx)
		if err != nil {
			return err
		}
		return p.ShowLedger(l, asJSON)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print for programs")
	return c
}

func (p *program) invoiceCommand() *cobra.Command {
	var currency, format string
	c := p.action(&cobra.Command{
		Use: "invoice OWNER", Short: "Write the account with one owner as text, JSON or CSV",
		Long: "Write the account with a renter's owner in one currency: each price line of each lease as both signed it, and each payment\n" +
			"that this rig signed for. OWNER is a key, or the name under which you trust it.",
		Example:           "  haggled invoice Ada\n  haggled invoice 12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN --format csv > may.csv",
		Args:              cli.Words(1, 1, "OWNER"),
		ValidArgsFunction: p.completeOwner,
	}, func(ctx context.Context, args []string) error {
		daemon, err := p.daemon()
		if err != nil {
			return err
		}
		i, err := daemon.Invoice(ctx, args[0], currency)
		if err != nil {
			return err
		}
		return p.ShowInvoice(i, format)
	})
	c.Flags().StringVar(&currency, "currency", "", "currency of the account (default: that of the rig's prices)")
	c.Flags().StringVar(&format, "format", "text", strings.Join(cli.InvoiceFormats(), ", "))
	return c
}

func (p *program) historyCommand() *cobra.Command {
	var asJSON bool
	c := p.action(&cobra.Command{
		Use: "history OWNER", Short: "What this rig has lived through with an owner",
		Long: "Count what this rig verified of a renter's owner: leases, hours, payments, early ends by side, faults by cause. It is never\n" +
			"one number, and nobody else's word is in it. OWNER is a key, or the name under which you trust it.",
		Example:           "  haggled history Ada\n  haggled history Ada --json",
		Args:              cli.Words(1, 1, "OWNER"),
		ValidArgsFunction: p.completeOwner,
	}, func(ctx context.Context, args []string) error {
		daemon, err := p.daemon()
		if err != nil {
			return err
		}
		h, err := daemon.History(ctx, args[0])
		if err != nil {
			return err
		}
		return p.ShowHistory(h, asJSON)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print for programs")
	return c
}
