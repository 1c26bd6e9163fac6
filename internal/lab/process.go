package lab

import (
	"context"
	"fmt"
	"os"
	"time"
)

// awaitExit waits until a process is gone.
func awaitExit(ctx context.Context, name string, pid int, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(pollEvery / 2)
	defer tick.Stop()
	for alive(pid) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s, process %d, does not end: %w", name, pid, ctx.Err())
		}
	}
	return nil
}

// endAll ends the processes of the lab that were started with these words and did not end when they were asked: those that
// hang, or whose API never came up. Their own home is among the words, so nobody else's process can fit.
func endAll(ctx context.Context, name string, words ...string) error {
	for _, sig := range signals() {
		for _, pid := range processes(words...) {
			p, err := os.FindProcess(pid)
			if err != nil || p.Signal(sig) != nil {
				continue // it has gone by itself
			}
			if err := awaitExit(ctx, name, pid, 10*time.Second); err != nil && sig == os.Kill {
				return err
			}
		}
	}
	return nil
}
