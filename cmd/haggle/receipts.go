package main

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/view"
	"haggle/market"
)

func (p *program) receiptsCommand() *cobra.Command {
	var asJSON bool
	c := p.action(&cobra.Command{
		Use:   "receipts [LEASE]",
		Short: "list a lease's receipts; of the newest lease if none is named",
		Long: "List a lease's receipts. Each is cumulative: the newest that both signed is the whole bill. Below them stands the\n" +
			"outcome, once there is one: what the rig signed of the disk and the card memory that the job left behind.",
		Example: "  haggle receipts\n  haggle receipts 3f9a12c4 --json",
		Args:    cli.Words(0, 1, "LEASE"),
	}, func(ctx context.Context, args []string) error {
		id := strings.Join(args, "")
		if id == "" {
			newest, err := p.newest(ctx)
			if err != nil {
				return err
			}
			id = newest
		}
		list, err := ask(ctx, p, func(c *api.AgentClient) ([]view.Receipt, error) { return c.Receipts(ctx, id) })
		if err != nil {
			return err
		}
		if asJSON {
			return p.JSON(list)
		}
		if len(list) == 0 {
			return market.NewError(market.CodeNoReceipts, "lease", id)
		}
		if err := p.printReceipts(list); err != nil {
			return err
		}
		return p.printOutcome(ctx, id)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// newest returns the id of the newest lease.
func (p *program) newest(ctx context.Context) (string, error) {
	list, err := p.leases(ctx, true)
	if err != nil {
		return "", err
	}
	for _, l := range list {
		if l.ID != "" {
			return l.ID, nil
		}
	}
	return "", hinted(market.ClassNotFound, "there is no lease yet", "`haggle run` makes one")
}

func (p *program) printReceipts(list []view.Receipt) error {
	p.Say("receipts of lease %s", short(list[0].Lease))
	paid := slices.ContainsFunc(list, func(r view.Receipt) bool { return r.Paid.Micro > 0 })
	header := "# KIND BILLED UNBILLED TOTAL SIGNED END HASH"
	if paid {
		header += " PAID"
	}
	var rows [][]string
	for _, r := range list {
		exit := ""
		if r.Exit != nil {
			exit = string(r.Exit.Reason) + ", exit " + strconv.FormatInt(r.Exit.Code, 10)
		}
		signed := strings.Join(r.SignedBy, "+")
		if len(r.SignedBy) == 2 {
			signed = "both"
		}
		row := []string{
			strconv.FormatUint(uint64(r.Seq), 10), r.Kind, lasting(r.BilledMs), notBilled(r), money(r.Total), signed, exit, short(r.Hash),
		}
		if paid {
			row = append(row, r.Paid.Text)
		}
		rows = append(rows, row)
	}
	return p.Table(header, rows)
}

// notBilled says how long the job ran unbilled, and which time of all is not billed and why.
func notBilled(r view.Receipt) string {
	if why := unbilled(r.Unbilled); why != "" {
		return lasting(r.UnbilledMs) + " (" + why + ")"
	}
	return lasting(r.UnbilledMs)
}
