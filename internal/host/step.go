package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"haggle/market"
	"haggle/runtime"
)

// pace is the time between ticks in the present state.
func (l *lease) pace() time.Duration {
	if !l.state.Holds() && l.state.Job != market.JobPaused && !l.till.looks(l.d.cfg.Clock().Mono) {
		return max(endedTick, l.d.cfg.Tick)
	}
	return l.d.cfg.Tick
}

// blind reports whether the job should run and nobody can see whether it does.
func (l *lease) blind() bool { return l.state.Job == market.JobRunning && !l.watched() }

// watched reports whether the job was seen to run since the engine was last lost.
func (l *lease) watched() bool {
	epoch := l.d.engine.epoch.Load()
	return epoch != 0 && epoch == l.observed
}

// step takes one event: rule, store, then act. After an error nothing has changed.
func (l *lease) step(ctx context.Context, e market.Event, k keep) error {
	return l.stepFrom(ctx, l.state, e, k)
}

// stepFrom is step from a state that the caller has corrected.
func (l *lease) stepFrom(ctx context.Context, from market.Lease, e market.Event, k keep) error {
	now := l.d.cfg.Clock()
	blind := l.blind()
	if blind {
		now.Mono = from.Meter.LastMono // money's clock stands still
	}
	next, actions, err := market.Step(from, now, e)
	if err != nil {
		return err
	}
	if blind {
		next.Meter.LastWall = from.Meter.LastWall // so that all of this time is counted as not billed in the end
	}
	signed := l.sign(actions)
	if signed.concludes { // it comes of no other step
		k = func(ctx context.Context, next market.Lease, _ filing) error {
			return l.d.cfg.Store.Conclude(ctx, next, signed.outcome)
		}
	}
	if k != nil || len(actions) > 0 || next.Job != l.state.Job {
		if k == nil {
			k = l.save
		}
		// A step that was begun is stored even if the program is told to end meanwhile.
		if err := k(context.WithoutCancel(ctx), next, signed.filing); err != nil {
			return fmt.Errorf("store lease %s: %w", l.id.Short(), err)
		}
		l.saved = now.Mono
		l.sick.Store(false)
	}
	before, pace := l.state, l.pace()
	l.state, l.draft, l.record.Outcome, l.notice = next, signed.draft, signed.outcome, signed.notice
	if next.Draft == nil {
		l.draft = nil
	}
	l.publish()
	l.follow(before, next)
	if l.ticker != nil && pace != l.pace() {
		l.ticker.Reset(l.pace())
	}
	for _, a := range actions {
		l.perform(ctx, a)
	}
	return nil
}

// follow does what every change of the state brings with it.
func (l *lease) follow(before, next market.Lease) {
	switch {
	case before.Job != next.Job:
		l.turned(before, next)
	case next.Job == market.JobPreparing && before.Ready != next.Ready:
		l.statusAll() // the renter may send what the job begins with
	}
	if before.Attempt != next.Attempt {
		l.again()
	}
	if archiveDue(before, l.wants) && !archiveDue(next, l.wants) {
		l.emptySpool()
	}
	if before.Holds() != next.Holds() || before.Gone != next.Gone {
		l.d.changed()
	}
}

// turned follows the job into a new state.
func (l *lease) turned(before, next market.Lease) {
	l.d.log.Info("lease", slog.String("lease", l.id.Short()), slog.String("state", string(next.Job)), slog.String("reason", string(next.Reason)))
	if before.Job == market.JobRunning || next.Job == market.JobRunning {
		l.load(next.Job == market.JobRunning)
	}
	if next.Job == market.JobEnded {
		l.record.Env, l.secrets = nil, nil
		l.d.changed()
	}
	l.statusAll()
}

// again begins another attempt. What was open in the job before belongs to nobody now: the disk goes to the next.
func (l *lease) again() {
	l.paths.cut()
	l.usage = runtime.Usage{DiskBytes: l.usage.DiskBytes}
	l.full.Store(false)
}

// perform does what a step asked for.
func (l *lease) perform(ctx context.Context, a market.Action) {
	switch a := a.(type) {
	case market.Prepare:
		l.prepare(ctx)
	case market.Start:
		l.order(ctx, task{kind: taskStart, secrets: l.secrets})
	case market.EndJob:
		l.order(ctx, task{kind: taskEnd, grace: time.Duration(a.GraceMs) * time.Millisecond})
	case market.Scrub:
		l.order(ctx, task{kind: taskScrub})
	case market.Remove:
		l.paths.cut()
		l.order(ctx, task{kind: taskRemove})
	case market.Attest:
		l.attest(l.links()...)
	case market.Propose:
		l.propose(l.links()...)
	case market.Warn:
		l.warn(l.links()...)
	case market.AskPay:
		l.drawBalance(ctx, a.Slice) // now or never: once it is asked for, the renter may be paying it
		l.collect(ctx)
	}
}

