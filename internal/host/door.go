package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"haggle/internal/tunnel"
	"haggle/market"
	"haggle/runtime"
)

// How long a renter waits at the door of a job that is between two states, and how often the engine is asked meanwhile.
const (
	doorPatience = 10 * time.Second
	doorLook     = 250 * time.Millisecond
)

// serveDoor joins a renter's stream with the door of its job. From the OpenMessage on the stream is bytes, of which the rig reads
// nothing: it passes them on until either side ends, the lease does, or this program.
func (d *Daemon) serveDoor(ctx context.Context, s Stream, _ market.TunnelRequest, l *lease) error {
	if l == nil {
		return noDoor(market.JobEnded)
	}
	ctx, leave, err := l.paths.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	path, err := d.enterJob(ctx, l)
	if err != nil {
		return err
	}
	if err := s.Send(ctx, market.OpenMessage{}); err != nil {
		_ = path.Close()
		return err
	}
	if err := tunnel.Relay(ctx, s.Raw(), &counting{Conn: path, sent: &l.sent}); err != nil && ctx.Err() == nil {
		d.log.Debug("a path broke", slog.String("lease", l.id.Short()), slog.Any("err", err))
	}
	return nil // the peer could not tell an error from the bytes
}

// counting is a path into a job that counts what goes in.
type counting struct {
	Conn
	sent *atomic.Int64
}

func (c *counting) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.sent.Add(int64(n))
	return n, err
}

// enterJob opens a path to the job's door. It waits a while for a job that is not there yet.
func (d *Daemon) enterJob(ctx context.Context, l *lease) (runtime.Conn, error) {
	patience, look := time.NewTimer(doorPatience), time.NewTicker(doorLook)
	defer patience.Stop()
	defer look.Stop()
	for {
		seen := l.seen.Load()
		state := seen.lease
		if enterable(state) {
			path, err := d.cfg.Runtime.Enter(ctx, diskName(state))
			switch {
			case err == nil:
				return path, nil
			case ctx.Err() != nil:
				return nil, ctx.Err()
			case errors.Is(err, runtime.ErrUnavailable):
				return nil, market.NewError(market.CodeEngineDown)
			case errors.Is(err, runtime.ErrUnsupported):
				return nil, market.NewError(market.CodeUnsupported, "what", "going into a job", "instead", "use another rig, or the job's log")
			case !errors.Is(err, runtime.ErrNotFound) && !errors.Is(err, runtime.ErrConflict):
				return nil, fmt.Errorf("enter job: %w", err)
			}
		}
		if state.Job == market.JobEnded {
			return nil, noDoor(state.Job) // what is not there now does not come any more
		}
		select {
		case <-seen.turned:
		case <-look.C:
		case <-patience.C:
			return nil, noDoor(state.Job)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func noDoor(state market.JobState) error {
	return market.NewError(market.CodeNoDoor, "state", string(state))
}

// enterable reports whether the job is in the engine: made and not removed.
func enterable(l market.Lease) bool {
	switch l.Job {
	case market.JobGranted:
		return false
	case market.JobPreparing:
		return l.Ready && l.Funded()
	case market.JobEnded:
		return !l.Gone
	}
	return true
}
