package host

import (
	"context"
	"errors"
	"fmt"
	"io"

	"haggle/market"
	"haggle/runtime"
)

// serveLog sends the log of the newest attempt: the bytes of the log file in chunks, then an end. With follow it waits for the job
// to be made, and for more until it has ended.
func (d *Daemon) serveLog(ctx context.Context, s Stream, ask market.TunnelRequest, l *lease) error {
	ctx, done := hearEnd(ctx, s)
	defer done()
	log, err := d.openLog(ctx, ask, l)
	if err != nil {
		return err
	}
	if log == nil {
		return s.Send(ctx, market.EndMessage{})
	}
	defer func() { _ = log.Close() }() // nothing was written
	buf := make([]byte, market.MaxChunk)
	for {
		n, err := log.Read(buf)
		if n > 0 {
			if err := s.Send(ctx, market.ChunkMessage{Data: append([]byte(nil), buf[:n]...)}); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return s.Send(ctx, market.EndMessage{})
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("read log: %w", err)
		}
	}
}

// openLog opens the log, waiting for the job to be made where the renter follows. It is nil where there is none yet and
// nobody waits.
func (d *Daemon) openLog(ctx context.Context, ask market.TunnelRequest, l *lease) (io.ReadCloser, error) {
	if l == nil {
		return nil, market.NewError(market.CodeNoLog)
	}
	for {
		seen := l.seen.Load()
		early := seen.lease.Job == market.JobGranted || seen.lease.Job == market.JobPreparing
		job := jobName(seen.lease)
		if !early {
			job = diskName(seen.lease) // an attempt that was never made has no log
		}
		log, err := d.cfg.Runtime.Log(ctx, job, ask.Offset, ask.Follow)
		switch {
		case err == nil:
			return log, nil
		case errors.Is(err, runtime.ErrUnavailable):
			return nil, market.NewError(market.CodeEngineDown)
		case !errors.Is(err, runtime.ErrNotFound):
			return nil, fmt.Errorf("open log: %w", err)
		case !early:
			return nil, market.NewError(market.CodeNoLog)
		case !ask.Follow:
			return nil, nil
		}
		select {
		case <-seen.turned:
		case <-d.stopped:
			return nil, errClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
