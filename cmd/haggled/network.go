//go:build linux

package main

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"haggle/internal/assemble/rig"
	"haggle/internal/cli"
	"haggle/internal/networks"
)

// askAddrs is how long a running daemon has to tell the addresses of an invitation.
const askAddrs = 2 * time.Second

func (p *program) networkCommand() *cobra.Command {
	return cli.Network{
		Terminal: p.Terminal, Program: "haggled", Action: p.action, Addrs: p.ownAddrs,
		Restart: "a daemon that runs stays where it is: restart it when its leases allow, `haggled drain` or `systemctl restart haggled`",
		Place: func() (networks.Place, error) {
			c, err := p.config(nil)
			if err != nil {
				return networks.Place{}, err
			}
			file := p.file
			if file == "" {
				file = os.Getenv("HAGGLED_CONFIG")
			}
			return rig.Networks(c, file), nil
		},
	}.Command()
}

// ownAddrs returns the addresses of the running daemon.
func (p *program) ownAddrs(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, askAddrs)
	defer cancel()
	daemon, err := p.daemon()
	if err != nil {
		return nil
	}
	s, err := daemon.Status(ctx)
	if err != nil {
		return nil
	}
	return s.Network.Addrs
}
