package main

import (
	"context"
	"errors"
	"io"
	"os"

	"haggle/internal/cli"
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
