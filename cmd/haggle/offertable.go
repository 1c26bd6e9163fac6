package main

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"haggle/internal/cli"
	"haggle/internal/config"
	"haggle/internal/view"
	"haggle/market"
)

func (p *program) printOffers(list view.OfferList, f offersFlags) error {
	if list.Reason != "" {
		p.Say("the list may be short: %s", clean(list.Reason))
	}
	switch {
	case f.json && (f.explain || f.facets != ""):
		return p.JSON(list)
	case f.json && list.Offers == nil:
		return p.JSON([]view.Offer{})
	case f.json:
		return p.JSON(list.Offers)
	}
	if len(list.Offers) > 0 {
		if err := p.printOfferTable(list.Offers, f.job); err != nil {
			return err
		}
	}
	if more := list.Matches - len(list.Offers); more > 0 && len(list.Offers) > 0 {
		p.Say("%s more match", grouped(more))
	}
	if slices.ContainsFunc(list.Offers, func(o view.Offer) bool { return o.Bidders == market.BiddersTrusted }) {
		p.Say("%s: bids are taken only from owners that the rig's owner trusts; `haggle status` shows the key to send", cli.TrustedOnly)
	}
	if err := p.printFacets(list.Facets); err != nil {
		return err
	}
	return p.printFunnel(list.Funnel)
}

func (p *program) printOfferTable(offers []view.Offer, job jobFlags) error {
	header := "OFFER RIG GPU FREE MEMORY PRICE/H TOTAL"
	if job.image != "" {
		header += " START"
	}
	header += " REACH COUNTRY HEARD IMAGES"
	var rows [][]string
	for _, o := range offers {
		row := []string{
			o.ID, view.Named(o.GivenName, o.Rig), offered(o), strconv.Itoa(o.Free) + "/" + strconv.Itoa(o.Slots),
			strconv.FormatInt(o.MemoryGiB, 10) + " GiB", money(o.Price), total(o),
		}
		if job.image != "" {
			row = append(row, starts(o.StartS))
		}
		rows = append(rows, append(row, o.Reach, country(o), heard(o), strings.Join(o.Images, ",")))
	}
	return p.Table(header, rows)
}

// total is the whole price of the user's job, where it is known.
func total(o view.Offer) string {
	if o.Total == nil {
		return ""
	}
	return money(*o.Total)
}

// starts says in how long a job starts.
func starts(s *int64) string {
	switch {
	case s == nil:
		return "?"
	case *s == 0:
		return "at once"
	}
	return "~" + lasting(*s*1000)
}

// country is where a rig stands, with a mark where something speaks for it or against.
func country(o view.Offer) string {
	switch market.ResidencyLevel(o.Residency) {
	case market.ResidencyAddress, market.ResidencyRoundTrip:
		return o.Country + " ✓"
	case market.ResidencyRefuted:
		return o.Country + " ✗"
	}
	return o.Country
}

// heard says whose word an offer is, and how old.
func heard(o view.Offer) string {
	if o.AgeS == nil {
		return o.Source
	}
	return o.Source + " " + old(*o.AgeS)
}

// old writes an age in the largest whole unit that fits.
func old(s int64) string {
	d := time.Duration(s) * time.Second
	for _, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute} {
		if d >= unit {
			return config.FormatDuration(d.Truncate(unit))
		}
	}
	return config.FormatDuration(d)
}

// facetBar is the length of the longest bar, in characters.
const facetBar = 30

// printFacets shows how often each value is there, with bars on a terminal.
func (p *program) printFacets(facets []view.Facet) error {
	bars := isTerminal(p.Out)
	for _, f := range facets {
		most := 1
		for _, v := range f.Values {
			most = max(most, v.Offers)
		}
		var rows [][]string
		for _, v := range f.Values {
			row := []string{v.Value, strconv.Itoa(v.Offers), strconv.Itoa(v.Slots)}
			if bars {
				row = append(row, strings.Repeat("█", max(1, v.Offers*facetBar/most)))
			}
			rows = append(rows, row)
		}
		if f.More > 0 {
			rows = append(rows, []string{"(" + strconv.Itoa(f.More) + " more values)", "", ""})
		}
		if f.Unknown > 0 {
			rows = append(rows, []string{"(not said)", strconv.Itoa(f.Unknown), ""})
		}
		p.Show("")
		if err := p.Table(strings.ToUpper(clean(f.Field))+" OFFERS SLOTS", rows); err != nil {
			return err
		}
	}
	return nil
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
