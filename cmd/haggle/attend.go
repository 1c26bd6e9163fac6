package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"haggle/internal/cli"
	"haggle/internal/view"
	"haggle/market"
)

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
	a := attendance{program: p, lease: l, log: log, json: asJSON, sending: p.meter("sending", asJSON), money: payTeller{program: p}}
	err := a.wait(ctx, copied, watched, failed)
	a.sending.clear()
	switch {
	case ctx.Err() != nil && a.ended() && collecting(a.lease):
		a.sayBrought(a.lease)
		return cli.Exit(cli.ExitInterrupted)
	case ctx.Err() != nil:
		p.Say("left; lease %s goes on. To come back: `haggle logs -f %s`; to stop it: `haggle stop %s`", short(l.ID), called(l), called(l))
		return cli.Exit(cli.ExitInterrupted)
	case err != nil:
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
	sending *meter // what is sent before the start
	money   payTeller
	seen    int64 // bytes of the log, and of what is collected, at the last look
	expired bool  // after the job's end nothing more came in time
}

// wait returns when the job has ended, its log is copied and its final receipt is there, or was waited for long enough.
func (a *attendance) wait(ctx context.Context, copied <-chan error, watched <-chan view.Lease, failed <-chan error) error {
	var late <-chan time.Time
	a.tell()
	for !a.done() {
		if a.ended() && late == nil {
			a.seen = a.moved()
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
			if !older(l, a.lease) { // an older word may overtake the present state
				a.lease = l
				a.tell()
			}
		case err := <-failed:
			return err
		case <-late:
			now := a.moved()
			a.expired = now == a.seen || a.copied && !collecting(a.lease) // what still comes is waited for
			a.seen = now
		}
	}
	return nil
}

// moved counts what has come from the job.
func (a *attendance) moved() int64 {
	n := a.log.bytes.Load()
	for _, c := range a.lease.Collects {
		n += c.Bytes + c.Files
	}
	return n
}

// ended reports whether the job runs no more, for now or for good.
func (a *attendance) ended() bool {
	return a.lease.State == string(market.JobEnded) || isPaused(a.lease)
}

func (a *attendance) done() bool {
	settled := isPaused(a.lease) || a.lease.Debt != string(market.DebtOpen)
	return a.ended() && (a.expired || a.copied && settled && !collecting(a.lease))
}

// older reports whether what l says was true before what now says. A job's states never go back within one attempt.
func older(l, now view.Lease) bool {
	if l.Attempt != now.Attempt {
		return l.Attempt < now.Attempt
	}
	return rank(l.State) < rank(now.State)
}

// rank orders the states of one attempt of a job.
func rank(state string) int {
	return slices.Index([]market.JobState{
		market.JobGranted, market.JobPreparing, market.JobStarting, market.JobRunning, market.JobStopping, market.JobPaused, market.JobEnded,
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
	if up := a.lease.Uploading; up != nil {
		a.sending.show(*up)
		return
	}
	a.sending.clear()
	if a.lease.DiskFull && !a.full {
		a.full = true
		a.Say("%s", fullDisk(a.lease))
	}
	a.money.tell(a.lease)
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
	if isPaused(l) {
		return a.paused()
	}
	how := clean(l.Reason)
	if l.Exit != nil {
		how += fmt.Sprintf(", exit %d", *l.Exit)
	}
	if !a.json {
		a.Say("lease %s ended: %s; billed %s, %s, %s", short(l.ID), how, lasting(l.BilledMs), money(l.Spent), receipt)
		if l.Pay != nil && l.Pay.Balance.Micro > 0 {
			a.Say("%s of what was paid are left with its owner, for another lease: `haggle ledger`", money(l.Pay.Balance))
		}
		a.sayBrought(l)
	}
	switch {
	case l.Error != nil: // a job that was made and never ran has an exit code, too
		return l.Error.Err()
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

// paused says that the job's disk is kept, and returns its exit code if it ran.
func (a *attendance) paused() error {
	l := a.lease
	if !a.json {
		if l.Reason == string(market.ReasonUnpaid) {
			a.Say("what was paid is used up: `haggle pay %s` pays more", called(l))
		}
		a.Say("lease %s is paused: its disk is kept. `haggle resume %s` starts the job again, `haggle rm %s` destroys the disk", short(l.ID), called(l), called(l))
	}
	if l.Exit == nil {
		return hinted(market.ClassRefused, "the job does not run: "+state(l), "`haggle resume` starts it again")
	}
	return cli.Exit(int(*l.Exit))
}
