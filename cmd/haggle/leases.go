package main

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/view"
	"haggle/market"
)

// recent is how long a lease that is over stays in the short list.
const recent = 24 * time.Hour

func (p *program) leasesCommand() *cobra.Command {
	var all, asJSON bool
	c := p.action(&cobra.Command{
		Use:     "leases",
		Short:   "list your leases, newest first",
		Long:    "List the leases that are open and those that ended within a day, newest first.",
		Example: "  haggle leases\n  haggle leases --all --json",
	}, func(ctx context.Context, _ []string) error {
		list, err := p.leases(ctx, all)
		if err != nil {
			return err
		}
		if asJSON {
			return p.JSON(list)
		}
		if len(list) == 0 {
			p.Say("no leases; `haggle run` makes one")
			return nil
		}
		return p.printLeases(list)
	})
	c.Flags().BoolVar(&all, "all", false, "also those that ended long ago")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// leases returns the leases, newest first; without all, those that are open or ended within a day.
func (p *program) leases(ctx context.Context, all bool) ([]view.Lease, error) {
	list, err := ask(ctx, p, func(c *api.AgentClient) ([]view.Lease, error) { return c.Leases(ctx, true) })
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, func(a, b view.Lease) int { return cmp.Compare(b.Created, a.Created) })
	if all {
		return list, nil
	}
	since := time.Now().Add(-recent).UnixMilli()
	return slices.DeleteFunc(list, func(l view.Lease) bool { return over(l) && l.Since < since }), nil
}

// over tells whether nothing more will happen to a lease.
func over(l view.Lease) bool {
	return l.State == "refused" || l.State == string(market.JobEnded) && l.Debt != string(market.DebtOpen)
}

func (p *program) printLeases(list []view.Lease) error {
	var rows [][]string
	for _, l := range list {
		state := l.State
		switch {
		case l.Error != nil:
			state += ": " + l.Error.Message
		case l.Reason != "":
			state += ": " + l.Reason
		}
		exit := ""
		if l.Exit != nil {
			exit = strconv.FormatInt(*l.Exit, 10)
		}
		rows = append(rows, []string{
			short(l.ID), l.Rig, cards(l.Slots, l.Model, l.Simulated, l.Isolation), state, exit, lasting(l.BilledMs), money(l.Spent),
			l.Signed.Text + " in #" + strconv.FormatUint(uint64(l.Receipts), 10), l.Debt,
		})
	}
	return p.Table("LEASE RIG GPU STATE EXIT BILLED COST SIGNED DEBT", rows)
}
