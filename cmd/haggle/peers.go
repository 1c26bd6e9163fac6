package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/view"
)

func (p *program) peersCommand() *cobra.Command {
	var asJSON, blocked bool
	c := p.action(&cobra.Command{
		Use:     "peers",
		Short:   "list the programs that the agent is connected with",
		Example: "  haggle peers\n  haggle peers --blocked\n  haggle peers --json",
	}, func(ctx context.Context, _ []string) error {
		if blocked {
			return p.showBlocked(ctx, asJSON)
		}
		list, err := ask(ctx, p, func(c *api.AgentClient) ([]view.Peer, error) { return c.Peers(ctx) })
		switch {
		case err != nil:
			return err
		case asJSON:
			return p.JSON(list)
		case len(list) == 0:
			p.Say("no peers; `haggle status` says why")
			return nil
		}
		var rows [][]string
		for _, peer := range list {
			latency := ""
			if peer.LatencyMs > 0 {
				latency = strconv.FormatFloat(peer.LatencyMs, 'f', 1, 64) + " ms"
			}
			rows = append(rows, []string{peer.Key, peer.Agent, peer.Direction, latency, strings.Join(peer.Addrs, " ")})
		}
		return p.Table("PEER PROGRAM DIRECTION LATENCY ADDRESSES", rows)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&blocked, "blocked", false, "list who may not call, instead")
	return c
}
