package renter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// alertEvery is the time between two looks at the budgets of the day and the month.
const alertEvery = 15 * time.Second

// maxCurrencies bounds the currencies that have budgets.
const maxCurrencies = 32

// Budgets lists what may be spent over all leases, by currency: of those that have a budget, and of those in which something was
// spent this month.
func (a *Agent) Budgets(ctx context.Context) ([]view.Budget, error) {
	set, err := a.settings(ctx)
	if err != nil {
		return nil, err
	}
	var currencies []string
	for _, b := range a.budgets(set) {
		currencies = append(currencies, b.Currency)
	}
	records, err := a.cfg.Store.Records(ctx)
	if err != nil {
		return nil, fmt.Errorf("list budgets: %w", err)
	}
	for _, r := range records {
		currencies = append(currencies, a.currencyOf(r))
	}
	slices.Sort(currencies)
	list := []view.Budget{}
	for _, c := range slices.Compact(currencies) {
		if c == "" {
			continue
		}
		b, err := a.budgetView(ctx, set, c)
		if err != nil {
			return nil, err
		}
		list = append(list, b)
	}
	return list, nil
}

func (a *Agent) budgetView(ctx context.Context, set Settings, currency string) (view.Budget, error) {
	caps := a.capsIn(set, currency)
	sum, err := a.spendingOf(ctx, currency)
	if err != nil {
		return view.Budget{}, err
	}
	v := view.Budget{
		Currency: currency, SpentDay: view.MoneyOf(sum.spent[0], currency), SpentMonth: view.MoneyOf(sum.spent[1], currency),
		Alerts: []view.Alert{},
	}
	for i, into := range []**view.Money{&v.Day, &v.Month} {
		if caps[i] != noLimit {
			m := view.MoneyOf(caps[i], currency)
			*into = &m
		}
	}
	for _, b := range set.Alerts {
		if b.Currency == currency {
			v.Alerts = append(v.Alerts, b.view())
		}
	}
	return v, nil
}

func (b BudgetAlert) view() view.Alert {
	return view.Alert{
		Scope: b.Scope, Percent: b.Percent, At: b.At, Text: fmt.Sprintf("%d %% of the %s budget in %s are spent", b.Percent, b.Scope, b.Currency),
	}
}

// SetBudget changes the budgets of one currency. What is held back is looked at again at once.
func (a *Agent) SetBudget(ctx context.Context, r view.BudgetRequest) (view.Budget, error) {
	if err := (market.Prices{Currency: r.Currency}).Validate(); err != nil {
		return view.Budget{}, err
	}
	var now Settings
	err := a.changeSettings(ctx, func(set *Settings) error {
		caps := a.capsIn(*set, r.Currency)
		for i, amount := range []*int64{r.DayMicro, r.MonthMicro} {
			if amount != nil {
				caps[i] = max(noLimit, market.Micro(*amount))
			}
		}
		set.Budgets = slices.DeleteFunc(slices.Clone(set.Budgets), func(b Budget) bool { return b.Currency == r.Currency })
		if len(set.Budgets) >= maxCurrencies {
			return badRequest("there are budgets in too many currencies")
		}
		set.Budgets = append(set.Budgets, Budget{Currency: r.Currency, Day: caps[0], Month: caps[1]})
		now = *set
		return nil
	})
	if err != nil {
		return view.Budget{}, err
	}
	a.urge()
	return a.budgetView(ctx, now, r.Currency)
}

// urge has every payer look again at what it holds back.
func (a *Agent) urge() {
	for _, l := range a.openLeases() {
		l.change(func() { l.urged++ })
	}
}

// watchBudgets tells the user when a part of a day's or a month's budget is spent, until ctx ends.
func (a *Agent) watchBudgets(ctx context.Context) {
	for rest(ctx, alertEvery) {
		if err := a.alert(ctx); err != nil && ctx.Err() == nil {
			a.cfg.Log.Debug("budgets cannot be looked at", "err", err)
		}
	}
}

func (a *Agent) alert(ctx context.Context) error {
	set, err := a.settings(ctx)
	if err != nil {
		return err
	}
	var news []BudgetAlert
	for _, b := range a.budgets(set) {
		if b.Day == noLimit && b.Month == noLimit {
			continue
		}
		more, err := a.newAlerts(ctx, set, b)
		if err != nil {
			return err
		}
		news = append(news, more...)
	}
	if len(news) == 0 {
		return nil
	}
	return a.changeSettings(ctx, func(set *Settings) error {
		all := append(slices.Clone(set.Alerts), news...)
		set.Alerts = all[max(0, len(all)-maxAlerts):]
		return nil
	})
}

// newAlerts returns what the user was not told yet of one currency's budgets.
func (a *Agent) newAlerts(ctx context.Context, set Settings, b Budget) ([]BudgetAlert, error) {
	sum, err := a.spendingOf(ctx, b.Currency)
	if err != nil {
		return nil, err
	}
	var news []BudgetAlert
	now := a.cfg.Clock()
	for i, s := range spans(now) {
		limit := []market.Micro{b.Day, b.Month}[i]
		p := 0
		if limit != noLimit {
			p = reached(sum.spent[i], limit)
		}
		since := s.since.UnixMilli()
		told := slices.ContainsFunc(set.Alerts, func(x BudgetAlert) bool {
			return x.Scope == s.name && x.Currency == b.Currency && x.Since == since && x.Percent >= p
		})
		if p > 0 && !told {
			news = append(news, BudgetAlert{Scope: s.name, Currency: b.Currency, Since: since, Percent: p, At: now.UnixMilli()})
			a.cfg.Log.Warn("budget", "span", s.name, "currency", b.Currency, "percent", p)
		}
	}
	return news, nil
}

// Alerts returns what the user should know of budgets now: of this day, of this month, and of the leases that are not over.
func (a *Agent) Alerts(ctx context.Context) []view.Alert {
	var list []view.Alert
	if set, err := a.settings(ctx); err == nil {
		now := spans(a.cfg.Clock())
		for _, b := range set.Alerts {
			if b.Scope == spanDay && b.Since == now[0].since.UnixMilli() || b.Scope == spanMonth && b.Since == now[1].since.UnixMilli() {
				list = append(list, b.view())
			}
		}
	}
	for _, l := range a.openLeases() {
		if r, _ := l.get(); !r.over() {
			list = append(list, alertViews(r)...)
		}
	}
	slices.SortStableFunc(list, func(a, b view.Alert) int { return cmp.Compare(a.At, b.At) })
	return list
}

// alertViews returns what the user was told of one lease's budget.
func alertViews(r Record) []view.Alert {
	var list []view.Alert
	for _, x := range r.State.Alerts {
		list = append(list, view.Alert{
			Scope: "lease", Lease: r.Lease.String(), Percent: x.Percent, At: x.At,
			Text: fmt.Sprintf("%d %% of the budget of lease %s are used", x.Percent, r.Lease.Short()),
		})
	}
	return list
}
