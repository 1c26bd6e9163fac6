package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/config"
	"haggle/internal/view"
	"haggle/market"
)

// readEvery is how often an agent is asked how far it has read a large market.
const readEvery = 250 * time.Millisecond

// commonFacets are counted where --facets names no fields.
const commonFacets = "gpu_name,geolocation,dph,reach"

type offersFlags struct {
	sort, facets, wait   string
	explain, watch, json bool
	limit                int
	job                  jobFlags
	alert                alertFlags
}

func (p *program) offersCommand() *cobra.Command {
	var f offersFlags
	c := p.action(&cobra.Command{
		Use:   "offers [QUERY…]",
		Short: "list the offers that match a query",
		Long: "List the offers that match a query. Every clause must hold; nothing is dropped or added silently. `haggle fields` lists what a\n" +
			"query can ask for; @NAME stands for a saved query (`haggle query`).\n\n" +
			"TOTAL is the whole price of your job: --for, --gpus, --disk, --traffic-in, --traffic-out and --image say what it is, an hour of\n" +
			"one card where they say nothing. The order is what a newcomer needs: checked by you, pays by itself, direct reach, key seen\n" +
			"longest, then TOTAL; --sort changes it. HEARD says whose word a row is and how old: owner for its rig, snapshot for another's\n" +
			"shelf, remembered for this machine's disk. `haggle show OFFER` asks the rig again and says why a row stands where it stands.\n\n" +
			"An offer marked " + cli.TrustedOnly + " takes bids only from owners that its rig's owner trusts.\n\n" + watchHelp,
		Example: "  haggle offers 'gpu_name=RTX_4090 dph<0.60'\n" +
			"  haggle offers 'num_gpus>=2 gpu_ram>=24 geolocation in [DE,NL]' --gpus 2 --for 8h --sort total,rtt\n" +
			"  haggle offers 'gpu_name=H100*' --explain\n" +
			"  haggle offers --facets=gpu_name,geolocation\n" +
			"  haggle offers @cheap 'gpu_ram>=40' --watch --exec 'notify-send haggle'",
		Args: cobra.ArbitraryArgs,
	}, func(ctx context.Context, args []string) error {
		if f.facets == commonFacets && len(args) > 0 && areFields(args[0]) {
			f.facets, args = args[0], args[1:] // --facets FIELD, as people type it: no query is a bare name
		}
		return p.offers(ctx, strings.Join(args, " "), f)
	})
	flags := c.Flags()
	flags.StringVar(&f.sort, "sort", "", "sort by fields, the first counts most, each with a trailing - for descending: total,rtt or gpu_ram-")
	flags.BoolVar(&f.explain, "explain", false, "say how many offers each clause left, and the nearest miss")
	flags.StringVar(&f.facets, "facets", "", "count the values of fields among what the rest of the query leaves: --facets=FIELD,…")
	flags.Lookup("facets").NoOptDefVal = commonFacets
	flags.IntVar(&f.limit, "limit", 0, "list so many at most (default: all)")
	flags.StringVar(&f.wait, "wait", "2s", "read on for so long at most while a large market is not read whole; 0s lists what is known first")
	flags.BoolVar(&f.json, "json", false, "print JSON: an array, with --explain or --facets an object, with --watch a line for each change")
	f.job.register(c, "1h")
	f.alert.register(c, &f.watch)
	completeFields(c, "sort", "facets")
	p.completeQuery(c)
	return c
}

// areFields reports whether a word is a list of fields, and so no query.
func areFields(word string) bool {
	for name := range strings.SplitSeq(word, ",") {
		if name == "" || market.Rank(nil, name) != nil {
			return false
		}
	}
	return true
}

