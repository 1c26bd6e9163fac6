package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"haggle/internal/api"
	"haggle/internal/view"
	"haggle/runtime"
)

// logCopy is how far a log has been copied.
type logCopy struct {
	offset int64        // where to go on: the end of the last whole record
	bytes  atomic.Int64 // of output so far; another goroutine may look whether it grows
}

// Write counts output on its way.
func (l *logCopy) Write(p []byte) (int, error) {
	l.bytes.Add(int64(len(p)))
	return len(p), nil
}

// copyLog copies a job's output to ours. With follow it goes on until the log ends, over the loss of an agent too: it starts
// the agent again and goes on where it was, without a gap or a repetition.
func (p *program) copyLog(ctx context.Context, id string, l *logCopy, follow bool) error {
	out, talk := io.MultiWriter(forJob(p.Out), l), io.MultiWriter(forJob(p.Err), l)
	for again := newPatience(); ; {
		before := l.offset
		log, err := ask(ctx, p, func(c *api.AgentClient) (io.ReadCloser, error) { return c.Log(ctx, id, l.offset, follow) })
		if err == nil {
			var n int64
			n, _, err = runtime.Demux(log, out, talk)
			l.offset += n
			_ = log.Close() // its end was seen, or its error
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, api.ErrLost):
			if follow {
				p.Say("the log ends within a record")
			}
			return nil // without --follow the last record may not be whole yet
		case follow && away(err) && ctx.Err() == nil:
			if l.offset > before {
				again = newPatience()
			}
			if err := again.wait(ctx, err); err != nil {
				return err
			}
		default:
			return fmt.Errorf("copy the log: %w", err)
		}
	}
}

// away tells whether an error is the loss of the agent, which a new one makes good.
func away(err error) bool { return errors.Is(err, api.ErrLost) || errors.Is(err, api.ErrNotRunning) }

// patience bounds how often the agent is looked for again.
type patience struct {
	left int
	next time.Duration
}

func newPatience() *patience { return &patience{left: 8, next: 50 * time.Millisecond} }

// wait returns after a pause that doubles, or the cause when there were enough of them.
func (w *patience) wait(ctx context.Context, cause error) error {
	if w.left == 0 {
		return cause
	}
	timer := time.NewTimer(w.next)
	defer timer.Stop()
	w.left, w.next = w.left-1, 2*w.next
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// watch sends the lease's states until ctx ends, over the loss of an agent too. The error is the one that ends it before.
func (p *program) watch(ctx context.Context, id string, to chan<- view.Lease) error {
	for again := newPatience(); ; {
		c, err := p.dial()
		if err != nil {
			return err
		}
		for l := range c.WatchLease(ctx, id) {
			again = newPatience()
			select {
			case to <- l:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		// Why the stream broke off is learnt by asking once more, which starts the agent again where it is gone.
		l, err := ask(ctx, p, func(c *api.AgentClient) (view.Lease, error) { return c.Lease(ctx, id) })
		if err != nil && !away(err) {
			return err
		}
		if err == nil {
			select {
			case to <- l:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			err = api.ErrLost
		}
		if err := again.wait(ctx, err); err != nil {
			return err
		}
	}
}
