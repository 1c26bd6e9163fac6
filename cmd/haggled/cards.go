//go:build linux

package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"haggle/internal/cli"
	"haggle/internal/view"
)

func (p *program) cardsCommand() *cobra.Command {
	var asJSON bool
	c := p.action(&cobra.Command{
		Use: "cards", Short: "The cards of this rig, whether they can be rented, and what they do now",
		Example: "  haggled cards\n  haggled cards --json",
	}, func(ctx context.Context, _ []string) error {
		daemon, err := p.daemon()
		if err != nil {
			return err
		}
		list, err := daemon.Cards(ctx)
		if err != nil {
			return err
		}
		if asJSON {
			return p.JSON(list)
		}
		return p.showCards(list)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print for programs")
	return c
}

func (p *program) showCards(list []view.Card) error {
	rows := make([][]string, 0, len(list))
	var why []string
	for _, c := range list {
		model := c.Model
		if c.Simulated {
			model += " " + cli.Badge
		}
		rentable, reason := rents(c)
		if reason != "" {
			why = append(why, "card "+strconv.Itoa(c.Slot), reason)
		}
		rows = append(rows, []string{
			strconv.Itoa(c.Slot), model, strconv.FormatInt(c.MemoryGiB, 10) + " GiB", c.Health, rentable, c.Lease[:min(8, len(c.Lease))],
			known(c.UtilPercent, "%"), known(c.MemUsedMiB, " MiB"), known(c.PowerW, " W"), known(c.PowerLimitW, " W"),
			known(c.TempC, " °C"), c.UUID,
		})
	}
	if err := p.Table("SLOT CARD MEMORY HEALTH RENTABLE LEASE USE USED POWER LIMIT TEMP UUID", rows); err != nil || len(why) == 0 {
		return err
	}
	p.Show("")
	return p.Facts(why...)
}

// rents says in a word whether a card can be rented, and in a sentence why not.
func rents(c view.Card) (word, why string) {
	switch {
	case c.Withheld != "":
		return "withheld", c.Withheld + "; `haggled giveback " + strconv.Itoa(c.Slot) + "` offers it again"
	case !c.Passable:
		return "no", c.Why
	}
	return "yes", ""
}

// known writes a number that may be unknown.
func known(n *int64, unit string) string {
	if n == nil {
		return "unknown"
	}
	return strconv.FormatInt(*n, 10) + unit
}

// completeCard offers the cards of this rig for the one argument of a command: by slot, said to be what they are.
func (p *program) completeCard(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []cobra.Completion
	if daemon, err := p.daemon(); err == nil {
		ctx, cancel := context.WithTimeout(c.Context(), completionTime)
		defer cancel()
		list, err := daemon.Cards(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp // nothing can be said on a line that is being typed
		}
		for _, card := range list {
			about := card.Model + " " + card.UUID
			if card.Withheld != "" {
				about += ", withheld"
			}
			found = append(found, cobra.CompletionWithDesc(strconv.Itoa(card.Slot), about))
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
