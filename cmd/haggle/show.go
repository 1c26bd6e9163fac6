package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/view"
)

func (p *program) showCommand() *cobra.Command {
	var asJSON bool
	c := p.action(&cobra.Command{
		Use:     "show OFFER",
		Short:   "show one offer with all that its rig claims",
		Example: "  haggle show 3f9a12c4\n  haggle show 3f9a12c4 --json",
		Args:    cli.Words(1, 1, "OFFER"),
	}, func(ctx context.Context, args []string) error {
		o, err := ask(ctx, p, func(c *api.AgentClient) (view.Offer, error) { return c.Offer(ctx, args[0]) })
		if err != nil {
			return err
		}
		if asJSON {
			return p.JSON(o)
		}
		return p.printOffer(o)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (p *program) printOffer(o view.Offer) error {
	hour := func(m view.Money, per string) string { return money(m) + " per " + per }
	per := hour(o.Price, "slot-hour")
	host := []string{}
	if o.Host.CPU != "" {
		host = append(host, o.Host.CPU)
	}
	if o.Host.Kernel != "" {
		host = append(host, "kernel "+o.Host.Kernel)
	}
	if err := p.Facts("offer", o.Hash,
		"rig", o.Rig+"  "+o.RigKey,
		"gpu", cards(o.Slots, o.Model, o.Simulated, o.Isolation)+", "+strconv.Itoa(o.Free)+" free, "+strconv.FormatInt(o.MemoryGiB, 10)+" GiB each",
		"vendor", o.Vendor,
		"price", per,
		"disk", hour(o.DiskPrice, "GB-hour"),
		"traffic", hour(o.InPrice, "GB in")+", "+hour(o.OutPrice, "GB out"),
		"reach", o.Reach,
		"country", o.Country,
		"isolation", o.Isolation,
		"host", strings.Join(host, ", "),
		"images", strings.Join(o.Images, ", "),
		"lease", lasting(o.Rules.MinMs)+" to "+lasting(o.Rules.MaxMs)+", receipts every "+lasting(o.Rules.IntervalMs),
		"valid", "for "+strconv.FormatInt(o.ExpiresIn, 10)+" s more, renewed by the rig",
		"source", o.Source,
	); err != nil {
		return err
	}
	if len(o.SlotDetail) == 0 {
		return nil
	}
	p.Show("")
	var rows [][]string
	for _, s := range o.SlotDetail {
		state := "free"
		if s.LeasedUntil != 0 {
			state = "leased"
		}
		rows = append(rows, []string{strconv.Itoa(int(s.Index)), card(s.Model, o.Simulated, o.Isolation), s.RawModel, s.Health, state})
	}
	return p.Table("SLOT GPU NAME HEALTH STATE", rows)
}
