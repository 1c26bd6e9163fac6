package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"haggle/market"
	"haggle/runtime"
)

// taskKind is a kind of call into the engine.
type taskKind int

const (
	taskPrepare taskKind = iota + 1
	taskStart
	taskEnd
	taskLook
	taskUsage
	taskScrub
	taskRemove
)

// task is one call into the engine.
type task struct {
	kind  taskKind
	grace time.Duration // of taskEnd
	// secrets are for taskPrepare and taskStart; hopeful says that lost ones may still come again.
	secrets map[string][]byte
	hopeful bool
}

// result is what came of it.
type result struct {
	events  []market.Event
	epoch   int64 // the engine's, when the call began
	running bool  // the job was seen to run
	usage   *runtime.Usage
	retry   bool  // the engine does not answer
	err     error // what went wrong, for the log
}

// Times that calls may take beyond what they wait for. Making and starting are bounded by the lease's own rules.
const (
	engineAnswer = 30 * time.Second
	usageAnswer  = 5 * time.Second
	lostCode     = int64(125) // the exit code of a job whose end nobody saw

	minDiskBytes = 16 << 20 // below it no file system fits
	bytesPerMB   = int64(1_000_000)
)

// timeout is the longest time that a call may take, 0 without a bound.
func (t task) timeout() time.Duration {
	switch t.kind {
	case taskPrepare, taskStart, taskScrub:
		return 0
	case taskUsage:
		return usageAnswer
	}
	return t.grace + engineAnswer
}

// order lets the worker do a task after those that wait. An end goes before everything and interrupts what it meets,
// unless that is an end at least as soon.
func (l *lease) order(ctx context.Context, t task) {
	w := &l.worker
	same := func(other task) bool {
		return other.kind == t.kind && other.grace <= t.grace && other.hopeful == t.hopeful && (other.secrets == nil) == (t.secrets == nil)
	}
	// A look in flight may have seen what was before the hint that asks for this one.
	underway := w.busy != nil && same(*w.busy) && !w.dropped && t.kind != taskLook
	if underway || slices.ContainsFunc(w.queue, same) {
		return
	}
	if t.kind == taskEnd {
		w.queue = nil
		w.interrupt()
	}
	w.queue = append(w.queue, t)
	l.work(ctx)
}

// work starts the next task if the worker is idle.
func (l *lease) work(ctx context.Context) {
	w := &l.worker
	if w.busy != nil || len(w.queue) == 0 || ctx.Err() != nil {
		return
	}
	t := w.queue[0]
	w.queue = w.queue[1:]
	w.busy, w.dropped = &t, false
	ctx, w.cancel = context.WithCancel(ctx)
	record := l.record
	record.Lease = l.state
	w.running.Go(func() { w.results <- l.d.carryOut(ctx, record, t) })
}

// finished takes a task's result.
func (l *lease) finished(ctx context.Context, r result) {
	w := &l.worker
	w.cancel()
	kind, dropped := w.busy.kind, w.dropped
	w.busy, w.dropped = nil, false
	if !dropped {
		l.heard(kind, r.err)
		if r.running {
			l.sawRunning(ctx, r.epoch)
		}
		if r.usage != nil {
			l.usage = *r.usage
		}
		l.happened(ctx, r.events...)
		if r.retry {
			l.joined = 0
		}
	}
	l.work(ctx)
}

// heard logs the first of a row of failures of one kind of call.
func (l *lease) heard(kind taskKind, err error) {
	if err != nil && !l.failing[kind] {
		l.d.log.Warn("engine", slog.String("lease", l.id.Short()), slog.Any("err", err))
	}
	l.failing[kind] = err != nil
}

// sawRunning notes that the job runs. The time in which nobody could see it is not billed.
func (l *lease) sawRunning(ctx context.Context, epoch int64) {
	if l.observed == epoch {
		return
	}
	l.observed = epoch
	if l.state.Job != market.JobRunning || len(l.late) > 0 {
		return
	}
	l.happened(ctx, market.Unseen{})
}

// carryOut does a task. It runs beside the lease's goroutine and touches nothing of the lease.
func (d *Daemon) carryOut(ctx context.Context, r Record, t task) result {
	res := result{epoch: d.engine.epoch.Load()}
	if limit := t.timeout(); limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	var err error
	switch t.kind {
	case taskPrepare:
		res.events, err = d.prepare(ctx, r, t)
	case taskStart:
		res.events, err = d.start(ctx, r, t)
		res.running = err == nil
	case taskEnd:
		res.events, err = d.endJob(ctx, r, t.grace)
	case taskLook:
		res.events, res.running, err = d.look(ctx, r)
	case taskUsage:
		res.usage, err = d.usage(ctx, r)
	case taskScrub:
		res.events, err = d.wipe(ctx, r)
	case taskRemove:
		res.events, err = d.remove(ctx, r)
	}
	if ctx.Err() == nil {
		res.err = err
	}
	res.retry = err != nil && len(res.events) == 0 && t.kind != taskUsage // the next comes soon by itself
	return res
}

