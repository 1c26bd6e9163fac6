//go:build linux

package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"haggle/internal/cli"
	"haggle/internal/config"
	"haggle/internal/view"
)

func (p *program) blockCommand() *cobra.Command {
	f := cli.Block{Parse: config.ParseDuration}
	c := p.action(&cobra.Command{
		Use:   "block [KEY]",
		Short: "List who may not call this rig, or block somebody",
		Long:  cli.BlockHelp,
		Example: "  haggled block\n" +
			"  haggled block 12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN --for 1h --why \"bids and never signs\"",
		Args: cli.Words(0, 1, "KEY"),
	}, func(ctx context.Context, args []string) error {
		daemon, err := p.daemon()
		if err != nil {
			return err
		}
		return f.Run(ctx, p.Terminal, daemon, strings.Join(args, ""))
	})
	f.Register(c.Flags())
	return c
}

func (p *program) unblockCommand() *cobra.Command {
	return p.action(&cobra.Command{
		Use:     "unblock KEY",
		Short:   "Let somebody call again who was blocked",
		Example: "  haggled unblock 12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN",
		Args:    cli.Words(1, 1, "KEY"),
	}, func(ctx context.Context, args []string) error {
		daemon, err := p.daemon()
		if err != nil {
			return err
		}
		return cli.Unblock(ctx, p.Terminal, daemon, args[0])
	})
}

// visible says what strangers showed of the rig, and when.
func visible(v *view.Visible) string {
	if v == nil {
		return "not asked yet: strangers are asked minutes after the rig has joined, and every 6 hours"
	}
	return v.Sentence() + ", " + clock(v.At)
}

// blocked counts who may not call; "" for nobody.
func blocked(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n) + "; `haggled block` lists them"
}
