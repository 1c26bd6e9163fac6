package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"haggle/market"
)

// Bounds of an archive that comes in.
const (
	chunkPatience = time.Minute         // for each chunk
	smallChunk    = market.MaxChunk / 4 // chunks below it are rare in a fair archive, and limited
	roomEvery     = int64(256 << 20)    // bytes between looks at the disk's room
)

// intake lets one stream at a time bring a lease's archive: the newest, as the one before it may be dead.
type intake struct {
	mu     sync.Mutex
	cancel context.CancelFunc
	left   chan struct{} // closed once the present stream has stopped writing; nil where there is none
}

// enter ends the stream before and waits until it has left. The context ends with the next stream, or with cut.
func (i *intake) enter(ctx context.Context) (on context.Context, leave func(), err error) {
	i.mu.Lock()
	for i.left != nil {
		i.cancel()
		left := i.left
		i.mu.Unlock()
		select {
		case <-left:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
		i.mu.Lock()
	}
	defer i.mu.Unlock()
	on, i.cancel = context.WithCancel(ctx)
	left := make(chan struct{})
	i.left = left
	return on, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.cancel()
		i.left = nil
		close(left)
	}, nil
}

// cut ends the present stream.
func (i *intake) cut() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.left != nil {
		i.cancel()
	}
}

// serveImage takes the archive of a job's image from where an earlier stream left it, has the job made from it, and says so with
// an end of its own.
func (d *Daemon) serveImage(ctx context.Context, s Stream, _ market.TunnelRequest, l *lease) error {
	if l == nil || l.wants.Archive == 0 {
		return market.NewError(market.CodeBadRequest, "why", "the job of this lease has no archive to come")
	}
	ctx, leave, err := l.paths.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if err := d.awaitPreparing(ctx, l); err != nil {
		return err
	}
	if err := d.takeArchive(ctx, s, l); err != nil {
		return err
	}
	if err := l.call(l.arrived); err != nil {
		return err
	}
	ctx, done := hearEnd(ctx, s)
	defer done()
	if err := d.awaitReady(ctx, l); err != nil {
		return err
	}
	return s.Send(ctx, market.EndMessage{})
}

// takeArchive returns once all of the archive is on the disk.
func (d *Daemon) takeArchive(ctx context.Context, s Stream, l *lease) error {
	own := ctx
	ctx, leave, err := l.intake.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	size := l.wants.Archive
	if l.snapshot().Ready || d.engine.has(l.wants.Image, l.snapshot().Terms.Renter) {
		if err := s.Send(ctx, market.OpenMessage{Offset: size}); err != nil {
			return err
		}
		return receiveEnd(ctx, s)
	}
	file, at, err := d.spool.open(l.id, size)
	if err != nil {
		return noSpace(err)
	}
	defer func() {
		if !archiveDue(l.snapshot(), l.wants) {
			_ = d.spool.remove(l.id) // the lease has emptied the spool just before the file was made; the next start sweeps
		}
	}()
	err = d.receive(ctx, s, l, &arriving{file: file, at: at, size: size})
	if err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err != nil && ctx.Err() != nil && own.Err() == nil {
		return errClosed // another stream goes on, or the lease is over
	}
	return noSpace(err)
}

// arriving is an archive that is on its way.
type arriving struct {
	file   io.WriterAt
	at     int64 // bytes that are there
	size   int64 // bytes in all
	looked int64 // bytes at the last look at the disk's room
}

func (d *Daemon) receive(ctx context.Context, s Stream, l *lease, a *arriving) error {
	if err := s.Send(ctx, market.OpenMessage{Offset: a.at}); err != nil {
		return err
	}
	a.looked = a.at - roomEvery
	for limit := newLimiter(); ; {
		if a.at-a.looked >= roomEvery {
			if err := d.makeRoom(ctx, broughtCopies*a.size-a.at); err != nil {
				return err
			}
			a.looked = a.at
		}
		m, err := receiveWithin(ctx, s, chunkPatience)
		if err != nil {
			return err
		}
		if l.snapshot().Job != market.JobPreparing {
			return notPreparing(l.snapshot())
		}
		switch m := m.(type) {
		case market.ChunkMessage:
			if err := a.take(m.Data, limit); err != nil {
				return err
			}
			l.sent.Add(int64(len(m.Data)))
		case market.EndMessage:
			if a.at < a.size {
				return market.NewError(market.CodeBadRequest, "why", fmt.Sprintf("the archive ends %d bytes too early", a.size-a.at))
			}
			return nil
		default:
			return market.Unexpected(m)
		}
	}
}

// take writes a chunk to where it belongs.
func (a *arriving) take(data []byte, small *rate.Limiter) error {
	switch {
	case len(data) == 0 || len(data) > market.MaxChunk:
		return market.NewError(market.CodeBadRequest, "why", "a chunk is empty or too long")
	case int64(len(data)) > a.size-a.at:
		return market.NewError(market.CodeTooLarge, "limit", fmt.Sprint(a.size))
	case len(data) < smallChunk && !small.Allow():
		return market.NewError(market.CodeTooMany)
	}
	if _, err := a.file.WriteAt(data, a.at); err != nil {
		return fmt.Errorf("keep archive: %w", err)
	}
	a.at += int64(len(data))
	return nil
}

func receiveWithin(ctx context.Context, s Stream, limit time.Duration) (market.Message, error) {
	soon, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	m, err := s.Receive(soon)
	if err != nil && ctx.Err() == nil && soon.Err() != nil {
		return nil, market.NewError(market.CodeTooSlow, "limit", limit.String())
	}
	return m, err
}

// receiveEnd waits for the end of an archive of which nothing is wanted.
func receiveEnd(ctx context.Context, s Stream) error {
	m, err := receiveWithin(ctx, s, chunkPatience)
	if err != nil {
		return err
	}
	if _, ok := m.(market.EndMessage); !ok {
		return market.Unexpected(m)
	}
	return nil
}

// awaitPreparing waits a while until both have signed.
func (d *Daemon) awaitPreparing(ctx context.Context, l *lease) error {
	patience := time.NewTimer(doorPatience)
	defer patience.Stop()
	for {
		seen := l.seen.Load()
		limit := patience.C
		switch seen.lease.Job {
		case market.JobPreparing:
			if seen.lease.Funded() {
				return nil
			}
			limit = nil // the lease itself does not wait for its money for ever
		case market.JobGranted:
		default:
			return notPreparing(seen.lease)
		}
		select {
		case <-seen.turned:
		case <-limit:
			return notPreparing(seen.lease)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// awaitReady waits until the job is made, or has failed to be.
func (d *Daemon) awaitReady(ctx context.Context, l *lease) error {
	for {
		seen := l.seen.Load()
		switch s := seen.lease; {
		case s.Job == market.JobPreparing && !s.Ready:
		case s.Job == market.JobEnded || s.Job == market.JobStopping:
			return notPreparing(s)
		default:
			return nil
		}
		select {
		case <-seen.turned:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// notPreparing is the error for an archive that nobody waits for.
func notPreparing(s market.Lease) error {
	switch {
	case s.Code != "":
		return market.NewError(s.Code)
	case s.Job == market.JobEnded:
		return market.NewError(market.CodeLeaseEnded, "reason", string(s.Reason))
	}
	return market.NewError(market.CodeBadState, "state", string(s.Job), "event", "an image")
}
