package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"time"
)

// pairs is how often each side starts a job; they take turns.
const pairs = 15

// rest is how long the machine is left alone before either side starts, as a rig is between two jobs. What it does meanwhile,
// removing the last job and making a container for the next, must be in nobody's time.
const rest = 1500 * time.Millisecond

func atRest(ctx context.Context) error {
	select {
	case <-time.After(rest):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// firstByte compares the time from the start of a command to the job's first byte on its stdout: `haggle run` with an agent
// that is up, through bid, grant, both signatures and the rig's store, beside `ctr run` of the same image on the same
// containerd. Milliseconds, medians.
func firstByte(ctx context.Context) (ours, theirs float64, err error) {
	l, err := startLab(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer l.stop()
	job := []string{"train", "--steps", "1", "--step-time", "0s"}
	run := append([]string{"run", "gpu_name=RTX_4090", "--image", "lab", "--for", "10m", "--budget", "1.00", "--disk", "1GB", "--"}, job...)
	for err := l.command(ctx, haggle, run...).Run(); err != nil; err = l.command(ctx, haggle, run...).Run() {
		if rerr := atRest(ctx); rerr != nil { // the rig has just begun to offer
			return 0, 0, errors.Join(err, rerr)
		}
	}
	var mine, peers []float64
	for n := range pairs + 1 {
		if err := atRest(ctx); err != nil {
			return 0, 0, err
		}
		took, err := toFirstByte(l.command(ctx, haggle, run...))
		if err != nil {
			return 0, 0, fmt.Errorf("haggle run: %w", err)
		}
		if err := atRest(ctx); err != nil {
			return 0, 0, err
		}
		ctr := append([]string{"--address", l.rig.Containerd.Socket, "--namespace", "haggle", "run", "--rm", "lab", "bench-" + strconv.Itoa(n), "/bin/haggle"}, job...)
		peer, err := toFirstByte(exec.CommandContext(ctx, "ctr", ctr...))
		if err != nil {
			return 0, 0, fmt.Errorf("ctr run: %w", err)
		}
		if n > 0 { // the first pair warms both
			mine, peers = append(mine, took), append(peers, peer)
		}
	}
	return median(mine), median(peers), nil
}

// toFirstByte starts a command, waits for its first byte of output and then for its end, however that is: the rig's engine
// may take away ctr's container, which it does not know, before ctr does. Milliseconds.
func toFirstByte(c *exec.Cmd) (float64, error) {
	out, err := c.StdoutPipe()
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := c.Start(); err != nil {
		return 0, err
	}
	_, readErr := io.ReadFull(out, make([]byte, 1))
	took := float64(time.Since(begun).Microseconds()) / 1000
	_, _ = io.Copy(io.Discard, out)
	if err := c.Wait(); readErr != nil {
		return 0, errors.Join(readErr, err)
	}
	return took, nil
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
