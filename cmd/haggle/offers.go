package main

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/view"
	"haggle/market"
)

// watchEvery is how often --watch looks again.
const watchEvery = 2 * time.Second

type offersFlags struct {
	sort                 string
	explain, watch, json bool
}

func (p *program) offersCommand() *cobra.Command {
	var f offersFlags
	c := p.action(&cobra.Command{
		Use:   "offers [QUERY…]",
		Short: "list the offers that match a query",
		Long: "List the offers that match a query. Every clause must hold; nothing is dropped or added silently. An offer marked\n" +
			cli.TrustedOnly + " takes bids only from owners that its rig's owner trusts.\n\n" + fieldHelp(),
		Example: "  haggle offers 'gpu_name=RTX_4090 dph<0.60'\n" +
			"  haggle offers 'num_gpus>=2 gpu_ram>=24 geolocation in [DE,NL]' --sort dph\n" +
			"  haggle offers 'gpu_name=H100*' --explain",
		Args: cobra.ArbitraryArgs,
	}, func(ctx context.Context, args []string) error { return p.offers(ctx, strings.Join(args, " "), f) })
	c.Flags().StringVar(&f.sort, "sort", "", "sort by a field, with a trailing - for descending")
	c.Flags().BoolVar(&f.explain, "explain", false, "say how many offers each clause left, and the nearest miss")
	c.Flags().BoolVar(&f.watch, "watch", false, "list again whenever something changes, until Ctrl-C")
	c.Flags().BoolVar(&f.json, "json", false, "print JSON: an array, or with --explain an object")
	return c
}

// fieldHelp lists what a query can ask about.
func fieldHelp() string {
	var b strings.Builder
	b.WriteString("Fields:\n")
	for _, f := range market.Fields() {
		b.WriteString("  " + f.Name + strings.Repeat(" ", max(1, 14-len(f.Name))) + f.Help + ", such as " + f.Example + "\n")
	}
	return b.String()
}

func (p *program) offers(ctx context.Context, query string, f offersFlags) error {
	if _, err := market.ParseQuery(query); err != nil {
		return err // said at once, with no agent and no network
	}
	q := view.OfferQuery{Query: query, Sort: f.sort, Explain: f.explain}
	find := func() (view.OfferList, error) {
		return ask(ctx, p, func(c *api.AgentClient) (view.OfferList, error) { return c.Offers(ctx, q) })
	}
	list, err := find()
	if err != nil {
		return err
	}
	if f.watch {
		return p.watchOffers(ctx, list, f, find)
	}
	if err := p.printOffers(list, f); err != nil {
		return err
	}
	switch {
	case len(list.Offers) > 0:
		return nil
	case list.Known == 0:
		return market.NewError(market.CodeNoOffers)
	default:
		return market.NewError(market.CodeNoMatch, "offers", strconv.Itoa(list.Known))
	}
}

// watchOffers prints the list, and again whenever it is another, until ctx ends.
func (p *program) watchOffers(ctx context.Context, list view.OfferList, f offersFlags, find func() (view.OfferList, error)) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	last := ""
	for {
		if now := fingerprint(list); now != last {
			if last != "" && !f.json {
				p.Show("")
			}
			last = now
			if err := p.printOffers(list, f); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		var err error
		if list, err = find(); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// fingerprint says what of a list is worth printing it again. Ids and ages change with every renewal.
func fingerprint(list view.OfferList) string {
	var b strings.Builder
	for _, o := range list.Offers {
		b.WriteString(o.RigKey + strconv.Itoa(o.Free) + "/" + strconv.Itoa(o.Slots) + o.Model + o.Price.Text + "\n")
	}
	return b.String() + list.Reason
}

func (p *program) printOffers(list view.OfferList, f offersFlags) error {
	if list.Reason != "" {
		p.Say("the list may be short: %s", clean(list.Reason))
	}
	switch {
	case f.json && f.explain:
		return p.JSON(list)
	case f.json && list.Offers == nil:
		return p.JSON([]view.Offer{})
	case f.json:
		return p.JSON(list.Offers)
	}
	if len(list.Offers) > 0 {
		if err := printOfferTable(p, list.Offers); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(list.Offers, func(o view.Offer) bool { return o.Bidders == market.BiddersTrusted }) {
		p.Say("%s: bids are taken only from owners that the rig's owner trusts; `haggle status` shows the key to send", cli.TrustedOnly)
	}
	return p.printFunnel(list.Funnel)
}

func printOfferTable(p *program, offers []view.Offer) error {
	var rows [][]string
	for _, o := range offers {
		rows = append(rows, []string{
			o.ID, o.Rig, offered(o), strconv.Itoa(o.Free) + "/" + strconv.Itoa(o.Slots),
			strconv.FormatInt(o.MemoryGiB, 10) + " GiB", money(o.Price), o.Reach, o.Country, strings.Join(o.Images, ","),
		})
	}
	return p.Table("OFFER RIG GPU FREE MEMORY PRICE/H REACH COUNTRY IMAGES", rows)
}

// printFunnel shows what each clause left.
func (p *program) printFunnel(f *view.Funnel) error {
	if f == nil {
		return nil
	}
	rows := [][]string{{"all known offers", strconv.Itoa(f.Known)}}
	for _, s := range f.Steps {
		rows = append(rows, []string{s.Clause, strconv.Itoa(s.Left)})
	}
	if err := p.Table("CLAUSE LEFT", rows); err != nil {
		return err
	}
	if f.Nearest != "" {
		p.Show("nearest: %s", clean(f.Nearest))
	}
	return nil
}
