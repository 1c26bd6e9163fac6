package renter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"haggle/internal/filesync"
	"haggle/internal/view"
	"haggle/market"
)

// What is being sent, for people.
const (
	sendsImage      = "image"
	sendsFiles      = "files"
	sendsCheckpoint = "checkpoint"
)

const (
	importTime   = 15 * time.Minute // for the rig to take in an image that it has got
	progressTime = 100 * time.Millisecond
)

// errands does what is to be done inside a lease, beside its link, until nothing of it is left or ctx ends.
func (a *Agent) errands(ctx context.Context, l *lease) {
	r, _ := l.get()
	if !r.State.Serves.IsZero() {
		a.bringHome(ctx, l) // the rest is the agent's
		return
	}
	if r.Inside.Failed != nil && r.State.Job != market.JobEnded {
		l.order(market.StopMessage{Kill: true}) // the last life did not get it through
	}
	if r.Terms.Upload > 0 && !r.Inside.Uploaded && r.Inside.Failed == nil {
		a.upload(ctx, l)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.takeCheckpoints(ctx, l)
	}()
	a.bringHome(ctx, l)
	<-done
}

// await waits until a lease is as it should be. It reports false when the job has ended before, or ctx has.
func (a *Agent) await(ctx context.Context, l *lease, reached func(Record) bool) bool {
	for {
		change := l.watch()
		r, _ := l.get()
		switch {
		case r.State.void(), r.State.Job == market.JobEnded:
			return false
		case reached(r):
			return true
		}
		select {
		case <-change:
		case <-ctx.Done():
			return false
		}
	}
}

// upload sends what the job needs before its start, over agents and connections that end, until the job may begin. A failure that
// time does not mend gives the lease up.
func (a *Agent) upload(ctx context.Context, l *lease) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // an upload has no purpose any more once the job is not being prepared
		a.await(ctx, l, func(r Record) bool { return rank(r.State.Job) > rank(market.JobPreparing) || r.Inside.Failed != nil })
		cancel()
	}()
	if !a.await(ctx, l, func(r Record) bool { return r.State.Job == market.JobPreparing && r.funded() }) {
		return
	}
	defer l.change(func() { l.uploading = nil })
	var wait pause
	for {
		err := a.uploadAll(ctx, l)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			r, _ := l.get()
			l.change(func() { l.uploading = nil })
			if _, err = a.amend(ctx, r, func(in *Inside) error { in.Uploaded = true; return nil }); err == nil {
				l.hurry()
				return
			}
		case lasting(err):
			_ = a.fail(ctx, l, err) // the end of the lease says it, too
			return
		}
		a.cfg.Log.Debug("upload interrupted", "bid", l.bid.String(), "err", err)
		if !rest(ctx, wait.take(lastPause)) {
			return
		}
	}
}

// lasting reports whether trying again does not help.
func lasting(err error) bool {
	switch code := market.CodeOf(err); {
	case transient(code), code == market.CodeNoDoor, code == market.CodeTunnelGone, code == market.CodeTooManyTunnels,
		code == market.CodeBadState, code == market.CodeNotRunning, code == market.CodeUnpaid, errors.Is(err, io.EOF):
		return false
	}
	return true
}

func (a *Agent) uploadAll(ctx context.Context, l *lease) error {
	r, _ := l.get()
	if r.Inside.ImageFile != "" && !r.Inside.ImageSent {
		if err := a.sendImage(ctx, l, r); err != nil {
			return err
		}
		if _, err := a.amend(ctx, r, func(in *Inside) error { in.ImageSent = true; return nil }); err != nil {
			return err
		}
	}
	if !a.await(ctx, l, func(r Record) bool { return r.State.Ready }) {
		return context.Canceled // the job has ended, which the link has seen
	}
	if src := r.Inside.Src; src != "" {
		_, err := a.push(ctx, r, filesync.PushConfig{
			From: contents(src), To: "./", Ignore: r.Inside.Ignore, Progress: a.uploads(l, sendsFiles),
		})
		if err != nil {
			return err
		}
	}
	if r.Inside.Resumed != nil {
		return a.restore(ctx, l, r)
	}
	return nil
}

// uploads returns a function that shows a copy's progress with the lease.
func (a *Agent) uploads(l *lease, what string) func(filesync.Progress) {
	return func(p filesync.Progress) { a.uploading(l, progressView(what, p)) }
}

func (a *Agent) uploading(l *lease, p view.Progress) {
	l.change(func() { l.uploading = &p })
	a.changed(l)
}

// sendImage sends the archive of the job's image from where the rig has it, and waits until the rig has taken it in.
func (a *Agent) sendImage(ctx context.Context, l *lease, r Record) error {
	f, err := os.Open(r.Inside.ImageFile)
	if err != nil {
		return localFault(r.Inside.ImageFile, err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return localFault(r.Inside.ImageFile, err)
	case info.Size() != r.Job.Archive:
		return market.NewError(market.CodeFileChanged, "path", clipText(filepath.Base(r.Inside.ImageFile)))
	}
	s, open, err := a.openTunnel(ctx, r, market.TunnelImage, true)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // the rig has said what became of it
	if open.Offset < 0 || open.Offset > r.Job.Archive {
		return market.NewError(market.CodeUnexpected, "got", "an offset outside of the image")
	}
	if err := a.sendChunks(ctx, l, s, f, open.Offset, r.Job.Archive); err != nil {
		return fault(ctx, reasonOf(ctx, s, err), r.Terms.Rig)
	}
	if err := s.Send(ctx, market.EndMessage{}); err != nil {
		return fault(ctx, reasonOf(ctx, s, err), r.Terms.Rig)
	}
	limited, cancel := context.WithTimeout(ctx, importTime)
	defer cancel()
	m, err := s.Receive(limited)
	if err != nil {
		return fault(ctx, err, r.Terms.Rig)
	}
	if _, ok := m.(market.EndMessage); !ok {
		return market.Unexpected(m)
	}
	return nil
}

// sendChunks sends a file from an offset to its known end.
func (a *Agent) sendChunks(ctx context.Context, l *lease, s Stream, f io.ReaderAt, at, size int64) error {
	var said time.Time
	for at < size {
		buf := make([]byte, min(market.MaxChunk, size-at)) // its own for each: a stream may keep it
		if n, err := f.ReadAt(buf, at); n < len(buf) {
			return localFault("the image", fmt.Errorf("read byte %d: %w", at+int64(n), err))
		}
		if err := s.Send(ctx, market.ChunkMessage{Data: buf}); err != nil {
			return err
		}
		at += int64(len(buf))
		if now := a.cfg.Clock(); now.Sub(said) >= progressTime || at == size {
			said = now
			a.uploading(l, view.Progress{What: sendsImage, Files: 1, Bytes: size, BytesDone: at, Sent: at})
		}
	}
	return nil
}
