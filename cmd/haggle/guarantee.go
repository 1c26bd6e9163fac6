package main

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/config"
	"haggle/internal/view"
	"haggle/market"
)

// guaranteeFlags are the flags of guarantee.
type guaranteeFlags struct {
	rig, renter, amount, currency, until, file string
}

func (p *program) guaranteeCommand() *cobra.Command {
	var f guaranteeFlags
	c := p.action(&cobra.Command{
		Use:   "guarantee --rig KEY --renter KEY --amount AMOUNT --until WHEN -o FILE",
		Short: "guarantee to a rig's owner what a renter may owe",
		Long: "Sign that you owe the owner of rigs what a renter does not pay, up to an amount over all leases, for leases that begin before a\n" +
			"time. Send the file to the renter, who gives it to `haggle run --guarantee FILE`. The rig's owner must trust you as a\n" +
			"guarantor. It cannot be taken back: it is your money. In a dispute of such a lease your word decides: `haggle decide`.",
		Example: "  haggle guarantee --rig 12D3KooWGaroCDSKTx78GU33iGoydSUaZZzfJvp7PGQLtUd5LV6x \\\n" +
			"    --renter 12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN --amount 20 --until 30d -o ada.guarantee",
	}, func(ctx context.Context, _ []string) error {
		knobs, err := p.config()
		if err != nil {
			return err
		}
		r, err := f.request(time.Now())
		if err != nil {
			return err
		}
		r.Currency = cmp.Or(f.currency, knobs.Currency)
		sealed, err := ask(ctx, p, func(c *api.AgentClient) ([]byte, error) { return c.Guarantee(ctx, r) })
		if err != nil {
			return err
		}
		if err := p.put(f.file, "guarantee", sealed); err != nil || f.file == stdout {
			return err
		}
		p.Say("wrote %s: up to %s %s for leases that begin before %s (hint: the renter uses it with `haggle run --guarantee %s`)",
			f.file, market.Micro(r.AmountMicro), r.Currency, moment(r.Until), f.file)
		return nil
	})
	c.Flags().StringVar(&f.rig, "rig", "", "key of the owner of the rigs that is promised")
	c.Flags().StringVar(&f.renter, "renter", "", "key of the renter that it stands for")
	c.Flags().StringVar(&f.amount, "amount", "", "the most, over all leases, such as 20.00")
	c.Flags().StringVar(&f.currency, "currency", "", "currency of the amount (default: the configured one, USD)")
	c.Flags().StringVar(&f.until, "until", "30d", "how long leases may begin that it stands for: a time such as 30d, or a day such as 2027-01-31")
	c.Flags().StringVarP(&f.file, "output", "o", "", "file to write, - for stdout")
	return c
}

// request reads the flags.
func (f *guaranteeFlags) request(now time.Time) (view.GuaranteeRequest, error) {
	r := view.GuaranteeRequest{Rig: f.rig, Renter: f.renter}
	for _, w := range []struct{ flag, value string }{{"--rig", f.rig}, {"--renter", f.renter}, {"--amount", f.amount}, {"--output", f.file}} {
		if w.value == "" {
			return r, cli.Usage("guarantee needs "+w.flag, "see `haggle guarantee --help`")
		}
	}
	for _, key := range []string{f.rig, f.renter} {
		if _, err := market.ParseKey(key); err != nil {
			return r, err
		}
	}
	m, err := market.ParseMicro(f.amount)
	if err != nil || m == 0 {
		return r, cli.Usage("--amount "+f.amount+" is no amount to guarantee", "such as 20.00")
	}
	r.AmountMicro = int64(m)
	until, err := time.ParseInLocation(time.DateOnly, f.until, now.Location())
	if err != nil {
		d, err := config.ParseDuration(f.until)
		if err != nil {
			return r, cli.Usage("--until "+f.until+" is neither a time nor a day", "write 30d or 2027-01-31")
		}
		until = now.Add(d)
	}
	if !until.After(now) {
		return r, cli.Usage("--until "+f.until+" is over already", "write 30d or 2027-01-31")
	}
	r.Until = until.UnixMilli()
	return r, nil
}
