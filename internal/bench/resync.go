package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	kills        = 6 // of the rig's program and the agent's, in turns
	killPatience = time.Minute
	resyncBound  = 10 * time.Second
)

// resyncFigures tell how long a rig and an agent take to agree again after one of the two was killed: from the start of the new
// process until both hold the same chain of receipts, with one that was signed after the kill, and say that they are connected and
// that the job runs. They share a run. Milliseconds.
func resyncFigures() []figure {
	var once sync.Once
	var all []float64
	var err error
	of := func(value func([]float64) float64) func(context.Context) (float64, float64, error) {
		return func(ctx context.Context) (float64, float64, error) {
			once.Do(func() { all, err = resyncs(ctx) })
			if err != nil {
				return 0, 0, err
			}
			return value(all), float64(resyncBound.Milliseconds()), nil
		}
	}
	return []figure{
		{name: "resync", unit: fmt.Sprintf("ms, the worst of %d kills", kills), peer: theBound, aim: 1, measure: of(slices.Max[[]float64])},
		{name: "resync-median", unit: "ms", peer: theBound, atLeast: true, measure: of(median)},
	}
}

// resyncs kills the two in turns, each time at another moment between two receipts.
func resyncs(ctx context.Context) ([]float64, error) {
	l, err := startPaid(ctx)
	if err != nil {
		return nil, err
	}
	defer l.stop()
	var all []float64
	for n := range kills {
		whom := l.daemons[n%len(l.daemons)]
		before, err := l.agreed(ctx, nil)
		if err != nil {
			return nil, err
		}
		pause(ctx, receiptEvery*time.Duration(n)/kills)
		pid, err := whom.pid(ctx)
		if err != nil {
			return nil, fmt.Errorf("the number of the %s's process: %w", whom.name, err)
		}
		if err := killed(pid); err != nil {
			return nil, fmt.Errorf("kill the %s: %w", whom.name, err)
		}
		begun := time.Now()
		if err := whom.start(ctx); err != nil {
			return nil, err
		}
		if _, err := l.agreed(ctx, before); err != nil {
			return nil, fmt.Errorf("after the %s was killed: %w", whom.name, err)
		}
		all = append(all, float64(time.Since(begun).Microseconds())/1000)
	}
	return all, nil
}

// killed ends a process as a crash would, and returns when it is gone.
func killed(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		return err
	}
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(killPatience.Milliseconds()))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case n == 0:
			return fmt.Errorf("process %d does not end", pid)
		default:
			return nil
		}
	}
}