// prepare makes the container. An error without an event is one that passes.
func (d *Daemon) prepare(ctx context.Context, r Record, t task) ([]market.Event, error) {
	if r.Job.Secrets > 0 && t.secrets == nil {
		return d.prepareBlind(ctx, r, t)
	}
	spec, err := d.spec(r)
	if err == nil && r.Job.Archive > 0 && r.Lease.Attempt == 0 {
		err = d.importImage(ctx, r)
	}
	if err == nil {
		spec.Secrets = t.secrets
		err = d.cfg.Runtime.Create(ctx, spec)
	}
	switch {
	case err == nil:
		return []market.Event{market.Prepared{}}, nil
	case passes(ctx, err):
		return nil, fmt.Errorf("prepare job: %w", err)
	}
	return []market.Event{market.Failed{Reason: market.ReasonPrepare, Code: failure(err)}}, fmt.Errorf("prepare job: %w", err)
}

// prepareBlind looks for the container of a job whose secrets are lost: it may have been made while they were there.
func (d *Daemon) prepareBlind(ctx context.Context, r Record, t task) ([]market.Event, error) {
	_, err := d.cfg.Runtime.Status(ctx, jobName(r.Lease))
	switch {
	case err == nil:
		return []market.Event{market.Prepared{}}, nil
	case !errors.Is(err, runtime.ErrNotFound):
		return nil, fmt.Errorf("look for job: %w", err)
	case t.hopeful:
		return nil, nil
	}
	return []market.Event{market.Failed{Reason: market.ReasonPrepare, Code: market.CodeSecretsLost}}, nil
}

// start starts the container, and makes it anew if it is gone and had nothing on its disk.
func (d *Daemon) start(ctx context.Context, r Record, t task) ([]market.Event, error) {
	id := jobName(r.Lease)
	d.limitPower(ctx, r)
	err := d.cfg.Runtime.Start(ctx, id)
	// What was on the disk of another cannot be made anew.
	if errors.Is(err, runtime.ErrNotFound) && r.Lease.Attempt == 0 && r.Lease.Terms.Upload == 0 {
		if events, err := d.prepare(ctx, r, t); err != nil || r.Job.Secrets > 0 && t.secrets == nil {
			return events, err
		}
		err = d.cfg.Runtime.Start(ctx, id)
	}
	switch {
	case err == nil:
		return []market.Event{market.Started{}}, nil
	case passes(ctx, err):
		return nil, fmt.Errorf("start job: %w", err)
	case errors.Is(err, runtime.ErrConflict): // it has run before and ended
		if events, _, lookErr := d.look(ctx, r); lookErr == nil && len(events) > 0 {
			return events, nil
		}
	}
	// It may still have come to life: it must not outlive its lease.
	if killErr := d.cfg.Runtime.Kill(ctx, id); killErr != nil && !errors.Is(killErr, runtime.ErrNotFound) {
		err = errors.Join(err, killErr)
	}
	return []market.Event{market.Failed{Reason: market.ReasonStart, Code: failure(err)}}, fmt.Errorf("start job: %w", err)
}

// endJob ends the job and tells how it ended.
func (d *Daemon) endJob(ctx context.Context, r Record, grace time.Duration) ([]market.Event, error) {
	err := d.cfg.Runtime.Stop(ctx, jobName(r.Lease), grace)
	if err != nil && !errors.Is(err, runtime.ErrNotFound) {
		return nil, fmt.Errorf("end job: %w", err)
	}
	if errors.Is(err, runtime.ErrNotFound) && r.Lease.AttemptMs() == 0 {
		return []market.Event{market.Failed{Reason: r.Lease.Reason}}, nil // it was never made
	}
	events, _, err := d.look(ctx, r)
	return events, err
}

// look asks the engine what became of the job.
func (d *Daemon) look(ctx context.Context, r Record) (events []market.Event, running bool, err error) {
	s, err := d.cfg.Runtime.Status(ctx, jobName(r.Lease))
	switch {
	case errors.Is(err, runtime.ErrNotFound):
		return []market.Event{market.Exited{Code: lostCode, Lost: true}}, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("look after job: %w", err)
	case s.State == runtime.Running:
		return nil, true, nil
	case s.State == runtime.Created && r.Lease.Job != market.JobRunning:
		return nil, false, nil
	}
	e := market.Exited{Code: lostCode, Lost: true}
	if s.Exit != nil {
		e = market.Exited{Code: int64(s.Exit.Code), OOM: s.Exit.OOM, DiskFull: s.Exit.DiskFull}
	}
	if u, err := d.usage(ctx, r); err == nil && u != nil {
		e.In, e.Out = counted(u.NetInBytes), counted(u.NetOutBytes)
	}
	if !s.StartedAt.IsZero() && s.ExitedAt.After(s.StartedAt) {
		e.RanMs = (s.ExitedAt.Sub(s.StartedAt) + time.Millisecond - 1).Milliseconds()
	}
	return []market.Event{e}, false, nil
}

// remove destroys all that is kept of the job: every attempt, the newest first, which has the disk.
func (d *Daemon) remove(ctx context.Context, r Record) ([]market.Event, error) {
	l := r.Lease
	for {
		if err := d.cfg.Runtime.Remove(ctx, jobName(l)); err != nil {
			return nil, err
		}
		if l.Attempt == 0 {
			return []market.Event{market.Removed{}}, nil
		}
		l.Attempt--
	}
}
