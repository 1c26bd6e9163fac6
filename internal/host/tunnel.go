package host

import (
	"context"
	"errors"
	"fmt"
	"io"

	"haggle/market"
	"haggle/runtime"
)

// ServeTunnel sends a renter the log of its job: the bytes of the log file in chunks, then an end. With follow it waits
// for the job to be made, and for more until it has ended. The error is the market's, or nil after a clean end.
func (d *Daemon) ServeTunnel(ctx context.Context, s Stream) error {
	if err := d.await(ctx); err != nil {
		return err
	}
	m, err := receiveSoon(ctx, s)
	if err != nil {
		return clean(err)
	}
	ask, ok := m.(market.TunnelRequest)
	switch {
	case !ok:
		return market.Unexpected(m)
	case ask.Kind != "log":
		return market.NewError(market.CodeUnsupported, "what", "a tunnel of kind "+ask.Kind, "instead", "ask for the log")
	case ask.Offset < 0:
		return market.NewError(market.CodeBadRequest, "why", "an offset is not negative")
	}
	record, err := d.cfg.Store.Record(ctx, ask.Lease)
	if err != nil {
		return err
	}
	if record.Lease.Terms.Renter != s.Peer() {
		return market.NewError(market.CodeNotYours)
	}
	ctx, cancel := context.WithCancel(ctx)
	gone := make(chan struct{})
	go func() { // a renter says nothing more on a tunnel: whatever comes ends it
		defer close(gone)
		_, _ = s.Receive(ctx)
		cancel()
	}()
	err = d.copyLog(ctx, s, ask)
	cancel()
	<-gone
	return clean(err)
}

func (d *Daemon) copyLog(ctx context.Context, s Stream, ask market.TunnelRequest) error {
	log, err := d.openLog(ctx, ask)
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
func (d *Daemon) openLog(ctx context.Context, ask market.TunnelRequest) (io.ReadCloser, error) {
	for {
		early := false
		var turned <-chan struct{}
		if l := d.lease(ask.Lease); l != nil {
			seen := l.seen.Load()
			turned = seen.turned
			early = seen.lease.Job == market.JobGranted || seen.lease.Job == market.JobPreparing
		}
		log, err := d.cfg.Runtime.Log(ctx, jobID(ask.Lease), ask.Offset, ask.Follow)
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
		case <-turned:
		case <-d.stopped:
			return nil, errClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
