//go:build linux

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"haggle/internal/cli"
	"haggle/internal/config"
	"haggle/internal/view"
	"haggle/market"
)

func (p *program) statusCommand() *cobra.Command {
	var asJSON bool
	c := p.action(&cobra.Command{
		Use: "status", Short: "How the rig is: network, engine, cards, leases", Example: "  haggled status\n  haggled status --json",
	}, func(ctx context.Context, _ []string) error {
		daemon, err := p.daemon()
		if err != nil {
			return err
		}
		s, err := daemon.Status(ctx)
		if err != nil {
			return err
		}
		if asJSON {
			return p.JSON(s)
		}
		return p.showStatus(s)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print for programs")
	return c
}

func (p *program) showStatus(s view.RigStatus) error {
	network := fmt.Sprintf("%s, %d peers", s.Network.Name, s.Network.Peers)
	if !s.Network.Ready {
		network += ", not joined: " + s.Network.Reason
	}
	takes := "takes leases"
	switch {
	case s.Draining:
		takes = "draining: no new leases, ends with the last one"
	case s.Paused:
		takes = "paused: no new leases"
	}
	facts := []string{
		"rig", s.Name + ", " + takes, "key", s.Network.Key, "network", network, "engine", s.Engine,
		"slots", fmt.Sprintf("%d, %d free", s.Cards, s.Free),
		"bidders", bidders(s), "isolation", isolation(s), "weak", strings.Join(s.Weak, ", "),
		"pays", pays(s), "credit", credit(s), "price", market.Micro(s.Prices.Slot).String() + " " + s.Prices.Currency + " per slot-hour",
		"images", orNone(strings.Join(s.Images, ", ")),
		"visible", visible(s.Visible), "blocked", blocked(s.Blocked),
		"up", config.FormatDuration(time.Duration(s.Uptime)*time.Second) + ", version " + s.Version + ", process " + strconv.Itoa(s.PID),
	}
	if !market.IsLab(s.Network.Name) {
		name := "addresses"
		for _, address := range s.Network.Addrs {
			facts = append(facts, name, address)
			name = ""
		}
		facts = append(facts, cli.Sources(s.Network.Sources)...)
	}
	for _, w := range s.Warnings {
		facts = append(facts, "warning", w)
	}
	if err := p.Facts(facts...); err != nil || len(s.Leases) == 0 {
		return err
	}
	p.Show("")
	rows := make([][]string, 0, len(s.Leases))
	for _, l := range s.Leases {
		model := l.Model
		if l.Simulated {
			model += " " + cli.Badge
		}
		state := l.State
		if l.EndsBy > 0 {
			state += ", ends by " + clock(l.EndsBy)
		}
		if l.DiskFull {
			state += ", disk full"
		}
		rows = append(rows, []string{l.ID[:min(8, len(l.ID))], state, strconv.Itoa(l.Slots) + " × " + model, l.Spent.Text + " " + l.Spent.Currency, paid(l), risk(l), traffic(l), l.Renter})
	}
	return p.Table("LEASE STATE CARDS SPENT PAID RISK TRAFFIC RENTER", rows)
}

// traffic says what a job received and sent.
func traffic(l view.Lease) string {
	if !l.Egress {
		return "" // it has no network
	}
	return cli.Bytes(l.In) + " in, " + cli.Bytes(l.Out) + " out"
}

// pays lists the ways in which leases can be paid ahead.
func pays(s view.RigStatus) string {
	var list []string
	for _, m := range s.Pays {
		how := m.Name
		if m.Settles == market.SettlesByHand {
			how += " (`haggled confirm` says that it came)"
		}
		list = append(list, how)
	}
	if len(list) == 0 {
		return "nothing: no payment program works; leases are owed and settled later"
	}
	return strings.Join(list, ", ")
}

// credit says what trusted owners may owe, and what all owe now.
func credit(s view.RigStatus) string {
	most := "without limit"
	if !s.Credit.Unlimited {
		most = "up to " + cli.Amount(s.Credit.Most) + " for each trusted owner"
	}
	if s.Credit.Now.Micro > 0 {
		most += "; " + cli.Amount(s.Credit.Now) + " are owed now: `haggled ledger`"
	}
	return most
}

// paid says what was paid for a lease, and what it can cost the rig now.
func paid(l view.Lease) string {
	switch {
	case l.Pay != nil && l.Pay.Asked != nil:
		return l.Pay.Paid.Text + ", " + cli.Amount(l.Pay.Asked.Amount) + " asked for: " + l.Pay.Asked.State
	case l.Pay != nil:
		return l.Pay.Paid.Text
	}
	return ""
}

// risk says the most that the rig can lose by a lease now.
func risk(l view.Lease) string {
	if l.Risk == nil {
		return ""
	}
	return l.Risk.Lose.Text
}

// bidders says who may bid.
func bidders(s view.RigStatus) string {
	switch {
	case s.Bidders != market.BiddersTrusted:
		return s.Bidders
	case len(s.Trusted) == 0:
		return "nobody: no owner is trusted yet; `haggled trust KEY` adds one"
	case len(s.Trusted) == 1:
		return "1 trusted owner; `haggled trust` lists it"
	}
	return strconv.Itoa(len(s.Trusted)) + " trusted owners; `haggled trust` lists them"
}

// isolation says what keeps jobs apart, and how much of it was seen to hold.
func isolation(s view.RigStatus) string {
	if tried := len(s.Protections) + len(s.Weak); tried > 0 {
		return fmt.Sprintf("%s: %d of %d protections hold, as tried out from inside a job", s.Isolation, len(s.Protections), tried)
	}
	return s.Isolation
}

// orNone says that a list is empty.
func orNone(list string) string {
	if list == "" {
		return "none"
	}
	return list
}

func (p *program) priceCommand() *cobra.Command {
	var disk, in, out, currency string
	c := p.action(&cobra.Command{
		Use: "price [SLOT-HOUR]", Short: "Show the prices, or set what the next leases cost",
		Long: "Show the prices, or set what the next leases cost. Leases that are signed keep theirs. The price outlives a restart;\n" +
			"the configuration file's holds for a rig that nobody set a price for.",
		Example: "  haggled price\n  haggled price 0.25\n  haggled price 0.25 --disk 0.0001 --traffic-out 0.01",
		Args:    cli.Words(0, 1, "the price per slot-hour"),
	}, func(ctx context.Context, args []string) error {
		return p.price(ctx, args, map[string]string{"disk": disk, "in": in, "out": out, "currency": currency})
	})
	c.Flags().StringVar(&disk, "disk", "", "per GB-hour of disk")
	c.Flags().StringVar(&in, "traffic-in", "", "per GB into a job")
	c.Flags().StringVar(&out, "traffic-out", "", "per GB out of a job")
	c.Flags().StringVar(&currency, "currency", "", "such as USD")
	return c
}

func (p *program) price(ctx context.Context, args []string, set map[string]string) error {
	daemon, err := p.daemon()
	if err != nil {
		return err
	}
	s, err := daemon.Status(ctx)
	if err != nil {
		return err
	}
	prices, changed := s.Prices, false
	if len(args) > 0 {
		set["slot"] = args[0]
	}
	for name, rate := range map[string]*market.Rate{"slot": &prices.Slot, "disk": &prices.Disk, "in": &prices.In, "out": &prices.Out} {
		if set[name] == "" {
			continue
		}
		m, err := market.ParseMicro(set[name])
		if err != nil {
			return err
		}
		*rate, changed = market.Rate(m), true
	}
	if set["currency"] != "" {
		prices.Currency, changed = set["currency"], true
	}
	if changed {
		if err := daemon.SetPrices(ctx, prices); err != nil {
			return err
		}
	}
	return p.Facts("per slot-hour", prices.Slot.String()+" "+prices.Currency, "per GB-hour of disk", prices.Disk.String(),
		"per GB in", prices.In.String(), "per GB out", prices.Out.String())
}

func (p *program) pauseCommand() *cobra.Command {
	return p.order("pause", "Take no new leases until resume; running ones go on", "the rig takes no new leases; `haggled resume` changes that",
		func(ctx context.Context, d ownerOrders) error { return d.Pause(ctx) })
}

func (p *program) resumeCommand() *cobra.Command {
	return p.order("resume", "Take new leases again, after pause or drain", "the rig takes leases",
		func(ctx context.Context, d ownerOrders) error { return d.Resume(ctx) })
}

func (p *program) drainCommand() *cobra.Command {
	var now bool
	c := p.order("drain", "Take no new leases and end with the last one; --now ends running ones after their notice", "the rig is draining; `haggled status` shows what still runs",
		func(ctx context.Context, d ownerOrders) error { return d.Drain(ctx, now) })
	c.Example = "  haggled drain\n  haggled drain --now"
	c.Flags().BoolVar(&now, "now", false, "end running leases too, after their notice")
	return c
}

// ownerOrders is what the short commands ask of the daemon.
type ownerOrders interface {
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
	Drain(ctx context.Context, now bool) error
}

// order makes a command that gives the daemon one order.
func (p *program) order(name, short, done string, do func(context.Context, ownerOrders) error) *cobra.Command {
	return p.action(&cobra.Command{Use: name, Short: short, Example: "  haggled " + name}, func(ctx context.Context, _ []string) error {
		daemon, err := p.daemon()
		if err != nil {
			return err
		}
		if err := do(ctx, daemon); err != nil {
			return err
		}
		p.Say("%s", done)
		return nil
	})
}
