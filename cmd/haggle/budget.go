package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/view"
	"haggle/market"
)

// noBudget takes a budget away.
const noBudget = "none"

func (p *program) budgetCommand() *cobra.Command {
	var day, month, currency string
	var asJSON bool
	c := p.action(&cobra.Command{
		Use:   "budget [--day AMOUNT] [--month AMOUNT]",
		Short: "show or set what may be spent in a day and in a month over all leases",
		Long: "Show or set what may be spent in a day and in a month of this machine's calendar, over all leases in one currency. A bid that\n" +
			"could lead beyond it is refused, and no payment is made beyond it. At 50, 80 and 100 % an alert is shown: here, in `haggle\n" +
			"status` and on the screens.",
		Example: "  haggle budget\n  haggle budget --day 5.00 --month 60\n  haggle budget --month none --currency EUR",
	}, func(ctx context.Context, _ []string) error {
		knobs, err := p.config()
		if err != nil {
			return err
		}
		r := view.BudgetRequest{Currency: cmp.Or(currency, knobs.Currency)}
		for _, b := range []struct {
			flag, text string
			into       **int64
		}{{"--day", day, &r.DayMicro}, {"--month", month, &r.MonthMicro}} {
			if *b.into, err = budgetAmount(b.flag, b.text); err != nil {
				return err
			}
		}
		list, err := p.budgets(ctx, r)
		switch {
		case err != nil:
			return err
		case asJSON:
			return p.JSON(list)
		}
		return p.printBudgets(list)
	})
	c.Flags().StringVar(&day, "day", "", "the most for a day, such as 5.00; none takes the budget away")
	c.Flags().StringVar(&month, "month", "", "the most for a month; none takes the budget away")
	c.Flags().StringVar(&currency, "currency", "", "currency of the budgets (default: the configured one, USD)")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// budgetAmount reads an amount: nil for none said, below zero to take a budget away.
func budgetAmount(flag, text string) (*int64, error) {
	micro := market.Unlimited
	switch text {
	case "":
		return nil, nil //nolint:nilnil // nothing said is no error
	case noBudget:
		return &micro, nil
	}
	m, err := market.ParseMicro(text)
	if err != nil {
		return nil, cli.Usage(flag+" "+text+" is no amount", "such as 5.00, or none")
	}
	micro = int64(m)
	return &micro, nil
}

// budgets changes what is to be changed, and lists.
func (p *program) budgets(ctx context.Context, r view.BudgetRequest) ([]view.Budget, error) {
	if r.DayMicro != nil || r.MonthMicro != nil {
		one, err := ask(ctx, p, func(c *api.AgentClient) (view.Budget, error) { return c.SetBudget(ctx, r) })
		return []view.Budget{one}, err
	}
	list, err := ask(ctx, p, func(c *api.AgentClient) ([]view.Budget, error) { return c.Budgets(ctx) })
	if list == nil {
		list = []view.Budget{}
	}
	return list, err
}

func (p *program) printBudgets(list []view.Budget) error {
	if len(list) == 0 {
		p.Say("no budgets over all leases; `haggle budget --day 5.00` sets one")
		return nil
	}
	most := func(m *view.Money) string {
		if m == nil {
			return "no limit"
		}
		return m.Text
	}
	var rows [][]string
	for _, b := range list {
		rows = append(rows, []string{b.Currency, b.SpentDay.Text, most(b.Day), b.SpentMonth.Text, most(b.Month)})
	}
	if err := p.Table("CURRENCY TODAY DAY THIS-MONTH MONTH", rows); err != nil {
		return err
	}
	for _, b := range list {
		for _, a := range b.Alerts {
			p.Say("%s, since %s", clean(a.Text), moment(a.At))
		}
	}
	return nil
}
