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
	var job jobFlags
	c := p.action(&cobra.Command{
		Use:   "show OFFER",
		Short: "show one offer: what you checked, what is only claimed, and the worst case",
		Long: "Show one offer, after asking its rig again: what this machine saw itself, what only the rig says, what nobody told, and the worst\n" +
			"that can happen, in money and minutes. The flags say what your job is, for its whole price; an hour of one card where they say\n" +
			"nothing. OFFER is the first digits of its id, or the name of its rig.",
		Example: "  haggle show 3f9a12c4\n  haggle show attic --for 8h --disk 200GB --image pytorch\n  haggle show 3f9a12c4 --json",
		Args:    cli.Words(1, 1, "OFFER"),
	}, func(ctx context.Context, args []string) error { return p.show(ctx, args[0], job, asJSON) })
	job.register(c, "1h")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.ValidArgsFunction = func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return p.offerWords(c.Context()), cobra.ShellCompDirectiveNoFileComp
	}
	return c
}

func (p *program) show(ctx context.Context, id string, f jobFlags, asJSON bool) error {
	job, err := f.shape()
	if err != nil {
		return err
	}
	o, err := ask(ctx, p, func(c *api.AgentClient) (view.Offer, error) { return c.LookAt(ctx, id, job) })
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
	if o.Source == market.SourceSnapshot || o.Source == market.SourceRemembered {
		p.Say("its rig does not answer now: this is its word as others or this machine kept it")
	}
	if err := p.printOffer(o, h, job); err != nil {
		return err
	}
	return p.printWhy(o)
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

func (p *program) printOffer(o view.Offer, h view.History, job view.JobShape) error {
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
		"rig", view.Named(o.GivenName, o.Rig)+"  "+o.RigKey,
		"gpu", cards(o.Slots, o.Model, o.Simulated, o.Isolation)+", "+strconv.Itoa(o.Free)+" free, "+strconv.FormatInt(o.MemoryGiB, 10)+" GiB each",
		"vendor", o.Vendor,
		"price", per,
		"disk", hour(o.DiskPrice, "GB-hour"),
		"traffic", hour(o.InPrice, "GB in")+", "+hour(o.OutPrice, "GB out"),
		"your job", jobPrice(o, job),
		"bidders", bidders(o),
		"paying", paying(o),
		"with you", cmp.Or(cli.HistoryLine(h), "no lease yet"),
		"outcomes", outcomes(o),
		"reach", o.Reach,
		"country", standsIn(o),
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
		"heard", heardFrom(o),
	); err != nil {
		return err
	}
	if err := p.printClaims(o.Claims); err != nil || len(o.SlotDetail) == 0 {
		return err
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
