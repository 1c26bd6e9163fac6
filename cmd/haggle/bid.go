package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/view"
)

func (p *program) bidCommand() *cobra.Command {
	var f orderFlags
	c := &cobra.Command{
		Use:     "bid [QUERY…] --image NAME [-- COMMAND…]",
		Short:   "rent cards and start a job, without waiting for it",
		Long:    "Rent cards, start a job and print the lease's id once both sides have signed. The agent keeps the lease.\n\n" + orderHelp,
		Example: fmt.Sprintf(orderExample, "bid"),
		Args:    cobra.ArbitraryArgs,
	}
	p.action(c, func(ctx context.Context, args []string) error {
		b, err := p.order(c, f, args)
		if err != nil {
			return err
		}
		l, err := p.bid(ctx, b, f.json)
		if err != nil {
			return err
		}
		return p.printBid(l, f.json)
	})
	f.register(c)
	c.Flags().BoolVar(&f.json, "json", false, "print the lease as JSON")
	return c
}

// order makes the bid of a command line, with what the configuration adds.
func (p *program) order(c *cobra.Command, f orderFlags, args []string) (view.BidRequest, error) {
	knobs, err := p.config()
	if err != nil {
		return view.BidRequest{}, err
	}
	return f.request(c, args, knobs.Currency)
}

// bid orders slots and says what was granted, unless it shall be quiet.
func (p *program) bid(ctx context.Context, b view.BidRequest, quiet bool) (view.Lease, error) {
	l, err := ask(ctx, p, func(c *api.AgentClient) (view.Lease, error) { return c.Bid(ctx, b) })
	if err != nil {
		if ctx.Err() != nil {
			p.Say("interrupted; the bid may still become a lease: `haggle leases` shows it")
		}
		return l, err
	}
	if quiet {
		return l, nil
	}
	p.Say("lease %s on %s: %s at %s per slot-hour, budget %s", short(l.ID), clean(l.Rig), clean(cards(l.Slots, l.Model, l.Simulated, l.Isolation)), money(l.Price), money(l.Budget))
	return l, nil
}

func (p *program) printBid(l view.Lease, asJSON bool) error {
	if asJSON {
		return p.JSON(l)
	}
	p.Show("%s", clean(l.ID))
	return nil
}
