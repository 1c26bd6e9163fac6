//go:build linux

// Command haggled runs a rig: it reads the cards, offers them, runs the jobs of those who rent them and meters what they use.
// It runs on Linux. `haggled serve` is the daemon; every other command talks to it or prepares it.
//
// Results go to stdout, talk to stderr. An error is one line with a hint. Exit codes: 0 done, 1 failed, 2 usage, 3 not found,
// 5 the daemon is not running, 130 interrupted.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"haggle/internal/assemble/rig"
	"haggle/internal/cli"
	"haggle/runtime"
)

// version is set by the linker.
var version = "unknown"

func main() {
	// The engine starts this program once for each job, to write its log. It begins here, before anything else is set up.
	if len(os.Args) == 3 && os.Args[1] == rig.LoggerCommand {
		if err := runtime.RunLogger(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// The daemon starts this program once more to read the cards: the driver's library must not be able to end the daemon.
	if len(os.Args) == 2 && os.Args[1] == rig.DriverCommand {
		if err := rig.RunDriver(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	rig.Begin()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	p := &program{Terminal: cli.Terminal{Program: "haggled", Out: os.Stdout, Err: os.Stderr}, version: version}
	code := p.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
