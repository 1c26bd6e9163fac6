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

func (p *program) payCommand() *cobra.Command {
	var method, amount string
	var asJSON bool
	c := p.action(&cobra.Command{
		Use:   "pay LEASE [--amount AMOUNT]",
		Short: "pay what a lease owes, what its rig asks for, or ahead",
		Long: "Pay for a lease: without --amount what its rig has asked for, or else what is owed. The agent pays by itself what a lease\n" +
			"asks for within its budgets; this is for debts, for more ahead, and for what failed. It returns once the rig has signed that\n" +
			"the money has come. Where a person must act, it says what to do. Ctrl-C leaves the payment to the agent. Nothing is paid\n" +
			"twice: run it again at any time.",
		Example: "  haggle pay train\n  haggle pay 3f9a --amount 2.50\n  haggle pay 3f9a --method hand",
		Args:    cli.Words(1, 1, "LEASE"),
	}, func(ctx context.Context, args []string) error {
		r := view.PayRequest{Method: method}
		if amount != "" {
			m, err := market.ParseMicro(amount)
			if err != nil {
				return err
			}
			if m == 0 {
				return cli.Usage("--amount must be more than nothing", "leave it out for all that is owed")
			}
			r.AmountMicro = int64(m)
		}
		return p.pay(ctx, args[0], r, asJSON)
	})
	c.Flags().StringVar(&method, "method", "", "payment method (default: the lease's own)")
	c.Flags().StringVar(&amount, "amount", "", "what to pay, such as 2.50, in the lease's currency (default: what is asked for or owed)")
	c.Flags().BoolVar(&asJSON, "json", false, "print the lease as JSON")
	_ = c.RegisterFlagCompletionFunc("method", p.methodWords) // it fails only for a flag that is not there
	return c
}

// pay pays for a lease and waits until its rig has signed for the money.
func (p *program) pay(ctx context.Context, id string, r view.PayRequest, asJSON bool) error {
	before, err := ask(ctx, p, func(c *api.AgentClient) (view.Lease, error) { return c.Lease(ctx, id) })
	if err != nil {
		return err
	}
	l, err := ask(ctx, p, func(c *api.AgentClient) (view.Lease, error) { return c.PayLease(ctx, before.ID, r) })
	if err != nil {
		return err
	}
	if l, err = p.awaitPaid(ctx, l, payments(before), !asJSON); err != nil {
		if ctx.Err() != nil {
			p.Say("left; the payment goes on, and `haggle leases %s` shows where it stands", called(l))
			return cli.Exit(cli.ExitInterrupted)
		}
		return err
	}
	if asJSON {
		return p.JSON(l)
	}
	if l.Pay == nil {
		p.Show("lease %s: nothing is open", named(l))
		return nil
	}
	p.Show("lease %s: %s paid in all, signed by the rig; %s used, %s left", named(l), money(l.Pay.Paid), money(l.Spent), money(l.Pay.Balance))
	return nil
}

// payments counts what the rig has signed for.
func payments(l view.Lease) int {
	if l.Pay == nil {
		return 0
	}
	return l.Pay.Payments
}

// awaitPaid returns once the rig has signed for another payment, or asks for none any more. What a person must do is told once.
func (p *program) awaitPaid(ctx context.Context, l view.Lease, before int, talk bool) (view.Lease, error) {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	changes, failed := make(chan view.Lease), make(chan error, 1)
	watcher := p.fork()
	go func() { failed <- watcher.watch(within, l.ID, changes) }()
	teller := payTeller{program: p}
	for payments(l) <= before && l.Pay != nil && l.Pay.Asked != nil {
		if a := l.Pay.Asked; a.State == view.SliceFailed || a.State == view.SliceHeld {
			return l, notPaid(l)
		}
		if talk {
			teller.tell(l)
		}
		select {
		case <-ctx.Done():
			return l, context.Cause(ctx)
		case l = <-changes:
		case err := <-failed:
			return l, err
		}
	}
	return l, nil
}

// notPaid says why a slice is not paid.
func notPaid(l view.Lease) error {
	a := l.Pay.Asked
	if a.State == view.SliceHeld {
		return hinted(market.ClassBudget, "the payment of "+money(a.Amount)+" is held back: "+clean(a.Why), "`haggle budget` shows and changes what may be spent")
	}
	return market.NewError(market.CodePayFailed, "method", l.Pay.Method, "why", a.Why)
}

// payTeller tells a person about the payments of a lease: each thing once. It is used by one goroutine.
type payTeller struct {
	program *program
	told    string // of which slice in which state was told last
	dry     bool   // that the money is used up was told
	alerts  int    // how many alerts were told
}

// tell says what is new.
func (t *payTeller) tell(l view.Lease) {
	for _, a := range l.Alerts[min(t.alerts, len(l.Alerts)):] {
		t.program.Say("%s", clean(a.Text))
	}
	t.alerts = len(l.Alerts)
	if l.Pay == nil {
		return
	}
	if dry := l.Pay.DryMs > 0 && l.State == string(market.JobRunning); dry != t.dry {
		t.dry = dry
		if dry {
			t.program.Say("what was paid is used up; without more the job is ended in %s, and its disk kept", lasting(max(0, market.DryGraceMs-l.Pay.DryMs)))
		}
	}
	a := l.Pay.Asked
	if a == nil {
		t.told = ""
		return
	}
	now := strconv.FormatUint(uint64(a.Slice), 10) + a.State
	if now == t.told {
		return
	}
	t.told = now
	switch a.State {
	case view.SliceWaiting:
		t.waiting(*a)
	case view.SliceFailed, view.SliceHeld:
		t.program.Say("%s (hint: `haggle pay %s` tries again)", asked(*a), called(l))
	}
}

// waiting says what a person must do, with a code for a telephone where there is a terminal.
func (t *payTeller) waiting(a view.PayAsked) {
	t.program.Say("%s", asked(a))
	drawQR(t.program.Err, a.QR)
	if a.QR != "" && !isTTY(t.program.Err) {
		t.program.Say("for a QR code: %s", clean(a.QR))
	}
}

// asked says in one line where a slice stands.
func asked(a view.PayAsked) string {
	switch a.State {
	case view.SliceWaiting:
		if a.Text == "" {
			return awaited(a)
		}
		return "waiting for payment: " + clean(a.Text) + until(a)
	case view.SliceHeld:
		return "a payment of " + money(a.Amount) + " is held back: " + clean(a.Why)
	case view.SliceFailed:
		return "a payment of " + money(a.Amount) + " failed: " + clean(a.Why)
	case view.SliceSent:
		return money(a.Amount) + " sent, the rig has not signed for it yet"
	}
	return money(a.Amount) + " asked for, being paid"
}

// awaited says in a few words that a slice waits for a person.
func awaited(a view.PayAsked) string { return "waiting for payment of " + money(a.Amount) + until(a) }

func until(a view.PayAsked) string {
	if a.Deadline == 0 {
		return ""
	}
	return " (until " + clock(a.Deadline) + ")"
}

// methodWords completes names of payment methods: those that the agent has, where it runs.
func (p *program) methodWords(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	client, err := p.dial()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(c.Context(), completeTime)
	defer cancel()
	s, err := client.Status(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	words := s.Methods
	if c.Flags().Lookup("pay") != nil {
		words = append(words, view.PayNone)
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}
