package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/view"
	"haggle/market"
)

func (p *program) deputyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "deputy",
		Short: "let another machine sign, pay and collect while this one is off",
		Long: "A deputy is the agent of another machine of yours. It signs the receipts of your leases, pays their slices within a cap and\n" +
			"collects what their jobs leave behind, while this machine is off. It orders nothing and disputes nothing.\n" +
			"Both sides must agree: `haggle deputy add KEY` here, `haggle deputy serve KEY --cap AMOUNT` there. `haggle status` shows a machine's key.\n" +
			"New leases have a deputy when they are made with --deputies.",
		Example: "  haggle deputy add 12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN --name attic\n" +
			"  haggle run --deputies --unattended 8h --image train   # goes on with this machine shut",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Usage("deputy has no "+args[0], "it has list, add, serve and remove")
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(p.deputyListCommand(), p.deputyAddCommand(), p.deputyServeCommand(), p.deputyRemoveCommand())
	return c
}

func (p *program) deputyListCommand() *cobra.Command {
	var asJSON bool
	c := p.action(&cobra.Command{
		Use:     "list",
		Short:   "list your deputies, and the agents that this one serves",
		Example: "  haggle deputy list\n  haggle deputy list --json",
	}, func(ctx context.Context, _ []string) error {
		list, err := ask(ctx, p, func(c *api.AgentClient) ([]view.Deputy, error) { return c.Deputies(ctx) })
		switch {
		case err != nil:
			return err
		case asJSON:
			return p.JSON(list)
		case len(list) == 0:
			p.Say("no deputies; `haggle deputy add KEY` names one")
			return nil
		}
		var rows [][]string
		for _, d := range list {
			rows = append(rows, deputyRow(d))
		}
		return p.Table("KEY NAME ROLE LEASES CAP LAST NOTE", rows)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func deputyRow(d view.Deputy) []string {
	role, most, last := "acts for me", "the budget", "never"
	if d.Serves {
		role = "I act for it"
	}
	if d.CapMicro > 0 {
		most = market.Micro(d.CapMicro).String()
	}
	if d.SeenMs > 0 {
		last = moment(d.SeenMs)
	}
	return []string{d.Key, d.Name, role, strconv.Itoa(d.Leases), most, last, d.Why}
}

func (p *program) deputyAddCommand() *cobra.Command {
	var name, limit string
	c := p.action(&cobra.Command{
		Use:   "add KEY",
		Short: "name a deputy for new leases",
		Long: "Name the agent of another machine as a deputy. New leases that are made with --deputies name it in their terms, so that its\n" +
			"signature counts as yours, and its payments are made from its own payment programs. Do it for a machine of your own only.",
		Example: "  haggle deputy add 12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN --name attic --cap 5",
		Args:    cli.Words(1, 1, "KEY"),
	}, func(ctx context.Context, args []string) error {
		if err := p.addDeputy(ctx, view.Deputy{Key: args[0], Name: name}, limit); err != nil {
			return err
		}
		p.Say("it is a deputy of new leases that are made with --deputies; on that machine: `haggle deputy serve KEY --cap AMOUNT`, with this machine's key")
		return nil
	})
	c.Flags().StringVar(&name, "name", "", "a name for it")
	c.Flags().StringVar(&limit, "cap", "", "what it may pay for one lease, such as 5.00 (default: the lease's budget)")
	return c
}

func (p *program) deputyServeCommand() *cobra.Command {
	var name, limit string
	c := p.action(&cobra.Command{
		Use:   "serve KEY --cap AMOUNT",
		Short: "be the deputy of another agent of yours",
		Long: "Take the leases that an agent hands over: sign, pay and collect for it. This machine's agent stays up for that, and its owner\n" +
			"pays what the other one's leases ask for, within the cap.",
		Example: "  haggle deputy serve 12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN --name laptop --cap 5",
		Args:    cli.Words(1, 1, "KEY"),
	}, func(ctx context.Context, args []string) error {
		if limit == "" {
			return cli.Usage("serve needs --cap", "the most that you pay for one lease of that agent, such as 5.00")
		}
		if err := p.addDeputy(ctx, view.Deputy{Key: args[0], Name: name, Serves: true}, limit); err != nil {
			return err
		}
		p.Say("this agent acts for it, and stays up; `haggle deputy remove KEY` ends that")
		return nil
	})
	c.Flags().StringVar(&name, "name", "", "a name for it")
	c.Flags().StringVar(&limit, "cap", "", "the most that is paid for one of its leases, such as 5.00")
	return c
}

func (p *program) addDeputy(ctx context.Context, d view.Deputy, limit string) error {
	if limit != "" {
		most, err := market.ParseMicro(limit)
		if err != nil || most <= 0 {
			return cli.Usage("--cap "+limit+" is no amount", "such as 5.00, in the lease's currency")
		}
		d.CapMicro = int64(most)
	}
	_, err := ask(ctx, p, func(c *api.AgentClient) (view.Deputy, error) { return c.AddDeputy(ctx, d) })
	return err
}

func (p *program) deputyRemoveCommand() *cobra.Command {
	return p.action(&cobra.Command{
		Use:   "remove KEY",
		Short: "forget a deputy, or an agent that is served",
		Long: "Forget a key. New leases do not name it any more, and its open ones are let go. The terms of an open lease cannot be changed:\n" +
			"what a deputy signs for it still counts until it ends.",
		Example: "  haggle deputy remove 12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN",
		Args:    cli.Words(1, 1, "KEY"),
	}, func(ctx context.Context, args []string) error {
		_, err := ask(ctx, p, func(c *api.AgentClient) (struct{}, error) { return struct{}{}, c.RemoveDeputy(ctx, args[0]) })
		return err
	})
}
