package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/view"
	"haggle/market"
)

const copyHelp = "What is there already is not sent again: the same command goes on where it was cut. Ctrl-C ends it. A job that has ended\n" +
	"or is kept can be copied from and to, until its disk is destroyed."

func (p *program) copyCommand() *cobra.Command {
	var asJSON bool
	c := p.action(&cobra.Command{
		Use:   "cp SRC DST",
		Short: "copy files into a job or out of it",
		Long: "Copy files and folders. One side is LEASE:PATH, where a relative path is below /work. A folder is copied into DST; with a /\n" +
			"at its end its contents are. " + copyHelp,
		Example: "  haggle cp data train:\n  haggle cp train:out/model.bin .\n  haggle cp src/ train:/work/code",
		Args:    cli.Words(2, 2, "SRC and DST"),
	}, func(ctx context.Context, args []string) error {
		lease, r, err := copyRequest(args[0], args[1])
		if err != nil {
			return err
		}
		return p.copy(ctx, lease, r, asJSON)
	})
	c.Flags().BoolP("recursive", "r", false, "accepted for habit's sake: folders are always copied whole")
	c.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON; progress is lines of JSON on stderr")
	return c
}

func (p *program) syncCommand() *cobra.Command {
	var asJSON, remove, ignore bool
	c := p.action(&cobra.Command{
		Use:   "sync SRC DST",
		Short: "make a folder in a job, or here, like another",
		Long: "Copy the contents of one folder into another; only what differs is sent. One side is LEASE:PATH, where a relative path is\n" +
			"below /work. " + copyHelp,
		Example: "  haggle sync src train:src\n  haggle sync --delete train:out results",
		Args:    cli.Words(2, 2, "SRC and DST"),
	}, func(ctx context.Context, args []string) error {
		lease, r, err := copyRequest(args[0], args[1])
		if err != nil {
			return err
		}
		if r.From == "" {
			r.From = "." // of the job, and not its root
		}
		r.From = strings.TrimSuffix(r.From, "/") + "/" // a folder's contents
		r.Delete, r.Ignore = remove, ignore
		if ignore && !r.Push {
			return cli.Usage("--ignore is for what is sent, not for what is fetched", "leave it out")
		}
		return p.copy(ctx, lease, r, asJSON)
	})
	flags := c.Flags()
	flags.BoolVar(&remove, "delete", false, "delete what SRC does not have")
	flags.BoolVar(&ignore, "ignore", false, "leave out what .gitignore and .haggleignore name")
	flags.BoolVar(&asJSON, "json", false, "print the report as JSON; progress is lines of JSON on stderr")
	return c
}

// copyTries is how many agents a copy outlives.
const copyTries = 4

// copy runs one copy and says how it went.
func (p *program) copy(ctx context.Context, lease string, r view.CopyRequest, asJSON bool) error {
	name := "fetching"
	if r.Push {
		name = "sending"
	}
	m := p.meter(name, asJSON)
	began := time.Now()
	var report view.CopyReport
	var err error
	for tries := 0; tries < copyTries; tries++ {
		report, err = ask(ctx, p, func(c *api.AgentClient) (view.CopyReport, error) { return c.Copy(ctx, lease, r, m.show) })
		if !errors.Is(err, api.ErrLost) || ctx.Err() != nil || p.gone() != nil {
			break // else a new agent goes on with what has arrived
		}
	}
	m.clear()
	switch {
	case err != nil && ctx.Err() != nil:
		p.Say("interrupted; what has arrived stays: the same command goes on there")
		return cli.Exit(cli.ExitInterrupted)
	case errors.Is(err, api.ErrLost):
		return hinted(market.ClassUnreachable, "the agent went away before the copy was done", "run the same command again: it goes on where it was")
	case err != nil:
		return err
	case asJSON:
		return p.JSON(report)
	}
	text := plural(report.Files, "file") + ", " + cli.Bytes(report.Bytes)
	if report.Same > 0 {
		text += "; " + plural(report.Same, "file") + " there already"
	}
	p.Say("%s; sent %s in %s", text, cli.Bytes(report.Sent), lasting(max(1, time.Since(began).Milliseconds())))
	return nil
}

// copyRequest reads SRC and DST of a command line, of which one is LEASE:PATH.
func copyRequest(src, dst string) (lease string, r view.CopyRequest, err error) {
	from, fromPath, fromJob := splitPlace(src)
	to, toPath, toJob := splitPlace(dst)
	hint := "write LEASE:PATH for the job's side, and ./name for a local name with a colon"
	switch {
	case fromJob && toJob:
		return "", r, cli.Usage("both sides are in a job", "copy from one job to this machine, and from here to the other; "+hint)
	case !fromJob && !toJob:
		return "", r, cli.Usage("neither side is in a job", hint)
	}
	if fromJob {
		r.From = fromPath
		r.To, err = localPath(dst)
		return from, r, err
	}
	r.Push, r.To = true, toPath
	r.From, err = localPath(src)
	return to, r, err
}

// splitPlace takes LEASE:PATH apart. A colon behind a slash belongs to a local name, and so does that of a drive.
func splitPlace(s string) (lease, path string, inJob bool) {
	lease, path, inJob = strings.Cut(s, ":")
	if !inJob || lease == "" || strings.ContainsAny(lease, `/\`) || filepath.VolumeName(s) != "" {
		return "", s, false
	}
	return lease, path, true
}

// localPath makes a path absolute and keeps the / at its end, which says that a folder's contents are meant.
func localPath(s string) (string, error) {
	path, err := filepath.Abs(s)
	if err != nil {
		return "", hinted(market.ClassFailed, "cannot find "+s+": "+err.Error(), "write its whole path")
	}
	contents := strings.HasSuffix(s, "/") || os.IsPathSeparator(s[len(s)-1]) || filepath.Base(s) == "." && len(s) > 1
	if contents && !strings.HasSuffix(path, "/") {
		path += "/"
	}
	return path, nil
}

// plural counts things.
func plural(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.FormatInt(n, 10) + " " + thing + "s"
}
