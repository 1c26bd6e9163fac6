package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"haggle/internal/cli"
)

// finalWait is how long run waits, after the job's end, for the final receipt that both signed, and for a log that stands
// still.
const finalWait = 30 * time.Second

func (p *program) runCommand() *cobra.Command {
	var f orderFlags
	var detach bool
	c := &cobra.Command{
		Use:   "run [QUERY…] --image NAME [-- COMMAND…]",
		Short: "rent cards, run a job on them and stay with it",
		Long: "Rent cards, run a job on them, print its output and return its exit code. The code is 125 for every failure of run\n" +
			"itself. Ctrl-C leaves the job running and says how to come back (130). What --collect names is waited for.\n\n" + orderHelp + "\n\n" +
			"With --json, run writes the lease to stderr as a line of JSON whenever it changes; stdout is the job's alone.",
		Example:     fmt.Sprintf(orderExample, "run"),
		Args:        cobra.ArbitraryArgs,
		Annotations: map[string]string{cli.OwnFailure: strconv.Itoa(cli.ExitOwn)},
	}
	p.action(c, func(ctx context.Context, args []string) error {
		b, err := p.order(c, f, args)
		if err != nil {
			return err
		}
		l, err := p.bid(ctx, b, f.json)
		switch {
		case err != nil && ctx.Err() != nil:
			return cli.Exit(cli.ExitInterrupted)
		case err != nil:
			return err
		}
		if detach {
			return p.printBid(l, f.json)
		}
		return p.attend(ctx, l, f.json)
	})
	f.register(c)
	p.completeOrder(c)
	c.Flags().BoolVarP(&detach, "detach", "d", false, "print the lease's id and leave, as bid does")
	c.Flags().BoolVar(&f.json, "json", false, "write JSON: the lease at each change to stderr, with --detach once to stdout")
	return c
}
