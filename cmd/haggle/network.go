package main

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"haggle/internal/assemble/agent"
	"haggle/internal/cli"
	"haggle/internal/networks"
)

// askAddrs is how long a running agent has to tell the addresses of an invitation.
const askAddrs = 2 * time.Second

func (p *program) networkCommand() *cobra.Command {
	return cli.Network{
		Terminal: p.Terminal, Program: "haggle", Action: p.action, Addrs: p.knownAddrs,
		Restart: "an agent that runs stays where it is: `haggle agent stop`; the next command starts it there",
		Place: func() (networks.Place, error) {
			c, err := p.config()
			if err != nil {
				return networks.Place{}, err
			}
			return agent.Networks(c, os.Getenv("HAGGLE_CONFIG")), nil
		},
	}.Command()
}

// knownAddrs returns addresses of the rigs that a running agent called, then its own. It starts no agent.
func (p *program) knownAddrs(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, askAddrs)
	defer cancel()
	c, err := p.dial()
	if err != nil {
		return nil
	}
	var addrs []string
	peers, err := c.Peers(ctx)
	if err != nil {
		return nil
	}
	for _, peer := range peers {
		if peer.Direction != "out" || !strings.HasPrefix(peer.Agent, "haggled/") {
			continue
		}
		for _, addr := range peer.Addrs {
			addrs = append(addrs, addr+"/p2p/"+peer.Key)
		}
	}
	if s, err := c.Status(ctx); err == nil {
		addrs = append(addrs, s.Network.Addrs...)
	}
	return addrs
}
