package door

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// The door lives on the memory that the tenant pays for. Both are wishes and not walls: a busy door may pass them.
const (
	memoryLimit = 64 << 20
	gcPercent   = 50
)

// Main is the program `haggle inside door`, from its arguments to its exit code.
//
//	[--idle DURATION] [--root DIR] ADDRESS
//	shell [-c COMMAND]
//
// ADDRESS is the path of a unix socket, or @NAME for an abstract one. When it listens it writes "ready\n" to out, once, and
// needs out no more. With --idle it leaves when no path was open for so long. --root names the folder that stands for /work
// where a job has no file system of its own. It runs until SIGTERM or the end of ctx. The second form is the built-in
// shell, which the door itself starts where an image has none.
func Main(ctx context.Context, args []string, out io.Writer) int {
	if len(args) > 0 && args[0] == "shell" {
		return Shell(ctx, args[1:], os.Stdin, os.Stdout, os.Stderr)
	}
	cfg, err := parse(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "door: %v\n", err)
		return 2
	}
	cfg.Ready = out
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(memoryLimit)

	// A handler, and not signal.Ignore: what is ignored here would be ignored by every process that a session starts.
	deaf := make(chan os.Signal, 1)
	signal.Notify(deaf, syscall.SIGHUP, os.Interrupt, syscall.SIGPIPE)
	defer signal.Stop(deaf)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()

	d, err := New(cfg)
	if err == nil {
		err = d.Run(ctx)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintf(os.Stderr, "door: %v\n", err)
		return 1
	}
	return 0
}

func parse(args []string) (Config, error) {
	var cfg Config
	set := flag.NewFlagSet("door", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.DurationVar(&cfg.Idle, "idle", 0, "")
	set.StringVar(&cfg.Root, "root", "", "")
	if err := set.Parse(args); err != nil {
		return cfg, err
	}
	if set.NArg() != 1 {
		return cfg, errors.New("usage: door [--idle DURATION] [--root DIR] ADDRESS")
	}
	cfg.Address = set.Arg(0)
	return cfg, nil
}
