package main

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/view"
	"haggle/market"
)

// recent is how long a lease that is over stays in the short list.
const recent = 24 * time.Hour

func (p *program) leasesCommand() *cobra.Command {
	var all, asJSON bool
	c := p.action(&cobra.Command{
		Use:   "leases [LEASE]",
		Short: "list your leases, newest first, or show one",
		Long: "List the leases that are open and those that ended within a day, newest first, or show one with all that is known of its\n" +
			"money. AT-RISK is the most that you can lose now by the rig's fault, PAID what the rig has signed payments for, LEFT what of\n" +
			"it is not used.",
		Example: "  haggle leases\n  haggle leases train\n  haggle leases --all --json",
		Args:    cli.Words(0, 1, "LEASE"),
	}, func(ctx context.Context, args []string) error {
		if len(args) > 0 {
			l, err := ask(ctx, p, func(c *api.AgentClient) (view.Lease, error) { return c.Lease(ctx, args[0]) })
			switch {
			case err != nil:
				return err
			case asJSON:
				return p.JSON(l)
			}
			return p.printLease(l)
		}
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
	// Columns that most leases have nothing to say in are there only when one has.
	used := slices.ContainsFunc(list, func(l view.Lease) bool { return l.DiskUsed > 0 })
	online := slices.ContainsFunc(list, func(l view.Lease) bool { return l.In > 0 || l.Out > 0 })
	named := slices.ContainsFunc(list, func(l view.Lease) bool { return l.Name != "" })
	paid := slices.ContainsFunc(list, func(l view.Lease) bool { return l.Pay != nil })
	risky := slices.ContainsFunc(list, func(l view.Lease) bool {
		return l.Risk != nil && (l.Risk.Lose.Micro > 0 || l.State != string(market.JobEnded))
	})
	header := "LEASE RIG GPU STATE EXIT BILLED COST SIGNED DEBT"
	if named {
		header = "NAME " + header
	}
	if paid {
		header += " PAID LEFT"
	}
	if risky {
		header += " AT-RISK"
	}
	if used {
		header += " DISK"
	}
	if online {
		header += " TRAFFIC"
	}
	var rows [][]string
	for _, l := range list {
		exit := ""
		if l.Exit != nil {
			exit = strconv.FormatInt(*l.Exit, 10)
		}
		row := []string{
			short(l.ID), l.Rig, cards(l.Slots, l.Model, l.Simulated, l.Isolation), state(l), exit, lasting(l.BilledMs), money(l.Spent),
			l.Signed.Text + " in #" + strconv.FormatUint(uint64(l.Receipts), 10), l.Debt,
		}
		if named {
			row = append([]string{l.Name}, row...)
		}
		if paid {
			row = append(row, paidAndLeft(l)...)
		}
		if risky {
			row = append(row, atRisk(l))
		}
		if used {
			row = append(row, diskUse(l))
		}
		if online {
			row = append(row, traffic(l))
		}
		rows = append(rows, row)
	}
	return p.Table(header, rows)
}

// state says where a lease stands, and why.
func state(l view.Lease) string {
	text := l.State
	switch {
	case l.Error != nil:
		text += ": " + l.Error.Message
	case l.Reason != "":
		text += ": " + l.Reason
	}
	if isPaused(l) && l.KeptMs > 0 {
		text += ", disk kept " + lasting(l.KeptMs)
	}
	if l.Attempt > 0 && !isPaused(l) && l.State != string(market.JobEnded) {
		text += ", start " + strconv.Itoa(l.Attempt+1)
	}
	if l.Serves != "" {
		text += ", as deputy of " + l.Serves[max(0, len(l.Serves)-8):]
	}
	if l.Pay != nil && l.Pay.Asked != nil && (l.State != string(market.JobEnded) || l.Pay.Asked.State != view.SliceFailed) {
		a := *l.Pay.Asked
		if a.State == view.SliceWaiting {
			text += ", " + awaited(a) // what to do fills a page: the lease itself shows it
		} else {
			text += ", " + asked(a)
		}
	}
	if l.EndsBy > 0 {
		text += ", ends by " + clock(l.EndsBy)
	}
	if l.DiskFull && l.Reason != string(market.ReasonDiskFull) {
		text += ", disk full"
	}
	return text
}

// diskUse says how much of its disk a job uses.
func diskUse(l view.Lease) string {
	switch {
	case l.DiskUsed == 0:
		return ""
	case l.DiskMB == 0:
		return cli.Bytes(l.DiskUsed)
	}
	return cli.Bytes(l.DiskUsed) + " of " + cli.Bytes(l.DiskMB*1_000_000)
}

// traffic says what a job received and sent.
func traffic(l view.Lease) string {
	if l.In == 0 && l.Out == 0 {
		return ""
	}
	return cli.Bytes(l.In) + " in, " + cli.Bytes(l.Out) + " out"
}

// moment writes a wall time with its day for the person at this machine.
func moment(ms int64) string { return time.UnixMilli(ms).Local().Format(time.DateTime) }

// clock writes a wall time for the person at this machine.
func clock(ms int64) string { return time.UnixMilli(ms).Local().Format(time.TimeOnly) }
