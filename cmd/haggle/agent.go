package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/view"
	"haggle/market"
)

// agentCommand holds what is about the background process itself. None of it starts one behind the user's back.
func (p *program) agentCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "agent",
		Short:   "run, stop or show the background process that keeps your leases",
		Example: "  haggle agent status\n  haggle agent stop",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Usage("agent has no "+args[0], "it has run, stop and status")
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(p.agentRunCommand(), p.agentStopCommand(), p.agentStatusCommand())
	return c
}

func (p *program) agentRunCommand() *cobra.Command {
	return p.action(&cobra.Command{
		Use:     "run",
		Short:   "run the agent in the foreground",
		Long:    "Run the agent in the foreground, with its log on stderr. Commands that need an agent start one by themselves.",
		Example: "  haggle agent run",
	}, func(ctx context.Context, _ []string) error {
		c, err := p.config()
		if err != nil {
			return err
		}
		log, err := logger(p.Err, c.LogLevel, c.LogFormat)
		if err != nil {
			return err
		}
		return p.runAgent(ctx, c, p.version, log)
	})
}

func (p *program) agentStopCommand() *cobra.Command {
	var force bool
	c := p.action(&cobra.Command{
		Use:     "stop",
		Short:   "end the agent",
		Long:    "End the agent. It refuses while leases are open, unless forced: their jobs then go on unattended.",
		Example: "  haggle agent stop\n  haggle agent stop --force",
	}, func(ctx context.Context, _ []string) error {
		c, err := p.dial()
		if err != nil {
			return err
		}
		err = c.Shutdown(ctx, force)
		switch {
		case errors.Is(err, api.ErrNotRunning):
			p.Say("the agent is not running")
			return nil
		case err != nil && !errors.Is(err, api.ErrLost): // an agent that is gone already has done what it was asked
			return err
		}
		return p.awaitEnd(ctx)
	})
	c.Flags().BoolVar(&force, "force", false, "even while leases are open")
	return c
}

// awaitEnd returns when nobody listens on the agent's socket any more.
func (p *program) awaitEnd(ctx context.Context) error {
	c, err := p.config()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, hinted(market.ClassFailed,
		"the agent still answers after "+startTime.String(), "its log is "+c.Paths.Log))
	defer cancel()
	tick := time.NewTicker(startPoll)
	defer tick.Stop()
	for answers(ctx, c.Paths.Socket) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return nil
}

func (p *program) agentStatusCommand() *cobra.Command {
	var asJSON bool
	c := p.action(&cobra.Command{
		Use:     "status",
		Short:   "show the agent if it runs (exit code 5 if not)",
		Example: "  haggle agent status --json",
	}, func(ctx context.Context, _ []string) error {
		c, err := p.dial()
		if err != nil {
			return err
		}
		var s view.AgentStatus
		if s, err = c.Status(ctx); err != nil {
			return err
		}
		return p.printStatus(s, asJSON)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
