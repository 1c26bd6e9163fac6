package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/view"
	"haggle/market"
)

// watchHelp says what --watch does.
const watchHelp = "--watch lists what matches and then each change as it comes, until Ctrl-C: new, gone, cheaper, dearer (of TOTAL), freed, taken\n" +
	"(slots). --bell, --exec and --webhook tell of what matches at the start, what is new and what becomes cheaper. --exec runs a\n" +
	"command, one at a time and each for 30 s at most, with the change as JSON on stdin and HAGGLE_CHANGE, HAGGLE_OFFER, HAGGLE_RIG,\n" +
	"HAGGLE_GPU, HAGGLE_PRICE, HAGGLE_TOTAL and HAGGLE_CURRENCY in its environment; no shell reads it, unless you write sh -c '…'.\n" +
	"--webhook sends the same JSON by POST to an https address, or http on this machine, tries 3 times and follows no redirect.\n" +
	"--once ends with 0 at the first of them."

// watchOffers prints what matches a query and every change until ctx ends, or until the first match with --once.
func (p *program) watchOffers(ctx context.Context, q view.OfferQuery, f offersFlags) error {
	if f.explain || f.facets != "" || f.limit > 0 {
		return cli.Usage("--watch goes with none of --explain, --facets and --limit", "leave one of them out")
	}
	alerts, err := f.alert.alerts(p)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes, err := ask(ctx, p, func(c *api.AgentClient) (<-chan view.OfferChange, error) { return c.WatchOffers(ctx, q) })
	if err != nil {
		return err
	}
	alerts.begin(ctx)
	defer alerts.end()
	for {
		select {
		case change, ok := <-changes:
			if !ok {
				if ctx.Err() != nil {
					return nil
				}
				return api.ErrLost
			}
			if err := p.printChange(change, f.json); err != nil {
				return err
			}
			if !isMatch(change) {
				continue
			}
			if f.alert.once {
				return alerts.now(ctx, change)
			}
			alerts.tell(change)
		case <-ctx.Done():
			return nil
		}
	}
}

// isMatch reports whether a change is one that a person waits for.
func isMatch(c view.OfferChange) bool {
	return c.Change == view.OfferHere || c.Change == view.OfferNew || c.Change == view.OfferCheaper
}

// printChange prints one change as a line. Lines come over hours: their columns are as wide as most texts need.
func (p *program) printChange(c view.OfferChange, asJSON bool) error {
	if asJSON {
		return printLine(p.Out, c)
	}
	o := c.Offer
	price := money(o.Price) + " per hour"
	if o.Total != nil {
		price += ", " + money(*o.Total) + " in all"
	}
	if c.Was != nil {
		price += ", was " + c.Was.Text
	}
	line := fmt.Sprintf("%s  %-8s  %-8s  %-16s  %-24s  %5s  %s",
		clock(c.AtMs), market.Printable(c.Change), clean(o.ID), clean(view.Named(o.GivenName, o.Rig)), clean(offered(o)),
		strconv.Itoa(o.Free)+"/"+strconv.Itoa(o.Slots), clean(price))
	p.Show("%s", strings.TrimRight(line, " "))
	return nil
}
