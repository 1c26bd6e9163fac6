package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/view"
	"haggle/market"
	"haggle/runtime"
	"haggle/tui"
)

// labCommand is what the form for a bid offers to run in a lab, whose image is the lab's own trainer.
const labCommand = "train --steps 300"

// screens shows the market on the terminal, until the user leaves.
func (p *program) screens(ctx context.Context) error {
	c, err := p.config()
	if err != nil {
		return err
	}
	client, err := p.dial()
	if err != nil {
		return err
	}
	quiet := *p // talk would spoil the screen; the status bar says where the agent stands
	quiet.Err = io.Discard
	settings := tui.Config{
		Market: client, Demux: runtime.Demux, Start: quiet.startAgent, Home: c.Paths.Home, Version: p.version,
		Shell: p.shellProgram, Forward: quiet.link,
	}
	if market.IsLab(c.Network) {
		settings.Defaults.Command = labCommand
	}
	err = tui.Run(ctx, settings, p.in, p.Out)
	var broken *tui.PanicError
	if errors.As(err, &broken) {
		return hinted(market.ClassFailed, err.Error(), "nothing is lost: the agent goes on; please send the report")
	}
	if ctx.Err() != nil {
		return cli.Exit(cli.ExitInterrupted)
	}
	return err
}

// shellProgram makes the program that opens a shell inside a lease: this one.
func (p *program) shellProgram(lease string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = p.self
	}
	args := []string{self}
	if p.home != "" {
		args = append(args, "--home", p.home)
	}
	return &exec.Cmd{Path: self, Args: append(args, "shell", lease)}
}

// link carries a port of a lease's job to this machine until ctx ends, and returns the link to it.
func (p *program) link(ctx context.Context, lease string, port uint16) (string, error) {
	twin := p.fork()
	l, err := ask(ctx, twin, func(c *api.AgentClient) (view.Lease, error) { return c.Lease(ctx, lease) })
	if err != nil {
		return "", err
	}
	f, err := twin.listen(ctx, l, loopback, strconv.Itoa(int(port)))
	if err != nil {
		return "", err
	}
	if err := twin.tryPort(ctx, f); err != nil {
		closeAll([]*forward{f})
		return "", portFault(err, port)
	}
	link := "http://" + f.listener.Addr().String() + twin.pathInLog(ctx, f, "")
	go func() { _ = twin.carry(ctx, l, []*forward{f}) }() // its end is the job's or the screens'
	return link, nil
}

// onTerminal reports whether a person sits at both ends.
func (p *program) onTerminal() bool {
	return os.Getenv("TERM") != "dumb" && isTerminal(p.in) && isTerminal(p.Out)
}

func isTerminal(end any) bool {
	f, ok := end.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
