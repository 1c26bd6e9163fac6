//go:build linux

package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"haggle/internal/cli"
	"haggle/internal/config"
	"haggle/internal/view"
	"haggle/market"
)

// trustFlags are the flags of trust.
type trustFlags struct {
	name         string
	remove, json bool
}

func (p *program) trustCommand() *cobra.Command {
	var f trustFlags
	c := p.action(&cobra.Command{
		Use:   "trust [KEY]",
		Short: "List the owners whose bids are taken, or add one, or with --remove take one away",
		Long: "An owner whose key you trust may rent this rig's real cards and use them on credit: up to `rules.credit` of the\n" +
			"configuration over all of its leases, before anything is paid. Nobody else may, until paying ahead is there; in a lab\n" +
			"everybody may. A renter finds the key by `haggle status` and sends it to you. To trust says nothing about what a job\n" +
			"may do on this machine: every job is shut in alike.\n\n" +
			"Without KEY the trusted owners are listed, with what they owe. To trust a key again changes its name. When a key is\n" +
			"removed, no more bids of it are taken; leases that are signed go on.",
		Example: "  haggled trust\n" +
			"  haggled trust 12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN --name Ada\n" +
			"  haggled trust 12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN --remove",
		Args: cli.Words(0, 1, "KEY"), ValidArgsFunction: p.completeOwner,
	}, func(ctx context.Context, args []string) error { return p.trust(ctx, strings.Join(args, ""), f) })
	c.Flags().StringVar(&f.name, "name", "", "the owner, in your own words; nobody else sees it")
	c.Flags().BoolVar(&f.remove, "remove", false, "take no more bids of this owner")
	c.Flags().BoolVar(&f.json, "json", false, "print the list for programs")
	return c
}

func (p *program) trust(ctx context.Context, key string, f trustFlags) error {
	switch {
	case key == "" && (f.remove || f.name != ""):
		return cli.Usage("trust does not know whose key is meant", "`haggled trust` lists them; name one: haggled trust KEY")
	case f.remove && f.name != "":
		return cli.Usage("--remove and --name exclude each other", "leave one of them out")
	}
	cfg, err := p.config(nil)
	if err != nil {
		return err
	}
	daemon, err := p.daemon()
	if err != nil {
		return err
	}
	if key != "" {
		owner, err := market.ParseKey(key)
		if err != nil {
			return err // said at once, without the daemon
		}
		if f.remove {
			err = daemon.Distrust(ctx, owner)
		} else {
			err = daemon.Trust(ctx, owner, f.name)
		}
		switch {
		case err != nil:
			return err
		case f.json:
		case f.remove:
			p.Say("no more bids of %s are taken; leases that are signed go on", owner)
			return nil
		default:
			p.Say("%s may rent here now%s", owner, onCredit(cfg))
			return nil
		}
	}
	list, err := daemon.TrustedOwners(ctx)
	if err != nil {
		return err
	}
	if f.json {
		return p.JSON(list)
	}
	return p.showOwners(list, cfg)
}

func (p *program) showOwners(list []view.Owner, cfg config.Rig) error {
	switch {
	case len(list) == 0 && market.IsLab(cfg.Network):
		p.Say("no owner is trusted; in a lab everybody may rent")
		return nil
	case len(list) == 0:
		p.Say("no owner is trusted, so nobody can rent here: `haggled trust KEY` adds one, who may rent real cards%s",
			onCredit(cfg))
		return nil
	}
	if market.IsLab(cfg.Network) {
		p.Say("in a lab everybody may rent; trusted are")
	} else {
		p.Say("these owners may rent real cards%s", onCredit(cfg))
	}
	rows := make([][]string, 0, len(list))
	for _, o := range list {
		rows = append(rows, []string{o.Key, o.Name, time.UnixMilli(o.Since).Local().Format(time.DateOnly), o.Owes.Text + " " + o.Owes.Currency})
	}
	return p.Table("KEY NAME SINCE OWES", rows)
}

// onCredit says what the configuration lets a trusted owner owe.
func onCredit(cfg config.Rig) string {
	if market.IsLab(cfg.Network) && cfg.Origin("rules.credit") == config.FromDefault {
		return "; labs have no limit of credit"
	}
	credit := cfg.Rules.Credit
	if m, err := market.ParseMicro(credit); err == nil {
		credit = m.String()
	}
	return " on credit: up to " + credit + " " + cfg.Prices.Currency + " each before paying (`rules.credit`)"
}

// completeOwner offers the keys that are trusted, by which one is removed or gets another name.
func (p *program) completeOwner(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	daemon, err := p.daemon()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(c.Context(), completionTime)
	defer cancel()
	list, err := daemon.TrustedOwners(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp // nothing can be said on a line that is being typed
	}
	found := make([]cobra.Completion, 0, len(list))
	for _, o := range list {
		found = append(found, cobra.CompletionWithDesc(o.Key, o.Name))
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
