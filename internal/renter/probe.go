package renter

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"haggle/internal/tunnel"
	"haggle/market"
)

// Times and sizes of probes.
const (
	probeTime   = 15 * time.Second // as long as a connection may stall
	probeWindow = 16 << 10
	closedPause = 5 * time.Minute // where the job has no door, or one that does not know probes
)

// prober asks a running job now and then, through its door, whether it runs, until the lease is over or ctx ends.
func (a *Agent) prober(ctx context.Context, l *lease) {
	for ctx.Err() == nil {
		change := l.watch()
		r, connected := l.get()
		switch {
		case r.over() || a.cfg.Probe <= 0:
			return
		case r.State.Job != market.JobRunning || !connected:
			awaitChange(ctx, change, -1)
			continue
		}
		wait := a.cfg.Probe
		if !a.probe(ctx, l, r) {
			wait = max(wait, closedPause)
		}
		rest(ctx, wait)
	}
}

// probe asks once, and reports whether the job can be asked at all. Silence counts only where the connection to the rig lived all the
// while, and the rig does not say that the job has ended.
func (a *Agent) probe(ctx context.Context, l *lease, r Record) bool {
	sent, _ := a.instant()
	before := l.connection()
	asking, cancel := context.WithTimeout(ctx, probeTime)
	err := a.echo(asking, r)
	silent := errors.Is(asking.Err(), context.DeadlineExceeded)
	cancel()
	if ctx.Err() != nil {
		return true
	}
	now, _ := l.get()
	if err == nil || silent && l.connection() == before && before > 0 && now.State.Job == market.JobRunning && now.State.Attempt == r.State.Attempt {
		a.measure(l, func(r Record) market.Measure { return r.State.Measure.Probe(err == nil, sent) })
	}
	if err != nil {
		a.cfg.Log.Debug("probe without an answer", "lease", r.Lease.Short(), "silent", silent, "err", err)
	}
	return err == nil || silent
}

// echo sends a nonce into a job and waits until it comes back.
func (a *Agent) echo(ctx context.Context, r Record) error {
	c, err := a.channel(ctx, r, tunnel.KindPing, nil, probeWindow)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // nothing is on its way that matters
	nonce, back := make([]byte, tunnel.PingSize), make([]byte, tunnel.PingSize)
	if _, err := io.ReadFull(a.cfg.Random, nonce); err != nil {
		return err
	}
	if _, err := c.Write(nonce); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, back); err != nil {
		return err
	}
	if !bytes.Equal(nonce, back) {
		return market.NewError(market.CodeUnexpected, "got", "an echo of other bytes")
	}
	return nil
}

// connection returns the number of the present connection to the rig, counted from 1; 0 where there is none.
func (l *lease) connection() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.connected {
		return 0
	}
	return l.connections
}
