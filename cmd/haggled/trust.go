//go:build linux

package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"haggle/internal/cli"
	"haggle/market"
)

func (p *program) trustCommand() *cobra.Command {
	var f cli.Trust
	c := p.action(&cobra.Command{
		Use:   "trust [KEY]",
		Short: "List the owners who may rent on credit, or add, change or remove one",
		Long:  cli.TrustHelp,
		Example: "  haggled trust\n" +
			"  haggled trust 12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN --name Ada --credit 20\n" +
			"  haggled trust 12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN --remove",
		Args: cli.Words(0, 1, "KEY"), ValidArgsFunction: p.completeOwner,
	}, func(ctx context.Context, args []string) error {
		key := strings.Join(args, "")
		if _, err := market.ParseKey(key); key != "" && err != nil {
			return err // said at once, without the daemon
		}
		daemon, err := p.daemon()
		if err != nil {
			return err
		}
		return f.Run(ctx, p.Terminal, daemon, key)
	})
	f.Register(c.Flags())
	return c
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
