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
