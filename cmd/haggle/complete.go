package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"haggle/internal/view"
)

// completeTime is how long a shell waits for the names of leases.
const completeTime = time.Second

// places makes a shell complete leases where a command takes them: the first argument, or, with "cp", either side of a copy.
func (p *program) places(c *cobra.Command) {
	copies := c.Name() == "cp" || c.Name() == "sync"
	c.ValidArgsFunction = func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		switch {
		case copies && strings.ContainsAny(typed, `/\:.`), !copies && len(args) > 0:
			return nil, cobra.ShellCompDirectiveDefault // files
		case copies:
			return p.leaseWords(c.Context(), ":"), cobra.ShellCompDirectiveNoSpace
		}
		return p.leaseWords(c.Context(), ""), cobra.ShellCompDirectiveNoFileComp
	}
}

// leaseWords lists what names the open leases. No agent is started for it.
func (p *program) leaseWords(ctx context.Context, suffix string) []string {
	client, err := p.dial()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	list, err := client.Leases(ctx, false)
	if err != nil {
		return nil
	}
	var words []string
	for _, l := range list {
		if l.ID != "" {
			words = append(words, called(l)+suffix+"\t"+describe(l))
		}
	}
	return words
}

// describe says in a few words which lease it is.
func describe(l view.Lease) string {
	return clean(l.State + ": " + cards(l.Slots, l.Model, l.Simulated, l.Isolation) + " on " + l.Rig)
}

// completeOrder makes a shell complete what run and bid take.
func (p *program) completeOrder(c *cobra.Command) {
	p.completeQuery(c)
	_ = c.RegisterFlagCompletionFunc("pay", p.methodWords) // these fail only for flags that are not there
	_ = c.RegisterFlagCompletionFunc("offer", func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return p.offerWords(c.Context()), cobra.ShellCompDirectiveNoFileComp
	})
	_ = c.RegisterFlagCompletionFunc("residency", func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return residencyWords(typed), cobra.ShellCompDirectiveNoFileComp
	})
}

// maxOfferWords bounds what a shell shows of a large market.
const maxOfferWords = 50

// offerWords lists what names the offers that are known now. No agent is started for it.
func (p *program) offerWords(ctx context.Context) []string {
	client, err := p.dial()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	list, err := client.Offers(ctx, view.OfferQuery{Limit: maxOfferWords})
	if err != nil {
		return nil
	}
	var words []string
	for _, o := range list.Offers {
		words = append(words, o.ID+"\t"+clean(offered(o)+" on "+view.Named(o.GivenName, o.Rig)+", "+money(o.Price)))
	}
	return words
}
