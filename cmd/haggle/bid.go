package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/view"
	"haggle/market"
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
	p.completeOrder(c)
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
	if !quiet {
		if b.DiskMB > 0 {
			p.priceDisk(ctx, b)
		}
		p.sayUploads(ctx, b)
	}
	l, err := ask(ctx, p, func(c *api.AgentClient) (view.Lease, error) { return c.Bid(ctx, b) })
	if err != nil {
		if ctx.Err() != nil {
			p.Say("interrupted; the bid may still become a lease: `haggle leases` shows it")
		}
		return l, err
	}
	p.refreshSSH(ctx)
	if quiet {
		return l, nil
	}
	p.Say("lease %s on %s: %s at %s per slot-hour, budget %s", named(l), clean(l.Rig), clean(cards(l.Slots, l.Model, l.Simulated, l.Isolation)), money(l.Price), money(l.Budget))
	if l.Pay != nil && l.Pay.Method != "" {
		p.Say("it is paid ahead by %s as it runs; `haggle leases %s` shows the most that you can lose", clean(l.Pay.Method), called(l))
	}
	return l, nil
}

// priceDisk says what the disk that was asked for costs, before the bid is sent: on the offer that is named, or the first that
// matches. The agent prices it with everything else in any case; where no offer fits, it is the agent that says so.
func (p *program) priceDisk(ctx context.Context, b view.BidRequest) {
	o, found, err := p.considered(ctx, b)
	if err != nil || !found {
		return // the bid meets the same fault, and tells it
	}
	disk := cli.Bytes(b.DiskMB * 1_000_000)
	if o.DiskPrice.Micro == 0 {
		p.Say("%s of disk cost nothing on %s", disk, clean(o.Rig))
		return
	}
	prices := market.Prices{Currency: o.DiskPrice.Currency, Disk: market.Rate(o.DiskPrice.Micro)}
	bill, err := prices.Bill(market.UsageAt(b.DurationMs, 0, b.DiskMB, 0, 0))
	if err != nil {
		return // more than money can count: the agent refuses it
	}
	total := money(view.MoneyOf(bill.Total, prices.Currency))
	p.Say("%s of disk on %s cost %s per GB-hour: %s for %s", disk, clean(o.Rig), money(o.DiskPrice), total, lasting(b.DurationMs))
}

// considered returns the offer that a bid is placed at first, as far as can be known before.
func (p *program) considered(ctx context.Context, b view.BidRequest) (view.Offer, bool, error) {
	if b.Offer != "" {
		o, err := ask(ctx, p, func(c *api.AgentClient) (view.Offer, error) { return c.Offer(ctx, b.Offer) })
		return o, err == nil, err
	}
	list, err := ask(ctx, p, func(c *api.AgentClient) (view.OfferList, error) {
		return c.Offers(ctx, view.OfferQuery{Query: b.Query})
	})
	for _, o := range list.Offers {
		if slices.Contains(o.Images, b.Image) && o.Free >= b.GPUs {
			return o, true, err
		}
	}
	return view.Offer{}, false, err
}

func (p *program) printBid(l view.Lease, asJSON bool) error {
	if asJSON {
		return p.JSON(l)
	}
	p.Show("%s", clean(l.ID))
	return nil
}
