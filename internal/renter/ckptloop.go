package renter

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"haggle/market"
)

// takeCheckpoints takes a lease's checkpoints: in turn while its job runs, at once when it is told to end, and a last time when it
// has ended. It returns when the job has ended, or ctx.
func (a *Agent) takeCheckpoints(ctx context.Context, l *lease) {
	r, _ := l.get()
	if r.Inside.Checkpoint == nil {
		return
	}
	t := taker{a: a, l: l, plan: *r.Inside.Checkpoint}
	for ctx.Err() == nil {
		change := l.watch()
		r, connected := l.get()
		if r.State.void() || r.State.Job == market.JobEnded {
			t.lastWord(ctx, r)
			return
		}
		wait := t.step(ctx, r, connected)
		if wait == 0 {
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-change:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// taker knows which checkpoints of a job are due.
type taker struct {
	a      *Agent
	l      *lease
	plan   Checkpoint
	next   time.Time // of the next one in turn; zero while the job does not run
	told   uint32    // the attempt whose door knows where to push, counted from 1
	warned uint32    // the attempt whose end was answered with a checkpoint
	rested uint32    // the attempt of which the last word was taken, because it was paused
	tries  int
}

// step does what is due and returns how long nothing is. 0 asks to look again.
func (t *taker) step(ctx context.Context, r Record, connected bool) time.Duration {
	const idle = time.Hour
	attempt := r.State.Attempt + 1
	now := t.a.cfg.Clock()
	switch job := r.State.Job; {
	case job == market.JobPaused && t.rested != attempt && r.State.BilledMs > 0:
		t.rested = attempt
		t.lastWord(ctx, r)
		return 0
	case !connected:
		return idle
	case job == market.JobStopping && t.warned != attempt:
		_, err := t.a.take(ctx, t.l)
		if t.plan.keeps() && slices.ContainsFunc(t.plan.To, isURL) {
			_, pushErr := t.a.askPush(ctx, r, t.plan, pushArgs{Now: true})
			err = errors.Join(err, pushErr)
		}
		if err != nil && t.tries < lastWordTries {
			t.tries++
			return time.Second
		}
		t.warned, t.tries = attempt, 0
		return 0
	case job != market.JobRunning:
		t.next = time.Time{}
		return idle
	case t.told != attempt && t.a.orderPush(ctx, r, t.plan) != nil:
		return ckptRetry
	}
	t.told = attempt
	every := time.Duration(t.plan.EveryMs) * time.Millisecond
	switch {
	case !t.plan.keeps():
		return idle
	case t.next.IsZero():
		t.next = now.Add(every)
	case !now.Before(t.next):
		t.next = now.Add(every)
		if _, err := t.a.take(ctx, t.l); err != nil && market.CodeOf(err) != market.CodeCheckpointNone {
			t.a.cfg.Log.Info("no checkpoint", "lease", r.Lease.Short(), "err", err)
			t.next = now.Add(min(every, ckptRetry))
		}
	}
	return max(time.Millisecond, t.next.Sub(t.a.cfg.Clock()))
}

// lastWord takes what a job that has ended left. Its disk is kept for a while, so this can wait for the rig a little.
func (t *taker) lastWord(ctx context.Context, r Record) {
	if r.State.BilledMs == 0 && r.Head.BilledMs == 0 {
		return // it never ran
	}
	var wait pause
	for range lastWordTries {
		_, err := t.a.take(ctx, t.l)
		if err == nil || market.CodeOf(err) == market.CodeCheckpointNone || !t.plan.keeps() {
			return
		}
		t.a.cfg.Log.Info("no last checkpoint", "lease", r.Lease.Short(), "err", err)
		if !rest(ctx, wait.take(lastPause)) {
			return
		}
	}
}

// kindPush orders a door to bring checkpoints to a URL by itself.
const kindPush = "checkpoint-push"

// minPushMs is the least time between two such checkpoints.
const minPushMs = int64(10_000)

// pushArgs are its arguments, and pushStatus its answer. See package door.
type (
	pushArgs struct {
		Dir        string   `json:"dir,omitempty"`
		Recipients []string `json:"recipients,omitempty"`
		URL        string   `json:"url,omitempty"`
		EveryMs    int64    `json:"every_ms,omitempty"`
		Seq        int64    `json:"seq,omitempty"`
		Now        bool     `json:"now,omitempty"`
	}
	pushStatus struct {
		Seq    int64  `json:"seq"`
		AtMs   int64  `json:"at_ms"`
		Bytes  int64  `json:"bytes"`
		Digest string `json:"digest"`
		Error  string `json:"error"`
	}
)

// toURL is how a checkpoint in an object store is called: its address is a key to it.
const toURL = "url"

// orderPush tells a job's door which URL its checkpoints go to, where the plan names one.
func (a *Agent) orderPush(ctx context.Context, r Record, plan Checkpoint) error {
	for _, to := range plan.To {
		if !isURL(to) {
			continue
		}
		seq := r.Inside.newest().Seq + 1
		_, err := a.askPush(ctx, r, plan, pushArgs{URL: to, EveryMs: max(plan.EveryMs, minPushMs), Seq: seq})
		return err // a door has one order
	}
	return nil
}

// pushNow has the door push a checkpoint at once.
func (a *Agent) pushNow(ctx context.Context, l *lease, r Record, plan Checkpoint) (Kept, error) {
	status, err := a.askPush(ctx, r, plan, pushArgs{Now: true})
	switch {
	case err != nil:
		return Kept{}, err
	case status.Error != "":
		return Kept{}, market.NewError(market.CodeCopyFailed, "why", clipText(status.Error))
	case status.AtMs == 0:
		return Kept{}, market.NewError(market.CodeCheckpointNone, "lease", r.Lease.Short())
	}
	k := Kept{Seq: status.Seq, AtMs: status.AtMs, Bytes: status.Bytes, Digest: status.Digest[:min(len(status.Digest), 64)], Where: []string{toURL}}
	if k.Seq <= r.Inside.newest().Seq {
		return k, nil
	}
	_, err = a.amend(ctx, r, func(in *Inside) error {
		in.Checkpoints = append(in.Checkpoints, k)
		if n := len(in.Checkpoints) - keptCheckpoints; n > 0 {
			in.Checkpoints = in.Checkpoints[n:]
		}
		return nil
	})
	return k, err
}

// askPush sends an order to the door and reads its answer.
func (a *Agent) askPush(ctx context.Context, r Record, plan Checkpoint, args pushArgs) (pushStatus, error) {
	key, err := a.identity()
	if err != nil {
		return pushStatus{}, err
	}
	args.Dir, args.Recipients = plan.Dir, []string{key.Recipient().String()}
	v, err := a.channel(ctx, r, kindPush, args, 0)
	if err != nil {
		return pushStatus{}, err
	}
	defer func() { _ = v.Close() }() // the answer has come
	text, err := io.ReadAll(io.LimitReader(v, maxCkptHeader))
	if err != nil {
		return pushStatus{}, v.fault(ctx, err)
	}
	var status pushStatus
	line, _, _ := strings.Cut(string(text), "\n")
	if err := json.Unmarshal([]byte(line), &status); err != nil {
		return pushStatus{}, market.NewError(market.CodeUnexpected, "got", "no status of a checkpoint")
	}
	return status, nil
}
