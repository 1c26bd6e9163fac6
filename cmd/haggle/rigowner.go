package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/config"
	"haggle/market"
)

// rigAt says at which rig of this machine an owner's command is meant.
type rigAt struct{ home, socket string }

func (r *rigAt) register(c *cobra.Command) {
	c.Flags().StringVar(&r.home, "rig-home", "", "the home of the rig (default: HAGGLED_HOME, else this machine's rig)")
	c.Flags().StringVar(&r.socket, "rig-socket", "", "the rig's socket, in place of its home")
}

// dial returns the client of the rig, and where it is.
func (r *rigAt) dial() (*api.RigClient, string, error) {
	if r.socket != "" {
		if r.home != "" {
			return nil, "", cli.Usage("--rig-home and --rig-socket exclude each other", "leave one of them out")
		}
		socket, err := filepath.Abs(r.socket)
		if err != nil {
			return nil, "", err
		}
		return api.DialRig(socket), socket, nil
	}
	home := r.home
	if home == "" {
		home = os.Getenv("HAGGLED_HOME")
	}
	paths, err := config.RigPaths(home)
	if err != nil {
		return nil, "", err
	}
	return api.DialRig(paths.Socket), paths.Socket, nil
}

// ofRig makes a command of a rig's owner.
func (p *program) ofRig(c *cobra.Command, do func(ctx context.Context, rig *api.RigClient, args []string) error) *cobra.Command {
	var at rigAt
	c = p.action(c, func(ctx context.Context, args []string) error {
		rig, socket, err := at.dial()
		if err != nil {
			return err
		}
		err = do(ctx, rig, args)
		switch {
		case errors.Is(err, api.ErrNotRunning):
			return hinted(market.ClassUnreachable, "no rig answers on "+socket, "run it where haggled runs; --rig-home names the rig's home")
		case errors.Is(err, api.ErrLost):
			return hinted(market.ClassUnreachable, "haggled went away before it had answered", "run the command again")
		}
		return err
	})
	at.register(c)
	return c
}

// rigWords completes the first argument of a rig's owner's command by what the rig knows.
func rigWords(list func(context.Context, *api.RigClient) ([]string, error)) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		at := rigAt{home: c.Flag("rig-home").Value.String(), socket: c.Flag("rig-socket").Value.String()}
		rig, _, err := at.dial()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(c.Context(), completeTime)
		defer cancel()
		words, err := list(ctx, rig)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp // nothing can be said on a line that is being typed
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

func (p *program) confirmCommand() *cobra.Command {
	var f cli.Confirm
	c := p.ofRig(&cobra.Command{
		Use:     "confirm LEASE",
		Short:   "say, as a rig's owner, that money for a lease has come",
		Long:    cli.ConfirmHelp,
		Example: "  haggle confirm 3f9a12c4\n  haggle confirm 3f9a12c4 --amount 2.50 --reference 'transfer of May 3rd'",
		Args:    cli.Words(1, 1, "LEASE"),
		ValidArgsFunction: rigWords(func(ctx context.Context, rig *api.RigClient) ([]string, error) {
			list, err := rig.Leases(ctx, false)
			var words []string
			for _, l := range list {
				words = append(words, short(l.ID)+"\t"+describe(l))
			}
			return words, err
		}),
	}, func(ctx context.Context, rig *api.RigClient, args []string) error {
		return f.Run(ctx, p.Terminal, rig, args[0])
	})
	f.Register(c.Flags())
	return c
}

func (p *program) trustCommand() *cobra.Command {
	var f cli.Trust
	c := p.ofRig(&cobra.Command{
		Use:   "trust [OWNER]",
		Short: "say, as a rig's owner, who may rent on credit",
		Long:  cli.TrustHelp,
		Example: "  haggle trust\n  haggle trust 12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN --credit 20 --name Ada\n" +
			"  haggle trust 12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN --remove",
		Args: cli.Words(0, 1, "OWNER"),
		ValidArgsFunction: rigWords(func(ctx context.Context, rig *api.RigClient) ([]string, error) {
			list, err := rig.TrustedOwners(ctx)
			var words []string
			for _, o := range list {
				words = append(words, o.Key+"\t"+clean(o.Name))
			}
			return words, err
		}),
	}, func(ctx context.Context, rig *api.RigClient, args []string) error {
		return f.Run(ctx, p.Terminal, rig, strings.Join(args, ""))
	})
	f.Register(c.Flags())
	return c
}
