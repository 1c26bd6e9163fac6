package main

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/view"
	"haggle/market"
)

type planFlags struct {
	budget, currency string
	job              jobFlags
	json             bool
}

func (p *program) planCommand() *cobra.Command {
	var f planFlags
	c := p.action(&cobra.Command{
		Use:   "plan --budget AMOUNT [QUERY…]",
		Short: "say what a budget buys: cheapest, quickest, safest",
		Long: "Say what a budget buys among the offers that match a query: the cheapest, the one that is done first, and the safest, which is\n" +
			"the first in the default order of `haggle offers`. Two of them may be one offer. Without --for the job runs for as long as the\n" +
			"budget lasts. Nothing is ordered.",
		Example: "  haggle plan --budget 5 'gpu_ram>=24'\n" +
			"  haggle plan --budget 5 --for 2h --gpus 2 --image pytorch 'gpu_name=RTX_4090'\n" +
			"  haggle plan --budget 20 --currency EUR --traffic-in 200GB @cheap --json",
		Args: cobra.ArbitraryArgs,
	}, func(ctx context.Context, args []string) error { return p.plan(ctx, strings.Join(args, " "), f) })
	c.Flags().StringVar(&f.budget, "budget", "", "what may be spent, such as 5.00")
	c.Flags().StringVar(&f.currency, "currency", "", "currency of the budget (default: the configured one, USD)")
	c.Flags().BoolVar(&f.json, "json", false, "print JSON")
	f.job.register(c, "as long as the budget lasts")
	p.completeQuery(c)
	return c
}

// request makes the request of a command line.
func (f *planFlags) request(query, currency string) (view.PlanRequest, error) {
	j, err := f.job.shape()
	r := view.PlanRequest{
		Query: query, Currency: cmp.Or(f.currency, currency), GPUs: j.GPUs, DurationMs: j.DurationMs,
		DiskMB: j.DiskMB, InMB: j.InMB, OutMB: j.OutMB, Image: j.Image,
	}
	switch {
	case err != nil:
		return r, err
	case f.budget == "":
		return r, cli.Usage("plan needs --budget AMOUNT", "such as `haggle plan --budget 5 'gpu_ram>=24'`")
	}
	budget, err := market.ParseMicro(f.budget)
	if err != nil {
		return r, err
	}
	if r.BudgetMicro = int64(budget); budget == 0 {
		return r, cli.Usage("--budget must be more than nothing", "write an amount such as 5.00")
	}
	return r, checkQuery(query)
}

func (p *program) plan(ctx context.Context, query string, f planFlags) error {
	knobs, err := p.config()
	if err != nil {
		return err
	}
	r, err := f.request(query, knobs.Currency)
	if err != nil {
		return err
	}
	plan, err := ask(ctx, p, func(c *api.AgentClient) (view.Plan, error) { return c.Plan(ctx, r) })
	if err != nil {
		return err
	}
	if f.json {
		if err := p.JSON(plan); err != nil {
			return err
		}
	} else if err := p.printPlan(plan); err != nil {
		return err
	}
	if plan.Nearest == nil {
		return nil
	}
	return unplanned(plan)
}

// printPlan shows the three choices.
func (p *program) printPlan(plan view.Plan) error {
	var rows [][]string
	for _, c := range []struct {
		name string
		is   *view.Choice
	}{{"cheapest", plan.Cheapest}, {"quickest", plan.Quickest}, {"safest", plan.Safest}} {
		if c.is == nil {
			continue
		}
		o, start := c.is.Offer, "?"
		if c.is.StartMs != nil {
			s := (*c.is.StartMs + 999) / 1000
			start = starts(&s)
		}
		rows = append(rows, []string{
			c.name, o.ID, view.Named(o.GivenName, o.Rig), offered(o), money(c.is.Total), lasting(c.is.RunMs), start, lasting(c.is.LastsMs), c.is.Why,
		})
	}
	if len(rows) == 0 {
		return nil
	}
	if err := p.Table("CHOICE OFFER RIG GPU COST RUNS STARTS BUDGET-LASTS WHY", rows); err != nil {
		return err
	}
	p.Say("%s of %s offers that match fit into %s; `haggle show OFFER` says more, `haggle run --offer OFFER` takes it",
		grouped(plan.Fitting), grouped(plan.Matching), money(plan.Budget))
	return nil
}

// unplanned is the error of a plan with no choice in it: its hint is what comes nearest.
func unplanned(plan view.Plan) error {
	n, message := plan.Nearest, ""
	switch {
	case n.Funnel != nil && n.Funnel.Known == 0:
		return market.NewError(market.CodeNoOffers)
	case n.Funnel != nil:
		message = "no offer matches the query"
		if n.Funnel.Nearest != "" {
			return &cli.Hinted{Class: market.ClassNotFound, Message: message, Hint: "nearest: " + n.Funnel.Nearest}
		}
	default:
		message = "none of " + grouped(plan.Matching) + " offers that match fits into " + money(plan.Budget)
	}
	hint := n.Why
	if n.Offer != nil {
		hint = "nearest: " + view.Named(n.Offer.GivenName, n.Offer.Rig) + ": " + n.Why
	}
	return &cli.Hinted{Class: market.ClassNotFound, Message: message, Hint: hint}
}
