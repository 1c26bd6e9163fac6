package renter

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"haggle/internal/filesync"
	"haggle/market"
)

// bringHome brings what a lease has to collect home each time its job has ended, over connections, rigs and agents that end. It
// returns when nothing is left to wait for.
func (a *Agent) bringHome(ctx context.Context, l *lease) {
	var wait pause
	for ctx.Err() == nil {
		change := l.watch()
		r, _ := l.get()
		job := r.State.Job
		switch {
		case r.State.void(), job == market.JobEnded && !r.Inside.owes(r.State.Attempt):
			return
		case job != market.JobEnded && job != market.JobPaused, !r.Inside.owes(r.State.Attempt):
			wait.reset()
			select {
			case <-change:
			case <-ctx.Done():
			}
			continue
		}
		if a.collectAll(ctx, r) {
			continue
		}
		rest(ctx, wait.take(lostPause))
	}
}

// collectAll tries to bring home all that is owed, and reports whether nothing of it has to be tried again.
func (a *Agent) collectAll(ctx context.Context, r Record) bool {
	settled := true
	for i, c := range r.Inside.Collects {
		if !c.owed(r.State.Attempt) || ctx.Err() != nil {
			continue
		}
		next := a.collect(ctx, r, c)
		if ctx.Err() != nil {
			return false
		}
		settled = settled && !next.owed(r.State.Attempt)
		if next == c {
			continue
		}
		_, err := a.amend(ctx, r, func(in *Inside) error {
			if i < len(in.Collects) {
				in.Collects[i] = next
			}
			return nil
		})
		if err != nil {
			a.cfg.Log.Warn("a collected folder cannot be noted", "lease", r.Lease.Short(), "err", err)
			settled = false
		}
	}
	return settled
}

// collect tries to bring one part home.
func (a *Agent) collect(ctx context.Context, r Record, c Collect) Collect {
	if why := a.hopeless(r); why != "" {
		c.Over, c.Error = true, why
		return c
	}
	report, err := a.pullInto(ctx, r, c)
	c.Files, c.Bytes = report.Files, report.Bytes
	switch code := market.CodeOf(err); code {
	case "":
		c.After, c.Error = r.State.Attempt+1, ""
		a.cfg.Log.Info("collected", "lease", r.Lease.Short(), "files", report.Files, "bytes", report.Bytes)
	case market.CodeFileNotFound:
		c.After, c.Error = r.State.Attempt+1, fmt.Sprintf("the job left no %s", market.Printable(c.Remote))
	default:
		c.Error = market.Explain(err).Message
		if code == market.CodeInternal {
			c.Error = clipText(err.Error())
		}
	}
	return c
}

// pullInto brings the contents of a folder, or a file, into a local folder.
func (a *Agent) pullInto(ctx context.Context, r Record, c Collect) (filesync.Report, error) {
	pull := filesync.PullConfig{From: strings.TrimRight(far(c.Remote), "/") + "/", To: contents(c.Local), MaxBytes: maxCollected(r), Sync: true} // the rig destroys its copy
	report, err := a.pull(ctx, r, pull)
	var told *filesync.Error
	if errors.As(err, &told) && told.Message == notFolder {
		pull.From, pull.To = strings.TrimRight(far(c.Remote), "/"), filepath.Clean(c.Local)
		return a.pull(ctx, r, pull)
	}
	return report, err
}

// notFolder is what a copy says of a file that was named as a folder.
const notFolder = "not a folder"

// maxCollected bounds what a rig can write to this machine's disk: what the job's disk can hold, twice for sparse files.
func maxCollected(r Record) int64 { return 2 * max(r.Terms.Resources.DiskMB, 1) * 1_000_000 }

// hopeless says why nothing can come home any more, or "".
func (a *Agent) hopeless(r Record) string {
	switch r.State.Reason {
	case market.ReasonHoldExpired, market.ReasonPrepare, market.ReasonStart:
		if r.State.Job == market.JobEnded && r.State.BilledMs == 0 && r.Head.BilledMs == 0 {
			return "the job never ran"
		}
	}
	if r.Inside.Failed != nil && r.State.BilledMs == 0 && r.Head.BilledMs == 0 {
		return "the job never ran"
	}
	if o, found := a.outcomeOf(r); found && o.DiskAt != 0 {
		return "the rig has destroyed the job's disk"
	}
	if r.State.Job == market.JobEnded && a.cfg.Clock().UnixMilli() > r.State.Since+market.RetentionMs {
		return "the rig keeps the job's disk no longer"
	}
	return ""
}

// contents names the contents of a local folder, for a copy.
func contents(dir string) string { return filepath.Clean(dir) + string(filepath.Separator) }
