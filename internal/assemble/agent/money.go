package agent

import (
	"haggle/internal/config"
	"haggle/internal/pay"
	"haggle/internal/renter"
	"haggle/market"
)

// purse makes what runs the agent's payment programs: those beside this program, and those in the folders of pay.path.
func (a *Agent) purse() (*pay.Programs, error) {
	c := a.cfg.Agent
	return pay.New(pay.Config{
		Folders: pay.Folders(c.PayPath, a.log), Settings: c.Pay, Network: c.Network, Side: pay.Payer, Log: a.log,
	})
}

// budgets returns what may be spent where the user has set nothing else.
func budgets(c config.Agent) ([]renter.Budget, error) {
	if c.Budget.Day == "" && c.Budget.Month == "" {
		return nil, nil
	}
	b := renter.Budget{Currency: c.Currency, Day: market.Micro(market.Unlimited), Month: market.Micro(market.Unlimited)}
	for _, x := range []struct {
		text string
		into *market.Micro
	}{{c.Budget.Day, &b.Day}, {c.Budget.Month, &b.Month}} {
		if x.text == "" {
			continue
		}
		m, err := market.ParseMicro(x.text)
		if err != nil {
			return nil, err
		}
		*x.into = m
	}
	return []renter.Budget{b}, nil
}
