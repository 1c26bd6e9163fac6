package main

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"haggle/internal/cli"
	"haggle/internal/tunnel"
)

func (p *program) sshProxyCommand() *cobra.Command {
	return p.action(&cobra.Command{
		Use:   "ssh-proxy LEASE",
		Short: "carry ssh into a job: the ProxyCommand that ssh-config writes",
		Long: "Carry the bytes of an SSH client between standard input and output and the SSH server inside a job. `haggle ssh-config`\n" +
			"writes it as ProxyCommand. The stream goes on where it was when the agent or the rig's program was restarted.",
		Example: "  ssh -o ProxyCommand='haggle ssh-proxy %h' -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null root@lease-3f9a",
		Args:    cli.Words(1, 1, "LEASE"),
	}, func(ctx context.Context, args []string) error {
		ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP) // how ssh ends it
		defer stop()
		quiet := p.fork()
		quiet.Err = io.Discard // ssh's user did not call haggle
		c, err := quiet.channel(ctx, args[0], tunnel.KindSSH, nil, nil)
		if err != nil {
			return err
		}
		defer context.AfterFunc(ctx, func() { _ = c.Close() })()
		go func() {
			_, _ = io.Copy(c, p.in) // the other direction tells how it ended
			_ = c.CloseWrite()
		}()
		_, err = io.Copy(p.Out, c)
		_ = c.Close()
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("carry ssh: %w", doorFault(err))
		}
		return nil
	})
}
