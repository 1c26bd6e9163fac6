package main

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/view"
	"haggle/market"
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
		h, err := ask(ctx, p, func(c *api.AgentClient) (view.History, error) { return c.History(ctx, o.Owner) })
		if err != nil {
			return err
		}
		return p.printOffer(o, h)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// bidders says who may bid.
func bidders(o view.Offer) string {
	switch {
	case !o.Rentable:
		return "nobody: the cards are shown and not rented"
	case o.Bidders == market.BiddersTrusted:
		return "owners that the rig's owner trusts; `haggle status` shows the key to send"
	}
	return o.Bidders
}

// paying says how a lease of an offer can be paid.
func paying(o view.Offer) string {
	var ways []string
	for _, m := range o.Pays {
		way := "ahead by " + m.Name
		if m.Settles == market.SettlesByHand {
			way += " (its owner confirms by hand)"
		}
		ways = append(ways, way)
	}
	if o.OnCredit {
		most := "without limit"
		if o.Rules.Credit > 0 {
			most = "up to " + money(view.MoneyOf(market.Micro(o.Rules.Credit), o.Price.Currency))
		}
		ways = append(ways, "on credit "+most)
	}
	return strings.Join(ways, ", ")
}

// outcomes says how many leases of the rig ended with a word that both sides signed.
func outcomes(o view.Offer) string {
	if o.Shown == 0 {
		return ""
	}
	return strconv.FormatInt(o.Shown, 10) + " accepted by renters, as the rig counts them"
}

// internet says what jobs reach, and how fast.
func internet(o view.Offer) string {
	if !o.Egress {
		return "jobs do not reach it"
	}
	var line []string
	if o.Host.SlotUp > 0 {
		line = append(line, rate(o.Host.SlotUp)+" up")
	}
	if o.Host.SlotDown > 0 {
		line = append(line, rate(o.Host.SlotDown)+" down")
	}
	if len(line) == 0 {
		return "jobs reach it"
	}
	return "jobs reach it, with " + strings.Join(line, " and ") + " for each card"
}

// rate writes bits a second.
func rate(bits int64) string { return strings.TrimSuffix(cli.Bytes(bits), "B") + "bit/s" }

func diskFree(h market.HostFacts) string {
	if h.DiskFree == 0 {
		return ""
	}
	return cli.Bytes(h.DiskFree)
}

func (p *program) printOffer(o view.Offer, h view.History) error {
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
		"bidders", bidders(o),
		"paying", paying(o),
		"with you", cmp.Or(cli.HistoryLine(h), "no lease yet"),
		"outcomes", outcomes(o),
		"reach", o.Reach,
		"country", o.Country,
		"isolation", o.Isolation,
		"held", strings.Join(o.Protections, ", "),
		"weak", strings.Join(o.Weak, ", "),
		"internet", internet(o),
		"content", o.Content,
		"host", strings.Join(host, ", "),
		"disk free", diskFree(o.Host),
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
