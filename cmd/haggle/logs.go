package main

import (
	"context"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/view"
)

func (p *program) logsCommand() *cobra.Command {
	var follow bool
	var offset int64
	c := p.action(&cobra.Command{
		Use:     "logs LEASE",
		Short:   "print a job's output",
		Long:    "Print what a job has written: its stdout to stdout, its stderr to stderr. What there is to say of the job's disk and\ntraffic follows on stderr.",
		Example: "  haggle logs 3f9a12c4\n  haggle logs -f 3f9a12c4 >out.txt",
		Args:    cli.Words(1, 1, "LEASE"),
	}, func(ctx context.Context, args []string) error {
		if offset < 0 {
			return cli.Usage("--offset must not be negative", "0 is the beginning")
		}
		if err := p.copyLog(ctx, args[0], &logCopy{offset: offset}, follow); err != nil {
			return err
		}
		return p.tellUse(ctx, args[0])
	})
	c.Flags().BoolVarP(&follow, "follow", "f", false, "wait for more until the job ends")
	c.Flags().Int64Var(&offset, "offset", 0, "begin at this byte of the rig's log file, which must be the end of a record")
	return c
}

// tellUse says what explains a job's output beside itself: a full disk, and what went over the network.
func (p *program) tellUse(ctx context.Context, id string) error {
	l, err := ask(ctx, p, func(c *api.AgentClient) (view.Lease, error) { return c.Lease(ctx, id) })
	if err != nil {
		return err
	}
	if l.DiskFull {
		p.Say("%s", fullDisk(l))
	}
	if text := traffic(l); text != "" {
		p.Say("the job's traffic: %s", text)
	}
	return nil
}

// fullDisk says that a job's disk is full, and what to do.
func fullDisk(l view.Lease) string {
	text := "the job's disk has been full"
	if use := diskUse(l); use != "" {
		text += "; it uses " + use
	}
	return text + " (hint: `--disk SIZE` orders more next time)"
}
