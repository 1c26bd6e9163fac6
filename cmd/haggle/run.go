package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"haggle/internal/cli"
	"haggle/internal/view"
	"haggle/market"
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
			"itself. Ctrl-C leaves the job running and says how to come back (130).\n\n" + orderHelp + "\n\n" +
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
	c.Flags().BoolVarP(&detach, "detach", "d", false, "print the lease's id and leave, as bid does")
	c.Flags().BoolVar(&f.json, "json", false, "write JSON: the lease at each change to stderr, with --detach once to stdout")
	return c
}

// attend stays with a job until its end: its log is copied while its lease is watched, two requests at once.
func (p *program) attend(ctx context.Context, l view.Lease, asJSON bool) error {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	log := &logCopy{}
	copied := make(chan error, 1)
	copier, watcher := p.fork(), p.fork()
	go func() { copied <- copier.copyLog(within, l.ID, log, true) }()
	watched := make(chan view.Lease)
	failed := make(chan error, 1)
	go func() { failed <- watcher.watch(within, l.ID, watched) }()
	a := attendance{program: p, lease: l, log: log, json: asJSON}
	err := a.wait(ctx, copied, watched, failed)
	if ctx.Err() != nil {
		p.Say("left; lease %s goes on. To come back: `haggle logs -f %s`; to stop it: `haggle stop %s`", short(l.ID), short(l.ID), short(l.ID))
		return cli.Exit(cli.ExitInterrupted)
	}
	if err != nil {
		return err
	}
	return a.end()
}

// fork returns a program with a client of its own state, for a second goroutine. The connections are shared.
func (p *program) fork() *program {
	twin := *p
	return &twin
}

// attendance is what run knows of the job that it stays with.
type attendance struct {
	*program
	lease   view.Lease
	log     *logCopy
	copied  bool  // the log has ended
	logErr  error // how, if not well
	json    bool
	told    string // the state that was told last
	full    bool   // that the disk is full was told
	seen    int64  // bytes of the log at the last look
	expired bool   // after the job's end nothing more came in time
}

// wait returns when the job has ended, its log is copied and its final receipt is there, or was waited for long enough.
func (a *attendance) wait(ctx context.Context, copied <-chan error, watched <-chan view.Lease, failed <-chan error) error {
	var late <-chan time.Time
	a.tell()
	for !a.done() {
		if a.ended() && late == nil {
			a.seen = a.log.bytes.Load()
			timer := time.NewTicker(finalWait)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case a.logErr = <-copied:
			a.copied = true
		case l := <-watched:
			if rank(l.State) >= rank(a.lease.State) { // an older word may overtake the present state
				a.lease = l
				a.tell()
			}
		case err := <-failed:
			return err
		case <-late:
			now := a.log.bytes.Load()
			a.expired = a.copied || now == a.seen // a long log that still comes is waited for
			a.seen = now
		}
	}
	return nil
}

func (a *attendance) ended() bool { return a.lease.State == string(market.JobEnded) }

func (a *attendance) done() bool {
	return a.ended() && (a.expired || a.copied && a.lease.Debt != string(market.DebtOpen))
}

// rank orders the states of a job, which never go back.
func rank(state string) int {
	return slices.Index([]market.JobState{
		market.JobGranted, market.JobPreparing, market.JobStarting, market.JobRunning, market.JobStopping, market.JobEnded,
	}, market.JobState(state))
}

// tell says which state the job has come to.
func (a *attendance) tell() {
	if a.json {
		if err := printLine(a.Err, a.lease); err != nil {
			return // stderr is closed: nobody listens
		}
		return
	}
	if a.lease.DiskFull && !a.full {
		a.full = true
		a.Say("%s", fullDisk(a.lease))
	}
	if a.lease.State == a.told || a.ended() || a.lease.State == string(market.JobGranted) {
		return
	}
	a.told = a.lease.State
	text := clean(a.lease.State)
	if a.lease.Reason != "" {
		text += ": " + clean(a.lease.Reason)
	}
	if a.lease.EndsBy > 0 {
		text += "; it is killed at " + clock(a.lease.EndsBy)
	}
	a.Say("%s", text)
}

// end says how the lease ended and returns the job's exit code.
func (a *attendance) end() error {
	l := a.lease
	receipt := fmt.Sprintf("receipt #%d signed by both", l.Receipts)
	switch {
	case l.Debt == string(market.DebtDisputed):
		receipt = "receipt disputed"
	case l.Debt == string(market.DebtOpen):
		receipt = "receipt still open"
	case l.Receipts == 0:
		receipt = "nothing is owed"
	}
	how := clean(l.Reason)
	if l.Exit != nil {
		how += fmt.Sprintf(", exit %d", *l.Exit)
	}
	if !a.json {
		a.Say("lease %s ended: %s; billed %s, %s, %s", short(l.ID), how, lasting(l.BilledMs), money(l.Spent), receipt)
	}
	switch {
	case l.Exit == nil:
		return hinted(market.ClassRefused, "the job did not run: "+l.Reason, "nothing is billed for a job that did not run; choose another rig or image")
	case !a.copied:
		a.Say("the end of the log has not come (hint: `haggle logs %s`)", short(l.ID))
	case errors.Is(a.logErr, market.NewError(market.CodeNoLog)):
		a.Say("%s", market.Explain(a.logErr).Message)
	case a.logErr != nil:
		return a.logErr
	}
	return cli.Exit(int(*l.Exit))
}
