package main

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/view"
	"haggle/market"
)

const maxPings = 1000

func (p *program) pingCommand() *cobra.Command {
	var asJSON bool
	count, every := 4, time.Second
	c := p.action(&cobra.Command{
		Use:   "ping PEER|OFFER|LEASE",
		Short: "say by which way a rig is reached, and how fast",
		Long: `A rig is reached direct, where it can be called; punched, through a hole in its router that a relay helped to make;
or relayed, through a relay only. A small relay carries bids, receipts and payments, but no shells, ports or files.

A rig behind a router may be relayed first and punched a moment later. With --json each ping is a line.`,
		Example: "  haggle ping 3f9a\n  haggle ping 12D3KooWGaroCDSKTx78GU33iGoydSUaZZzfJvp7PGQLtUd5LV6x -c 1 --json",
		Args:    cli.Words(1, 1, "PEER|OFFER|LEASE"),
	}, func(ctx context.Context, args []string) error {
		if count < 1 || count > maxPings {
			return cli.Usage("--count "+strconv.Itoa(count)+" is out of range", "give 1 to "+strconv.Itoa(maxPings))
		}
		return p.ping(ctx, args[0], count, every, asJSON)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object for each ping")
	c.Flags().IntVarP(&count, "count", "c", count, "how often")
	c.Flags().DurationVar(&every, "every", every, "the time between two")
	return c
}

// ping fails where the last ping found nobody.
func (p *program) ping(ctx context.Context, who string, count int, every time.Duration, asJSON bool) error {
	var failed error
	for i := range count {
		if i > 0 {
			if pause(ctx, every); ctx.Err() != nil {
				return ctx.Err()
			}
		}
		got, err := ask(ctx, p, func(c *api.AgentClient) (view.Ping, error) { return c.Ping(ctx, who) })
		if failed = err; err != nil {
			if ctx.Err() != nil || market.CodeOf(err) != market.CodeUnreachable || i == count-1 {
				return err
			}
			p.Say("%s", market.Explain(err).Message)
			continue
		}
		if asJSON {
			err = cli.WriteJSON(p.Out, got, false)
		} else {
			p.Show("%s", pingLine(got))
		}
		if err != nil {
			return err
		}
	}
	return failed
}

func pingLine(r view.Ping) string {
	line := market.Printable(r.Path) + "  " + strconv.FormatFloat(r.RTTMs, 'f', 1, 64) + " ms  " + market.Printable(r.Addr)
	switch {
	case r.Small:
		line += "  (a small relay: no shells, ports or files)"
	case r.Relay != "":
		line += "  (a relay for all)"
	}
	return line
}
