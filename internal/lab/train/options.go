package train

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

// options is what a run was asked for.
type options struct {
	steps        int
	exit         int
	seed         uint64
	stepTime     time.Duration
	checkpoint   string
	resume       bool
	linesPerStep int
	memMB        int
	ignoreTerm   bool
}

// parse reads the arguments after the program's word. Usage and mistakes are written to stderr by the flag package.
func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("train", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.steps, "steps", 100, "train for `N` steps, 1 to 1000000000")
	flags.IntVar(&o.exit, "exit", 0, "end with exit code `N`, 0 to 255, once all steps are done")
	flags.Uint64Var(&o.seed, "seed", 1, "draw pictures and first weights from seed `N`")
	flags.DurationVar(&o.stepTime, "step-time", 200*time.Millisecond, "take at least `TIME` for a step, 0 for as fast as possible")
	flags.StringVar(&o.checkpoint, "checkpoint", "ckpt.json", "save the model to `FILE` every 10 steps, at the end and when stopped")
	flags.BoolVar(&o.resume, "resume", false, "go on from the checkpoint, if there is one")
	flags.IntVar(&o.linesPerStep, "lines-per-step", 1, "print `N` lines a step, 1 to 100000")
	flags.IntVar(&o.memMB, "mem", 0, "hold `MB` megabytes (10^6 bytes) of memory, 0 to 1000000")
	flags.BoolVar(&o.ignoreTerm, "ignore-term", false, "go on when told to stop by SIGTERM")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	err := errors.Join(
		within("steps", o.steps, 1, 1e9), within("exit", o.exit, 0, 255),
		within("lines-per-step", o.linesPerStep, 1, 1e5), within("mem", o.memMB, 0, 1e6))
	switch {
	case err != nil:
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.stepTime < 0 || o.stepTime > time.Hour:
		err = fmt.Errorf("--step-time %v is not between 0 and 1h", o.stepTime)
	case o.checkpoint == "":
		err = errors.New("--checkpoint needs a file name")
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "train: %v\n", err) // a closed stderr must not hide the exit code
	}
	return o, err
}

func within(name string, v, low, high int) error {
	if v < low || v > high {
		return fmt.Errorf("--%s %d is not between %d and %d", name, v, low, high)
	}
	return nil
}
