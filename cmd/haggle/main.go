// Command haggle is the renter's program: it finds offers, orders slots, follows jobs and checks bills. It speaks to its own
// background process, the agent, which it starts when a command needs it.
//
// Results go to stdout, talk to stderr. An error is one line with a hint. Exit codes: 0 done, 1 failed, 2 usage, 3 not found
// or no match, 4 refused by the other side, 5 unreachable, 6 over budget, 130 interrupted. run returns the job's own code,
// and 125 for every failure of its own; verify returns 0 agreed, 1 valid but open, 2 invalid, 3 fraud proven, 125 could not
// judge.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"haggle/internal/assemble/agent"
	"haggle/internal/cli"
	"haggle/internal/door"
	"haggle/internal/lab/train"
	"haggle/runtime/inside"
)

// version is set by the linker.
var version = "unknown"

func main() {
	os.Exit(start(os.Args, wired()))
}

// start runs the program with the process's streams and signals, and returns its exit code.
func start(args []string, w wiring) int {
	// A lab's job is this binary too. It begins here, before anything else is set up, for it must begin fast.
	if len(args) > 1 && args[1] == "train" {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
		return train.Run(context.Background(), args[2:], os.Stdout, os.Stderr, signals)
	}
	// Rigs run it inside a job, too, to try their own walls out: it links nothing, so that it starts in an empty image.
	if len(args) > 2 && args[1] == "inside" && args[2] == "door" {
		return door.Main(context.Background(), args[3:], os.Stdout)
	}
	if len(args) > 1 && args[1] == "inside" {
		return inside.Main(args[2:], os.Stdout)
	}
	agent.Begin()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal kills
	p := &program{
		wiring: w, in: os.Stdin, version: version, self: args[0],
		Terminal: cli.Terminal{Program: "haggle", Out: os.Stdout, Err: os.Stderr},
	}
	return p.run(ctx, args[1:])
}
