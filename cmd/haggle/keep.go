package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/config"
	"haggle/internal/view"
	"haggle/market"
)

func (p *program) resumeCommand() *cobra.Command {
	var asJSON bool
	c := p.action(&cobra.Command{
		Use:   "resume LEASE",
		Short: "start the job of a kept lease again",
		Long: "Start the job of a lease whose disk was kept (stop --keep) again, with all that is on the disk. The same cards must be\n" +
			"free; where they are not, the rig says so and the disk stays kept.",
		Example: "  haggle resume train",
		Args:    cli.Words(1, 1, "LEASE"),
	}, func(ctx context.Context, args []string) error {
		l, err := ask(ctx, p, func(c *api.AgentClient) (view.Lease, error) { return c.Resume(ctx, args[0]) })
		if err != nil {
			return err
		}
		return p.showLease(l, asJSON)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print the lease as JSON")
	return c
}

func (p *program) removeCommand() *cobra.Command {
	var yes, asJSON bool
	c := p.action(&cobra.Command{
		Use:     "rm LEASE",
		Short:   "end a kept lease and destroy its disk",
		Long:    "End a lease whose disk was kept and have the rig destroy the disk. It asks first, for what is destroyed is gone.",
		Example: "  haggle rm train\n  haggle rm train --yes",
		Args:    cli.Words(1, 1, "LEASE"),
	}, func(ctx context.Context, args []string) error {
		l, err := ask(ctx, p, func(c *api.AgentClient) (view.Lease, error) { return c.Lease(ctx, args[0]) })
		if err != nil {
			return err
		}
		if l.State == string(market.JobPaused) && !yes {
			what := "the disk of lease " + named(l) + " on " + clean(l.Rig) + " and all that is on it"
			if use := diskUse(l); use != "" {
				what += " (" + use + ")"
			}
			if err := p.confirm(ctx, "destroy "+what+"?"); err != nil {
				return err
			}
		}
		if l, err = ask(ctx, p, func(c *api.AgentClient) (view.Lease, error) { return c.Remove(ctx, l.ID) }); err != nil {
			return err
		}
		return p.showLease(l, asJSON)
	})
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	c.Flags().BoolVar(&asJSON, "json", false, "print the lease as JSON")
	return c
}

func (p *program) extendCommand() *cobra.Command {
	var duration, budget string
	var asJSON bool
	c := p.action(&cobra.Command{
		Use:   "extend LEASE --for TIME [--budget AMOUNT]",
		Short: "add time and money to a lease",
		Long: "Add running time to a lease, at the lease's own price, and money to its budget: by default what the added time costs. The\n" +
			"rig must agree; where its price has risen it may refuse more time, and the lease goes on as it was.",
		Example: "  haggle extend train --for 2h\n  haggle extend train --budget 1.00",
		Args:    cli.Words(1, 1, "LEASE"),
	}, func(ctx context.Context, args []string) error {
		r, err := extension(duration, budget)
		if err != nil {
			return err
		}
		l, err := ask(ctx, p, func(c *api.AgentClient) (view.Lease, error) { return c.Lease(ctx, args[0]) })
		if err != nil {
			return err
		}
		if !asJSON {
			p.sayExtension(l, r)
		}
		if l, err = ask(ctx, p, func(c *api.AgentClient) (view.Lease, error) { return c.Extend(ctx, l.ID, r) }); err != nil {
			return err
		}
		if asJSON {
			return p.JSON(l)
		}
		p.Show("lease %s: both signed %s of running time and a budget of %s", named(l), lasting(l.Duration), money(l.Budget))
		return nil
	})
	c.Flags().StringVar(&duration, "for", "", "running time to add, such as 90s, 2h or 7d")
	c.Flags().StringVar(&budget, "budget", "", "money to add, such as 1.00 (default: what the added time costs)")
	c.Flags().BoolVar(&asJSON, "json", false, "print the lease as JSON")
	return c
}

// extension reads what is to be added.
func extension(duration, budget string) (view.ExtendRequest, error) {
	var r view.ExtendRequest
	if duration == "" && budget == "" {
		return r, cli.Usage("extend needs --for TIME, --budget AMOUNT or both", "write --for 2h")
	}
	if duration != "" {
		d, err := config.ParseDuration(duration)
		if err != nil || d.Milliseconds() == 0 {
			return r, cli.Usage(fmt.Sprintf("--for: %q is not a time to add", duration), "write a time such as 90s, 2h or 7d")
		}
		r.DurationMs = d.Milliseconds()
	}
	if budget != "" {
		m, err := market.ParseMicro(budget)
		if err != nil {
			return r, err
		}
		r.BudgetMicro = int64(m)
	}
	return r, nil
}

// sayExtension says what a lease comes to before the rig is asked.
func (p *program) sayExtension(l view.Lease, r view.ExtendRequest) {
	text := fmt.Sprintf("lease %s: %s + %s of running time", named(l), lasting(l.Duration), lasting(r.DurationMs))
	if r.DurationMs == 0 {
		text = fmt.Sprintf("lease %s: %s of running time as before", named(l), lasting(l.Duration))
	}
	add, how := market.Micro(r.BudgetMicro), "budget "
	if add == 0 {
		prices := market.Prices{Currency: l.Price.Currency, Slot: market.Rate(l.Price.Micro)}
		bill, err := prices.Bill(market.UsageAt(r.DurationMs, l.Slots, 0, 0, 0))
		if err != nil {
			return // more than money can count: the agent refuses it
		}
		add, how = bill.Total, "budget, with the disk beside it, about "
	}
	total := view.MoneyOf(market.Micro(l.Budget.Micro)+add, l.Budget.Currency)
	p.Say("%s; %s%s + %s = %s", text, how, l.Budget.Text, add.String(), money(total))
}

func (p *program) nameCommand() *cobra.Command {
	var labels []string
	var asJSON, remove bool
	c := p.action(&cobra.Command{
		Use:   "name LEASE|RIG|OWNER [NAME]",
		Short: "call a lease, a rig or an owner by a name of yours",
		Long: "Give a lease a name, which every command takes in place of its id, and labels. A name is 1 to 32 small letters, digits and\n" +
			"dashes. Without NAME and --label it shows them.\n\n" + givenHelp,
		Example: "  haggle name 3f9a train\n  haggle name train --label project=cats --label try=2\n  haggle name rig-1 attic\n" +
			"  haggle name 12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN Ada\n  haggle name attic --remove",
		Args: cli.Words(1, 2, "LEASE"),
	}, func(ctx context.Context, args []string) error {
		if remove && len(args) > 1 {
			return cli.Usage("--remove takes the name back that is there", "leave NAME out")
		}
		l, err := ask(ctx, p, func(c *api.AgentClient) (view.Lease, error) { return c.Lease(ctx, args[0]) })
		if market.CodeOf(err) == market.CodeLeaseUnknown && (remove || len(args) > 1) && len(labels) == 0 {
			return p.giveName(ctx, args, asJSON)
		}
		if err != nil {
			return err
		}
		r := view.NameRequest{Name: l.Name, Labels: l.Labels}
		if len(args) > 1 || remove {
			r.Name = strings.Join(args[1:], "")
		}
		if len(labels) > 0 {
			r.Labels = labels
		}
		if len(args) > 1 || len(labels) > 0 || remove {
			if l, err = ask(ctx, p, func(c *api.AgentClient) (view.Lease, error) { return c.Rename(ctx, l.ID, r) }); err != nil {
				return err
			}
			p.refreshSSH(ctx)
		}
		if asJSON {
			return p.JSON(l)
		}
		return p.Facts("lease", short(l.ID), "name", l.Name, "labels", strings.Join(l.Labels, ", "))
	})
	c.Flags().StringArrayVar(&labels, "label", nil, "a label, in place of those that the lease has; may be repeated")
	c.Flags().BoolVar(&remove, "remove", false, "take the name back")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (p *program) checkpointsCommand() *cobra.Command {
	var now, asJSON bool
	c := p.action(&cobra.Command{
		Use:   "checkpoints LEASE",
		Short: "list the checkpoints of a job",
		Long: "List the checkpoints that are kept of a job, oldest first. `haggle run --resume LEASE` begins a new job from the newest,\n" +
			"on any rig. A checkpoint is encrypted inside the job, with your key.",
		Example: "  haggle checkpoints train\n  haggle checkpoints train --now",
		Args:    cli.Words(1, 1, "LEASE"),
	}, func(ctx context.Context, args []string) error {
		if now {
			one, err := ask(ctx, p, func(c *api.AgentClient) (view.CheckpointInfo, error) { return c.CheckpointNow(ctx, args[0]) })
			if err != nil {
				return err
			}
			if !asJSON {
				p.Say("checkpoint %d: %s", one.Seq, cli.Bytes(one.Bytes))
			}
		}
		list, err := ask(ctx, p, func(c *api.AgentClient) ([]view.CheckpointInfo, error) { return c.Checkpoints(ctx, args[0]) })
		switch {
		case err != nil:
			return err
		case asJSON:
			return p.JSON(list)
		case len(list) == 0:
			p.Say("no checkpoints yet; --checkpoint of run takes them, and --now does at once")
			return nil
		}
		var rows [][]string
		for _, one := range list {
			rows = append(rows, []string{fmt.Sprint(one.Seq), time.UnixMilli(one.AtMs).Local().Format(time.DateTime), cli.Bytes(one.Bytes), one.Where})
		}
		return p.Table("SEQ TAKEN SIZE WHERE", rows)
	})
	c.Flags().BoolVar(&now, "now", false, "take one first")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// showLease prints how a lease is after an order.
func (p *program) showLease(l view.Lease, asJSON bool) error {
	if asJSON {
		return p.JSON(l)
	}
	p.Show("lease %s on %s, %s: %s", named(l), clean(l.Rig), clean(cards(l.Slots, l.Model, l.Simulated, l.Isolation)), clean(l.State))
	return nil
}

// named is how talk names a lease: by its name, where it has one.
func named(l view.Lease) string {
	if l.Name == "" {
		return short(l.ID)
	}
	return short(l.ID) + " (" + clean(l.Name) + ")"
}

// called is how a command line names a lease: by its name, where it has one.
func called(l view.Lease) string {
	if l.Name != "" {
		return clean(l.Name)
	}
	return short(l.ID)
}
