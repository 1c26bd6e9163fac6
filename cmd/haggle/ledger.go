package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/view"
	"haggle/market"
)

func (p *program) ledgerCommand() *cobra.Command {
	var asJSON bool
	c := p.action(&cobra.Command{
		Use:     "ledger",
		Short:   "show what you and the owners of rigs owe each other",
		Long:    "Show what you and the owners of rigs owe each other.\n" + cli.LedgerHelp,
		Example: "  haggle ledger\n  haggle ledger --json",
	}, func(ctx context.Context, _ []string) error {
		l, err := ask(ctx, p, func(c *api.AgentClient) (view.Ledger, error) { return c.Ledger(ctx) })
		if err != nil {
			return err
		}
		return p.ShowLedger(l, asJSON)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (p *program) invoiceCommand() *cobra.Command {
	var currency, format string
	c := p.action(&cobra.Command{
		Use:   "invoice OWNER",
		Short: "write the account with one owner as text, JSON or CSV",
		Long: "Write the account with the owner of rigs in one currency: each price line of each lease as both signed it, and each payment\n" +
			"that the owner signed for. OWNER is a key, a name in the ledger, an offer or a lease. In CSV amounts of bills and, below zero,\n" +
			"of payments add up to what is due.",
		Example:           "  haggle invoice rig-1\n  haggle invoice 3f9a12c4 --format csv > may.csv",
		Args:              cli.Words(1, 1, "OWNER"),
		ValidArgsFunction: p.ownerWords,
	}, func(ctx context.Context, args []string) error {
		owner, err := p.owner(ctx, args[0])
		if err != nil {
			return err
		}
		i, err := ask(ctx, p, func(c *api.AgentClient) (view.Invoice, error) { return c.Invoice(ctx, owner, currency) })
		if err != nil {
			return err
		}
		return p.ShowInvoice(i, format)
	})
	c.Flags().StringVar(&currency, "currency", "", "currency of the account (default: the only one)")
	c.Flags().StringVar(&format, "format", "text", strings.Join(cli.InvoiceFormats(), ", "))
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(cli.InvoiceFormats(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (p *program) historyCommand() *cobra.Command {
	var asJSON bool
	c := p.action(&cobra.Command{
		Use:   "history OWNER",
		Short: "show what you have lived through with an owner of rigs",
		Long: "Count what this machine verified of an owner's rigs: leases, hours, payments, faults by cause, early ends by side. It is never\n" +
			"one number, and nobody else's word is in it. OWNER is a key, a name in the ledger, an offer or a lease.",
		Example:           "  haggle history rig-1\n  haggle history 3f9a12c4 --json",
		Args:              cli.Words(1, 1, "OWNER"),
		ValidArgsFunction: p.ownerWords,
	}, func(ctx context.Context, args []string) error {
		owner, err := p.owner(ctx, args[0])
		if err != nil {
			return err
		}
		h, err := ask(ctx, p, func(c *api.AgentClient) (view.History, error) { return c.History(ctx, owner) })
		if err != nil {
			return err
		}
		return p.ShowHistory(h, asJSON)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// owner finds the key of an owner of rigs: of a key, of a name or the beginning of a key in the ledger, of an offer or of a lease.
func (p *program) owner(ctx context.Context, word string) (string, error) {
	if key, err := market.ParseKey(word); err == nil {
		return key.String(), nil
	}
	ledger, err := ask(ctx, p, func(c *api.AgentClient) (view.Ledger, error) { return c.Ledger(ctx) })
	if err != nil {
		return "", err
	}
	lease := strings.TrimPrefix(word, "lease-")
	if l, err := ask(ctx, p, func(c *api.AgentClient) (view.Lease, error) { return c.Lease(ctx, word) }); err == nil && l.ID != "" {
		lease = l.ID // a name
	}
	found := map[string]bool{}
	last := ""
	for _, e := range ledger.Entries {
		hit := e.Name == word || len(word) >= 12 && strings.HasPrefix(e.Owner, word)
		for _, l := range e.Leases {
			hit = hit || len(lease) >= 4 && strings.HasPrefix(l.Lease, lease)
		}
		if hit {
			found[e.Owner], last = true, e.Owner
		}
	}
	switch len(found) {
	case 1:
		return last, nil
	case 0:
		if o, err := ask(ctx, p, func(c *api.AgentClient) (view.Offer, error) { return c.Offer(ctx, word) }); err == nil && o.Owner != "" {
			return o.Owner, nil
		}
		return "", hinted(market.ClassNotFound, "there is no owner "+clean(word), "`haggle ledger` lists the owners that you have dealt with; an offer or a lease is taken too")
	}
	return "", cli.Usage(clean(word)+" are several owners", "`haggle ledger` shows their keys: name one")
}

// ownerWords completes the owners of the ledger. No agent is started for it.
func (p *program) ownerWords(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	client, err := p.dial()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(c.Context(), completeTime)
	defer cancel()
	ledger, err := client.Ledger(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var words []string
	for _, e := range ledger.Entries {
		words = append(words, e.Owner+"\t"+clean(e.Name+", "+money(e.Owed)+" owed"))
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}
