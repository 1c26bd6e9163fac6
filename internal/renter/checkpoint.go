package renter

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"haggle/internal/checkpoint"
	"haggle/internal/filesync"
	"haggle/internal/tunnel"
	"haggle/internal/view"
	"haggle/market"
)

// Bounds and places of checkpoints.
const (
	keptCheckpoints  = 3
	maxCkptHeader    = 64 << 10
	ckptRetry        = 30 * time.Second
	lastWordTries    = 3
	foreignDir       = workDir + "/.haggle-checkpoints" // in another lease's job
	checkpointSuffix = ".age"
)

// Checkpoints lists a lease's checkpoints, oldest first.
func (a *Agent) Checkpoints(ctx context.Context, id string) ([]view.CheckpointInfo, error) {
	r, err := a.find(ctx, id)
	if err != nil {
		return nil, err
	}
	r, _ = a.latest(r)
	return checkpointViews(r.Inside), nil
}

// CheckpointNow takes a checkpoint of a lease's job. The newest one is returned where nothing was written since. The error has code
// CodeCheckpointNone where the job has left nothing in its folder.
func (a *Agent) CheckpointNow(ctx context.Context, id string) (view.CheckpointInfo, error) {
	r, err := a.find(ctx, id)
	if err != nil {
		return view.CheckpointInfo{}, err
	}
	l := a.opened(r.Bid)
	if l == nil {
		l = newLease(r) // it is over, and its disk may still be there
	}
	k, err := a.take(ctx, l)
	return k.view(), err
}

func checkpointViews(in Inside) []view.CheckpointInfo {
	var list []view.CheckpointInfo
	for _, k := range in.Checkpoints {
		list = append(list, k.view())
	}
	return list
}

func (k Kept) view() view.CheckpointInfo {
	return view.CheckpointInfo{Seq: k.Seq, AtMs: k.AtMs, Bytes: k.Bytes, Where: strings.Join(k.Where, ",")}
}

// plan returns how a lease's checkpoints are kept, also where nobody ordered any.
func (in Inside) plan() Checkpoint {
	if in.Checkpoint != nil {
		return *in.Checkpoint
	}
	return Checkpoint{Dir: defaultCkptDir, EveryMs: defaultEveryMs, To: []string{toRenter}}
}

// keeps reports whether this agent has to see a checkpoint for a plan: a job pushes to URLs by itself.
func (c Checkpoint) keeps() bool {
	return slices.ContainsFunc(c.To, func(to string) bool { return !isURL(to) })
}

// take takes a checkpoint and brings it to where the plan wants it.
func (a *Agent) take(ctx context.Context, l *lease) (Kept, error) {
	l.taking.Lock()
	defer l.taking.Unlock()
	r, _ := l.get()
	plan := r.Inside.plan()
	if !plan.keeps() {
		return a.pushNow(ctx, l, r, plan)
	}
	key, err := a.identity()
	if err != nil {
		return Kept{}, err
	}
	newest := r.Inside.newest()
	v, err := a.channel(ctx, r, tunnel.KindCheckpoint, tunnel.CheckpointArgs{
		Dir: plan.Dir, Recipients: []string{key.Recipient().String()}, Known: newest.Digest,
	}, filesWindow)
	if err != nil {
		return Kept{}, err
	}
	defer func() { _ = v.Close() }() // all that was asked for has come
	in := bufio.NewReaderSize(v, maxCkptHeader)
	header, err := readHeader(in)
	switch {
	case err != nil:
		return Kept{}, v.fault(ctx, err)
	case !header.Follows && newest.Seq > 0 && header.Digest == newest.Digest:
		return newest, nil
	case !header.Follows:
		return Kept{}, market.NewError(market.CodeCheckpointNone, "lease", r.Lease.Short())
	}
	k := Kept{Seq: newest.Seq + 1, AtMs: a.cfg.Clock().UnixMilli(), Digest: header.Digest}
	file := a.checkpointFile(r.Lease, k.Seq)
	k.Bytes, err = store(file, in, maxCollected(r))
	if err != nil {
		return Kept{}, v.fault(ctx, err)
	}
	return a.spread(ctx, l, plan, k, file)
}

// readHeader reads what a door says before a checkpoint.
func readHeader(in *bufio.Reader) (checkpoint.Header, error) {
	var h checkpoint.Header
	line, err := in.ReadSlice('\n')
	if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
		return h, err
	}
	if err = errors.Join(err, json.Unmarshal(line, &h)); err != nil || h.Digest == "" || len(h.Digest) > 2*len(market.Hash{}) {
		return h, errors.Join(market.NewError(market.CodeUnexpected, "got", "no header of a checkpoint"), err)
	}
	return h, nil
}

// store writes what comes to a file that has its name only once it is whole.
func store(file string, r io.Reader, most int64) (size int64, err error) {
	err = writeWhole(file, func(f *os.File) error {
		size, err = io.Copy(f, io.LimitReader(r, most+1))
		if err == nil && size > most {
			err = &filesync.Error{Code: filesync.CodeTooLarge, Message: "the checkpoint is larger than the job's disk"}
		}
		return err
	})
	return size, err
}

