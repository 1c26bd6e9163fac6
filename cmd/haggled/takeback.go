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
)

// takebackFlags are the flags of takeback.
type takebackFlags struct{ yes, dryRun, json bool }

func (p *program) takebackCommand() *cobra.Command {
	var f takebackFlags
	c := p.action(&cobra.Command{
		Use:   "takeback CARD",
		Short: "Take a card back now: its job ends after its notice, and no lease takes the card until giveback",
		Long: "Take a card back now. A job on it is told to end and keeps the notice of its lease; from then on nothing is billed, and\n" +
			"what it used until then stays owed. The command shows what you forgo and asks first. The card is not offered until\n" +
			"`haggled giveback`. CARD is a slot, or a UUID or enough of its beginning; `haggled cards` lists both.",
		Example: "  haggled takeback 0\n" +
			"  haggled takeback 0 --dry-run    # look only\n" +
			"  haggled takeback GPU-5f1 --yes  # without a question, from a script",
		Args: cli.Words(1, 1, "CARD"), ValidArgsFunction: p.completeCard,
	}, func(ctx context.Context, args []string) error { return p.takeback(ctx, args[0], f) })
	c.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "show what it would mean and do nothing")
	c.Flags().BoolVar(&f.json, "json", false, "print for programs; needs --yes or --dry-run")
	return c
}

func (p *program) takeback(ctx context.Context, card string, f takebackFlags) error {
	if f.json && !f.yes && !f.dryRun {
		return cli.Usage("a program is not asked", "add --yes, or --dry-run to look")
	}
	daemon, err := p.daemon()
	if err != nil {
		return err
	}
	if f.dryRun || !f.yes {
		v, err := daemon.Takeback(ctx, card, true)
		if err != nil {
			return err
		}
		if err := p.showTakeback(v, f.json); err != nil || f.dryRun {
			return err
		}
		sure, err := p.confirm("takeback", "take card "+strconv.Itoa(v.Slot)+" back?")
		if err != nil {
			return err
		}
		if !sure {
			p.Say("nothing was done")
			return cli.Exit(1)
		}
		card = v.UUID // the card that was shown, whatever else has changed
	}
	v, err := daemon.Takeback(ctx, card, false)
	if err != nil {
		return err
	}
	if f.json {
		return p.JSON(v)
	}
	p.Say("%s", taken(v))
	return nil
}

// taken says what became of a card that was taken back.
func taken(v view.Takeback) string {
	text := "card " + strconv.Itoa(v.Slot) + " is yours"
	if v.Lease != "" {
		text = "lease " + v.Lease[:min(8, len(v.Lease))] + " is told to end; card " + strconv.Itoa(v.Slot) + " is yours when it has"
		if v.EndsBy > 0 {
			text += ", by " + clock(v.EndsBy) + " at the latest"
		}
	}
	return text + "; `haggled giveback " + strconv.Itoa(v.Slot) + "` offers it again"
}

// showTakeback shows what it means to take a card back.
func (p *program) showTakeback(v view.Takeback, asJSON bool) error {
	if asJSON {
		return p.JSON(v)
	}
	facts := []string{"card", strconv.Itoa(v.Slot) + ", " + v.Model + ", " + v.UUID}
	if v.Lease == "" {
		return p.Facts(append(facts, "lease", "none: the card is free, and is not offered from then on")...)
	}
	lease := v.Lease[:min(8, len(v.Lease))] + ", " + v.State
	if len(v.Slots) > 1 {
		lease += fmt.Sprintf("; it has %d cards, and all of them end", len(v.Slots))
	}
	notice := "none: the job has not started"
	switch {
	case v.NoticeMs > 0:
		notice = config.FormatDuration(time.Duration(v.NoticeMs)*time.Millisecond) + ": the job can save its work until " + clock(v.EndsBy)
	case v.EndsBy > 0:
		notice = "given already: the job is killed at " + clock(v.EndsBy)
	}
	forgone := v.Forgone.Text + " " + v.Forgone.Currency + " at most, had the lease run to its end"
	if v.Penalty.Micro > 0 {
		forgone += "; " + v.Penalty.Text + " of it for the notice, which is not billed"
	}
	return p.Facts(append(facts, "lease", lease, "renter", v.Renter, "notice", notice,
		"earned", v.Earned.Text+" "+v.Earned.Currency+", and it stays owed", "you forgo", forgone)...)
}

// clock writes a wall time for the person at this machine.
func clock(ms int64) string { return time.UnixMilli(ms).Local().Format(time.TimeOnly) }

func (p *program) givebackCommand() *cobra.Command {
	return p.action(&cobra.Command{
		Use:   "giveback CARD",
		Short: "Offer a card again that was taken back or withheld",
		Long: "Offer a card again. A card is withheld after `haggled takeback`, and where its memory could not be overwritten after a\n" +
			"job: see to it before you give it back, for the next renter could read what the last one left.",
		Example: "  haggled giveback 0\n  haggled cards            # says which cards are withheld, and why",
		Args:    cli.Words(1, 1, "CARD"), ValidArgsFunction: p.completeCard,
	}, func(ctx context.Context, args []string) error {
		daemon, err := p.daemon()
		if err != nil {
			return err
		}
		if err := daemon.Giveback(ctx, args[0]); err != nil {
			return err
		}
		p.Say("card %s may be rented again, where nothing else is wrong with it: `haggled cards`", strings.TrimSpace(args[0]))
		return nil
	})
}