// question makes the question of a command line. What is wrong with it is said at once, with no agent and no network; a query that names a
// saved one is left to the agent.
func (f *offersFlags) question(query string) (view.OfferQuery, error) {
	job, err := f.job.shape()
	q := view.OfferQuery{Query: query, Sort: f.sort, Explain: f.explain, Facets: f.facets, Limit: f.limit, Job: job}
	switch {
	case err != nil:
		return q, err
	case f.limit < 0:
		return q, cli.Usage("--limit is less than nothing", "leave it out for all")
	}
	if err := checkQuery(query); err != nil {
		return q, err
	}
	return q, market.Rank(nil, f.sort)
}

// checkQuery refuses a query that makes no sense, as far as this program knows it.
func checkQuery(query string) error {
	if _, err := market.ParseQuery(query); err != nil && !strings.Contains(query, "@") {
		return err
	}
	return nil
}

func (p *program) offers(ctx context.Context, query string, f offersFlags) error {
	q, err := f.question(query)
	if err != nil {
		return err
	}
	if f.watch {
		return p.watchOffers(ctx, q, f)
	}
	wait, err := config.ParseDuration(f.wait)
	if err != nil {
		return cli.Usage("--wait "+f.wait+" is no time", "write a time such as 2s, or 0s")
	}
	list, err := p.readOffers(ctx, q, wait)
	if err != nil {
		return err
	}
	if err := p.printOffers(list, f); err != nil {
		return err
	}
	if list.Matches > 0 || len(list.Offers) > 0 {
		return nil
	}
	return p.noMatch(ctx, q, list)
}

// readOffers asks for offers, and again for a while where the market is so large that it is not read whole yet.
func (p *program) readOffers(ctx context.Context, q view.OfferQuery, wait time.Duration) (view.OfferList, error) {
	find := func() (view.OfferList, error) {
		return ask(ctx, p, func(c *api.AgentClient) (view.OfferList, error) { return c.Offers(ctx, q) })
	}
	list, err := find()
	if err != nil || !list.Reading {
		return list, err
	}
	onTerminal := isTerminal(p.Err)
	tick, limit := time.NewTicker(readEvery), time.NewTimer(wait)
	defer tick.Stop()
	defer limit.Stop()
	for over := wait == 0; !over && list.Reading && err == nil; {
		if onTerminal {
			_, _ = fmt.Fprintf(p.Err, "\r%s\x1b[K", readSoFar(list)) // where stderr is closed nobody listens
		}
		select {
		case <-limit.C:
			over = true
		case <-ctx.Done():
			over = true
		case <-tick.C:
			list, err = find()
		}
	}
	if onTerminal {
		_, _ = fmt.Fprint(p.Err, "\r\x1b[K")
	}
	if err == nil && list.Reading {
		p.Say("%s; the agent reads on: ask again, or --wait 30s", readSoFar(list))
	}
	return list, err
}

// readSoFar says how much of a market is read.
func readSoFar(list view.OfferList) string {
	return grouped(list.Known) + " of about " + grouped(list.About) + " offers read"
}

// grouped writes a number with spaces between thousands, as people read large ones.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + " " + text[at:]
	}
	return text
}

// noMatch is the error of a list without offers: its hint is the nearest miss.
func (p *program) noMatch(ctx context.Context, q view.OfferQuery, list view.OfferList) error {
	if list.Known == 0 {
		return market.NewError(market.CodeNoOffers)
	}
	if list.Funnel == nil {
		q.Explain, q.Facets = true, ""
		again, err := ask(ctx, p, func(c *api.AgentClient) (view.OfferList, error) { return c.Offers(ctx, q) })
		if err == nil {
			list.Funnel = again.Funnel
		}
	}
	if list.Funnel == nil || list.Funnel.Nearest == "" {
		return market.NewError(market.CodeNoMatch, "offers", strconv.Itoa(list.Known))
	}
	return &cli.Hinted{
		Class: market.ClassNotFound, Message: "none of " + strconv.Itoa(list.Known) + " offers matches", Hint: "nearest: " + list.Funnel.Nearest,
	}
}