// spread brings a checkpoint to the places of the plan, notes it, and drops the oldest.
func (a *Agent) spread(ctx context.Context, l *lease, plan Checkpoint, k Kept, file string) (Kept, error) {
	r, _ := l.get()
	var failed error
	for _, to := range plan.To {
		switch {
		case to == toRenter:
			k.Where = append(k.Where, to)
		case strings.HasPrefix(to, toLease):
			if err := a.sendTo(ctx, r, to, file); err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			k.Where = append(k.Where, to)
		}
	}
	if len(k.Where) == 0 {
		return Kept{}, errors.Join(failed, os.Remove(file))
	}
	if failed != nil {
		a.cfg.Log.Warn("a checkpoint did not get everywhere", "lease", r.Lease.Short(), "seq", k.Seq, "err", failed)
	}
	var dropped []Kept
	_, err := a.amend(ctx, r, func(in *Inside) error {
		in.Checkpoints = append(in.Checkpoints, k)
		if n := len(in.Checkpoints) - keptCheckpoints; n > 0 {
			dropped, in.Checkpoints = in.Checkpoints[:n], slices.Clone(in.Checkpoints[n:])
		}
		return nil
	})
	if err != nil {
		return Kept{}, err
	}
	if !slices.Contains(plan.To, toRenter) {
		dropped = append(dropped, k)
	}
	for _, old := range dropped {
		if err := os.Remove(a.checkpointFile(r.Lease, old.Seq)); err != nil && !errors.Is(err, os.ErrNotExist) {
			a.cfg.Log.Warn("an old checkpoint stays", "err", err)
		}
	}
	return k, nil
}

// sendTo puts a checkpoint onto the disk of another lease's job. It is encrypted to this agent alone.
func (a *Agent) sendTo(ctx context.Context, r Record, to, file string) error {
	other, err := a.find(ctx, strings.TrimPrefix(to, toLease))
	if err != nil {
		return err
	}
	if other.Lease == r.Lease {
		return badRequest("a lease's checkpoints cannot be kept on its own disk")
	}
	_, err = a.push(ctx, other, filesync.PushConfig{From: file, To: far(foreignDir) + "/" + r.Lease.String() + "/"})
	return err
}

// checkpointFile is where a checkpoint is kept on this machine.
func (a *Agent) checkpointFile(id market.LeaseID, seq int64) string {
	return filepath.Join(a.cfg.CheckpointDir, id.String(), checkpointName(seq))
}

func checkpointName(seq int64) string { return fmt.Sprintf("%06d%s", seq, checkpointSuffix) }

// newestOf returns the newest checkpoint of a lease that can be had, and its size. One that only another lease's disk has is
// brought to this machine.
func (a *Agent) newestOf(ctx context.Context, r Record) (Kept, int64, error) {
	for _, k := range slices.Backward(r.Inside.Checkpoints) {
		file := a.checkpointFile(r.Lease, k.Seq)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return k, info.Size(), nil
		}
		for _, to := range k.Where {
			if !strings.HasPrefix(to, toLease) {
				continue
			}
			err := a.fetchFrom(ctx, r, k, to)
			info, statErr := os.Stat(file)
			if err = errors.Join(err, statErr); err == nil {
				return k, info.Size(), nil
			}
			a.cfg.Log.Warn("a checkpoint cannot be had", "lease", r.Lease.Short(), "seq", k.Seq, "from", to, "err", err)
		}
	}
	return Kept{}, 0, market.NewError(market.CodeCheckpointNone, "lease", r.Lease.Short())
}

// fetchFrom brings a checkpoint from another lease's disk to this machine.
func (a *Agent) fetchFrom(ctx context.Context, r Record, k Kept, to string) error {
	other, err := a.find(ctx, strings.TrimPrefix(to, toLease))
	if err != nil {
		return err
	}
	file := a.checkpointFile(r.Lease, k.Seq)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("fetch a checkpoint: %w", err)
	}
	_, err = a.pull(ctx, other, filesync.PullConfig{
		From: far(path.Join(foreignDir, r.Lease.String(), checkpointName(k.Seq))), To: file, MaxBytes: k.Bytes,
	})
	return err
}

// restore puts the checkpoint that a lease begins from into its job.
func (a *Agent) restore(ctx context.Context, l *lease, r Record) error {
	from := r.Inside.Resumed
	key, err := a.identity()
	if err != nil {
		return err
	}
	f, err := os.Open(a.checkpointFile(from.Lease, from.Seq))
	if errors.Is(err, os.ErrNotExist) {
		return market.NewError(market.CodeCheckpointNone, "lease", from.Lease.Short())
	}
	if err != nil {
		return localFault("the checkpoint", err)
	}
	defer f.Close()
	dir, err := os.MkdirTemp(a.cfg.CheckpointDir, ".open-*") // mode 0700
	if err != nil {
		return localFault("the checkpoint", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left of a crash is removed when the agent starts
	if _, err := checkpoint.Restore(ctx, f, key, dir, checkpoint.Limits{}); err != nil {
		return localFault("the checkpoint", err)
	}
	_, err = a.push(ctx, r, filesync.PushConfig{From: contents(dir), To: far(from.Dir) + "/", Progress: a.uploads(l, sendsCheckpoint)})
	return err
}

// sweepOpened removes what a crash left of restored checkpoints: they are not encrypted.
func (a *Agent) sweepOpened() {
	if a.cfg.CheckpointDir == "" {
		return
	}
	left, err := filepath.Glob(filepath.Join(a.cfg.CheckpointDir, ".open-*"))
	for _, dir := range left {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if err != nil {
		a.cfg.Log.Warn("an opened checkpoint stays", "err", err)
	}
}
