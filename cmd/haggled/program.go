//go:build linux

package main

import (
	"context"
	"errors"
	"io"

	"charm.land/fang/v2"
	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/assemble/rig"
	"haggle/internal/cli"
	"haggle/internal/config"
	"haggle/market"
)

// program is one run of haggled.
type program struct {
	cli.Terminal
	version string
	home    string // --home
	file    string // --config
	fault   error  // of the command that ran
	person  person // who answers questions; nil for the terminal of this process
}

// Groups of commands in the help.
const (
	groupDaemon = "daemon"
	groupOwner  = "owner"
)

// run executes a command line and returns the exit code.
func (p *program) run(ctx context.Context, args []string) int {
	root := p.root()
	root.SetArgs(args)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	err := fang.Execute(ctx, root, fang.WithVersion(p.version), fang.WithErrorHandler(func(io.Writer, fang.Styles, error) {}))
	if err != nil {
		p.fault = err
	}
	return p.Report(ctx, p.fault, explain)
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "haggled",
		Short: "Rent out this machine's GPUs",
		Long: "haggled offers this machine's cards to renters, runs their jobs in containers and meters them with receipts that " +
			"both sides sign. Owners whose key you trust rent on credit (`haggled trust`), strangers pay ahead. Labs have simulated cards, for everybody.",
		Example: "  haggled init        # write a configuration to edit\n  haggled doctor      # what is missing, and how to get it\n  haggled serve       # run the rig\n  haggled status      # how it is, from another terminal",
		Args:    cli.Words(0, 0, ""),
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.PersistentFlags().StringVar(&p.home, "home", "", "keep all files under this folder (HAGGLED_HOME)")
	root.PersistentFlags().StringVar(&p.file, "config", "", "the configuration file (HAGGLED_CONFIG)")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return cli.Usage(err.Error(), "see `"+c.CommandPath()+" --help`")
	})
	root.AddGroup(&cobra.Group{ID: groupDaemon, Title: "The daemon"}, &cobra.Group{ID: groupOwner, Title: "Its owner"})
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add(groupDaemon, p.initCommand(), p.serveCommand(), p.doctorCommand(), p.versionCommand())
	add(groupOwner, p.statusCommand(), p.networkCommand(), p.cardsCommand(), p.priceCommand(), p.trustCommand(), p.ledgerCommand(), p.confirmCommand(),
		p.invoiceCommand(), p.historyCommand(), p.disputeCommand(), p.takebackCommand(), p.givebackCommand(), p.blockCommand(), p.unblockCommand(),
		p.pauseCommand(), p.resumeCommand(), p.drainCommand(), p.backupCommand(), p.restoreCommand())
	root.AddCommand(p.purgeCommand(), p.helperCommand())
	root.SetHelpCommandGroupID(groupDaemon)
	root.SetCompletionCommandGroupID(groupDaemon)
	return root
}

// action makes a command out of what it does. Its error is reported once, by run.
func (p *program) action(c *cobra.Command, do func(ctx context.Context, args []string) error) *cobra.Command {
	if c.Args == nil {
		c.Args = cli.Words(0, 0, "")
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		p.fault = do(c.Context(), args)
		return nil
	}
	return c
}

// explain puts into words what the parts of a rig return.
func explain(err error) (market.Explanation, bool) {
	var knob *config.Error
	switch {
	case errors.As(err, &knob):
		return market.Explanation{Message: err.Error(), Hint: knob.Hint, Class: market.ClassUsage}, true
	case errors.Is(err, api.ErrNotRunning):
		return market.Explanation{Message: "haggled is not running", Hint: "start it with `haggled serve`", Class: market.ClassUnreachable}, true
	case errors.Is(err, rig.ErrNoCards):
		return market.Explanation{Message: err.Error(), Hint: "install NVIDIA's driver (`nvidia-smi` must list the cards), or look at a market without cards: `haggle lab up`", Class: market.ClassUsage}, true
	}
	return rig.Explain(err)
}

// config reads the configuration that the flags name.
func (p *program) config(values map[string]string) (config.Rig, error) {
	return config.LoadRig(config.Flags{Home: p.home, File: p.file, Values: values})
}

// daemon returns the client of the running daemon.
func (p *program) daemon() (*api.RigClient, error) {
	cfg, err := p.config(nil)
	if err != nil {
		return nil, err
	}
	return api.DialRig(cfg.Paths.Socket), nil
}

func (p *program) versionCommand() *cobra.Command {
	return p.action(&cobra.Command{Use: "version", Short: "Print the version", Example: "  haggled version"}, func(context.Context, []string) error {
		p.Show("haggled %s", p.version)
		return nil
	})
}
