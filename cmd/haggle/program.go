package main

import (
	"context"
	"io"
	"slices"
	"strings"

	"charm.land/fang/v2"
	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/config"
	"haggle/market"
)

// Groups of commands in the help.
const (
	groupMarket = "market"
	groupLease  = "lease"
	groupInside = "inside"
	groupMoney  = "money"
	groupHouse  = "house"
)

// program is one run of haggle.
type program struct {
	wiring
	cli.Terminal
	in      io.Reader
	version string
	self    string // how the program was called, for starting it again

	home    string // --home
	loaded  *config.Agent
	client  *api.AgentClient
	greeted bool  // an agent of another version was told of
	fault   error // of the command that ran
}

// run executes a command line and returns the exit code.
func (p *program) run(ctx context.Context, args []string) int {
	root := p.root()
	root.SetArgs(args)
	root.SetIn(p.in)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	// Only cobra's own errors, about flags and arguments, come back; the commands leave theirs in p.fault.
	err := fang.Execute(ctx, root, fang.WithVersion(p.version), fang.WithErrorHandler(func(io.Writer, fang.Styles, error) {}))
	if err != nil {
		p.fault = err
	}
	return p.Report(ctx, p.fault, explain)
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "haggle",
		Short: "Rent GPUs peer to peer",
		Long:  "haggle rents GPUs from the people who own them: no account, no token, no server. Every bill is signed by both sides.",
		Example: "  haggle              # the market on this terminal\n" +
			"  haggle offers 'gpu_name=RTX_4090 dph<0.60'\n" +
			"  haggle run 'gpu_name=RTX_4090' --image lab --for 10m --budget 1.00 -- train --steps 20\n" +
			"  haggle lab up   # a whole market on this machine, with simulated cards",
		Args: known,
		RunE: func(c *cobra.Command, _ []string) error {
			if !p.onTerminal() {
				return c.Help()
			}
			p.fault = p.screens(c.Context())
			return nil
		},
		SuggestionsMinimumDistance: 2,
	}
	root.PersistentFlags().StringVar(&p.home, "home", "", "keep all files under this folder (HAGGLE_HOME)")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return cli.Fail(cli.OwnCode(c), cli.Usage(err.Error(), "see `"+c.CommandPath()+" --help`"))
	})
	p.commands(root)
	return root
}

// known refuses a word that is no command, with those that are near it.
func known(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	near := root.SuggestionsFor(args[0])
	if len(near) == 0 {
		return cli.Usage("there is no command "+args[0], "`haggle --help` lists them")
	}
	return cli.Usage("there is no command "+args[0], "did you mean "+strings.Join(near, " or ")+"?")
}

// commands adds all commands to the program, in their groups.
func (p *program) commands(root *cobra.Command) {
	root.AddGroup(&cobra.Group{ID: groupMarket, Title: "The market"}, &cobra.Group{ID: groupLease, Title: "Your leases"},
		&cobra.Group{ID: groupInside, Title: "Inside a lease"}, &cobra.Group{ID: groupMoney, Title: "Money"},
		&cobra.Group{ID: groupHouse, Title: "Programs"})
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add(groupMarket, p.offersCommand(), p.showCommand(), p.planCommand(), p.queryCommand(), p.fieldsCommand(), p.runCommand(), p.bidCommand())
	add(groupLease, p.leasesCommand(), p.logsCommand(), p.stopCommand(), p.resumeCommand(), p.removeCommand(), p.extendCommand(),
		p.nameCommand(), p.receiptsCommand(), p.exportCommand(), p.verifyCommand())
	add(groupInside, p.shellCommand(), p.execCommand(), p.forwardCommand(), p.openCommand(), p.copyCommand(), p.syncCommand(),
		p.checkpointsCommand(), p.sshConfigCommand(), p.sshProxyCommand())
	add(groupMoney, p.payCommand(), p.ledgerCommand(), p.invoiceCommand(), p.historyCommand(), p.budgetCommand(), p.guaranteeCommand(),
		p.disputeCommand(), p.decideCommand(), p.confirmCommand(), p.trustCommand())
	add(groupHouse, p.statusCommand(), p.peersCommand(), p.networkCommand(), p.pingCommand(), p.doctorCommand(), p.namesCommand(), p.blockCommand(), p.unblockCommand(),
		p.deputyCommand(), p.agentCommand(), p.labCommand(), p.backupCommand(), p.restoreCommand(), p.versionCommand())
	for _, c := range root.Commands() {
		if slices.Contains([]string{
			"leases", "pay", "dispute", "logs", "stop", "resume", "rm", "extend", "name", "receipts", "export",
			"shell", "exec", "forward", "open", "cp", "sync", "checkpoints", "ssh-proxy",
		}, c.Name()) {
			p.places(c)
		}
	}
	root.AddCommand(p.labRigCommand())
	root.SetHelpCommandGroupID(groupHouse)
	root.SetCompletionCommandGroupID(groupHouse)
}

// action makes a command out of what it does. Its error is reported by p.run, with the command's own code if it has one.
func (p *program) action(c *cobra.Command, do func(ctx context.Context, args []string) error) *cobra.Command {
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := do(c.Context(), args); err != nil {
			p.fault = cli.Fail(cli.OwnCode(c), err)
		}
		return nil
	}
	takes := c.Args
	c.Args = func(c *cobra.Command, args []string) error {
		if takes == nil {
			takes = cli.Words(0, 0, "")
		}
		if err := takes(c, args); err != nil {
			return cli.Fail(cli.OwnCode(c), err)
		}
		return nil
	}
	return c
}

// clean makes foreign text fit for a terminal.
func clean(s string) string { return market.Printable(s) }