// tick lets time pass.
func (l *lease) tick(ctx context.Context) {
	l.ticks++
	l.retry(ctx)
	l.join(ctx)
	l.collect(ctx)
	if l.blind() {
		return
	}
	if l.state.Wiping && l.d.slow(l.state) && !l.slow {
		l.slow = true
		l.d.changed() // the offer calls the cards taken again
	}
	if l.state.Job == market.JobRunning && l.ticks%lookEvery == 0 {
		l.order(ctx, task{kind: taskLook})
	}
	if l.state.Job == market.JobRunning && l.ticks%usageEvery == 0 {
		l.order(ctx, task{kind: taskUsage})
	}
	if (l.state.Job == market.JobRunning || l.state.Job == market.JobPaused) && len(l.late) == 0 && l.d.spent(l.state) {
		l.happened(ctx, market.Stop{Reason: market.ReasonCredit})
		return
	}
	if l.stalled() {
		l.happened(ctx, market.Failed{Reason: market.ReasonPrepare, Code: market.CodeUploadMissing})
		return
	}
	if l.impatient() {
		l.prepare(ctx)
	}
	var k keep
	if every := l.saveEvery(); every > 0 && l.d.cfg.Clock().Mono-l.saved >= every {
		k = l.save
	}
	tick := market.Tick{In: counted(l.usage.NetInBytes), Out: counted(l.usage.NetOutBytes)}
	tick.Slots, tick.Read = l.use()
	if err := l.step(ctx, tick, k); err != nil {
		l.complain(err)
		l.giveUp(ctx)
		return
	}
	l.sick.Store(false)
	for _, link := range l.links() {
		if every := l.sayEvery(); every > 0 && l.d.cfg.Clock().Mono-link.said >= every {
			l.status(link)
		}
	}
}

// saveEvery is the time in ms between saves of a meter that runs, 0 where none does.
func (l *lease) saveEvery() int64 {
	switch l.state.Job {
	case market.JobRunning:
		return saveEveryMs
	case market.JobPaused:
		return pausedEveryMs
	}
	return 0
}

// sayEvery is the time in ms between statuses while a meter runs, 0 where none does.
func (l *lease) sayEvery() int64 {
	switch l.state.Job {
	case market.JobRunning:
		return statusEveryMs
	case market.JobPaused:
		return pausedEveryMs
	}
	return 0
}

// join orders what the state still needs, after a start and whenever the engine has come back.
func (l *lease) join(ctx context.Context) {
	epoch := l.d.engine.epoch.Load()
	if epoch == 0 || epoch == l.joined {
		return
	}
	l.joined = epoch
	if l.state.Job == market.JobRunning {
		l.order(ctx, task{kind: taskLook})
	}
	for _, a := range market.Pending(l.state) {
		switch a.(type) {
		case market.Propose, market.AskPay: // a conversation begins with it, and a tick
		case market.EndJob:
			left := min(max(0, l.state.KillAt-l.d.cfg.Clock().Wall), l.state.Terms.NoticeMs) // the wall clock may have been set back
			l.order(ctx, task{kind: taskEnd, grace: time.Duration(left) * time.Millisecond})
		default:
			l.perform(ctx, a)
		}
	}
}

// happened takes what the engine did. What cannot be stored now is tried again with the next tick: it happened.
func (l *lease) happened(ctx context.Context, events ...market.Event) {
	l.late = append(l.late, events...)
	l.retry(ctx)
}

func (l *lease) retry(ctx context.Context) {
	if len(l.late) > 0 && l.ticker != nil {
		defer func() {
			if len(l.late) == 0 {
				l.ticker.Reset(l.pace())
			}
		}()
	}
	for len(l.late) > 0 {
		err := l.step(ctx, l.late[0], l.save)
		var refused *market.Error
		if err != nil && !errors.As(err, &refused) {
			l.complain(err)
			if l.ticker != nil {
				l.ticker.Reset(l.d.cfg.Tick) // also of a lease whose job is over: it waits for nothing but the store
			}
			return
		}
		if err != nil {
			l.d.log.Debug("event does not fit", slog.String("lease", l.id.Short()), slog.Any("err", err))
		}
		l.late = l.late[1:]
	}
}

// complain logs the first of a row of failures.
func (l *lease) complain(err error) {
	if !l.sick.Swap(true) {
		l.fell, l.gaveUp = l.d.cfg.Clock().Mono, false
		l.d.log.Error("lease cannot go on", slog.String("lease", l.id.Short()), slog.Any("err", err))
	}
}

// giveUp ends a job that has run for longer than may go unsigned since the store last took anything: what cannot be stored is not
// billed, and cannot go on for ever. Its disk is kept.
func (l *lease) giveUp(ctx context.Context) {
	t := l.state.Terms
	if l.gaveUp || l.state.Job != market.JobRunning || l.d.cfg.Clock().Mono-l.fell <= t.Limits.UnsignedMs {
		return
	}
	l.gaveUp = true
	l.d.log.Error("job is ended: its lease cannot be stored", slog.String("lease", l.id.Short()))
	l.late = append(l.late, market.Stop{Reason: market.ReasonFault, Keep: true}) // stored as soon as it can be
	l.order(ctx, task{kind: taskEnd, grace: time.Duration(t.NoticeMs) * time.Millisecond})
}

// sleep stores the meter at the end of the program.
func (l *lease) sleep(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopSaving)
	defer cancel()
	l.worker.interrupt()
	if l.state.Job != market.JobPaused && (l.state.Job != market.JobRunning || !l.watched()) {
		return
	}
	next, _, err := market.Step(l.state, l.d.cfg.Clock(), market.Contact{Away: true}) // bills up to now and asks for nothing
	if err == nil {
		err = l.save(ctx, next, filing{})
	}
	if err != nil {
		l.complain(err)
		return
	}
	l.state = next
	l.publish()
}

// farewell is the error that a conversation ends with when its lease is gone.
func (l *lease) farewell() error {
	if state := l.snapshot(); state.Reason == market.ReasonHoldExpired {
		return market.NewError(market.CodeHoldExpired)
	}
	return errClosed
}
