package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/config"
	"haggle/internal/view"
	"haggle/market"
)

func (p *program) blockCommand() *cobra.Command {
	f := cli.Block{Parse: config.ParseDuration}
	c := p.action(&cobra.Command{
		Use:   "block [KEY]",
		Short: "list who may not call your agent, or block somebody",
		Long:  cli.BlockHelp,
		Example: "  haggle block\n  haggle peers --blocked\n" +
			"  haggle block 12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN --for 1h",
		Args: cli.Words(0, 1, "KEY"),
	}, func(ctx context.Context, args []string) error {
		return f.Run(ctx, p.Terminal, gate{p}, strings.Join(args, ""))
	})
	f.Register(c.Flags())
	return c
}

func (p *program) unblockCommand() *cobra.Command {
	return p.action(&cobra.Command{
		Use:     "unblock KEY",
		Short:   "let somebody call again who was blocked",
		Example: "  haggle unblock 12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN",
		Args:    cli.Words(1, 1, "KEY"),
	}, func(ctx context.Context, args []string) error {
		return cli.Unblock(ctx, p.Terminal, gate{p}, args[0])
	})
}

// gate is the agent as the one who lets others in. It is started where it does not run.
type gate struct{ p *program }

// Blocked implements cli.Blocker.
func (g gate) Blocked(ctx context.Context) ([]view.Blocked, error) {
	return ask(ctx, g.p, func(c *api.AgentClient) ([]view.Blocked, error) { return c.Blocked(ctx) })
}

// Block implements cli.Blocker.
func (g gate) Block(ctx context.Context, key market.Key, r view.BlockRequest) error {
	_, err := ask(ctx, g.p, func(c *api.AgentClient) (struct{}, error) { return struct{}{}, c.Block(ctx, key, r) })
	return err
}

// Unblock implements cli.Blocker.
func (g gate) Unblock(ctx context.Context, key market.Key) error {
	_, err := ask(ctx, g.p, func(c *api.AgentClient) (struct{}, error) { return struct{}{}, c.Unblock(ctx, key) })
	return err
}

// showBlocked lists who is blocked.
func (p *program) showBlocked(ctx context.Context, asJSON bool) error {
	list, err := gate{p}.Blocked(ctx)
	switch {
	case err != nil:
		return err
	case asJSON:
		return p.JSON(list)
	case len(list) == 0:
		p.Say("nobody is blocked")
		return nil
	}
	return cli.ShowBlocked(p.Terminal, list)
}
