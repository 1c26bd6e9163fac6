package main

import (
	"context"

	"github.com/spf13/cobra"

	"haggle/internal/cli"
)

func (p *program) logsCommand() *cobra.Command {
	var follow bool
	var offset int64
	c := p.action(&cobra.Command{
		Use:     "logs LEASE",
		Short:   "print a job's output",
		Long:    "Print what a job has written: its stdout to stdout, its stderr to stderr.",
		Example: "  haggle logs 3f9a12c4\n  haggle logs -f 3f9a12c4 >out.txt",
		Args:    cli.Words(1, 1, "LEASE"),
	}, func(ctx context.Context, args []string) error {
		if offset < 0 {
			return cli.Usage("--offset must not be negative", "0 is the beginning")
		}
		return p.copyLog(ctx, args[0], &logCopy{offset: offset}, follow)
	})
	c.Flags().BoolVarP(&follow, "follow", "f", false, "wait for more until the job ends")
	c.Flags().Int64Var(&offset, "offset", 0, "begin at this byte of the rig's log file, which must be the end of a record")
	return c
}
