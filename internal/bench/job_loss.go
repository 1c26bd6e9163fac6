package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"haggle/runtime"
)

const (
	// What a job loses is reported by its upper bound: with 95 % confidence it is not more.
	lossPeer = "the same outside any job"
	lossAim  = 1.005

	// A job has one thread that works, and room for what else its program does.
	lossCPUMillis = 2000
	lossMemory    = 2 << 30
	// lossLead is the time in which both sides must be there for the first turn.
	lossLead = 5 * time.Second
)

func jobCPU(ctx context.Context) (ours, theirs float64, err error) { return jobLoss(ctx, "cpu", 2400) }

func jobMemory(ctx context.Context) (ours, theirs float64, err error) {
	return jobLoss(ctx, "memory", 1600)
}

// jobLoss runs one static program inside a hardened job and outside, which take turns of a few milliseconds on one processor.
// theirs is the median of a round outside; ours is that with the upper bound of the loss on top.
func jobLoss(ctx context.Context, work string, pairs int) (ours, theirs float64, err error) {
	r, err := startBareRig(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	args := []string{work, "0", strconv.FormatInt(time.Now().Add(lossLead).UnixMilli(), 10), strconv.Itoa(pairs)}
	spec := runtime.Spec{ID: "loss", Image: r.image, Args: args, CPUMillis: lossCPUMillis, MemoryBytes: lossMemory}
	if err := r.engine.Create(ctx, spec); err != nil {
		return 0, 0, err
	}
	if err := r.engine.Start(ctx, spec.ID); err != nil {
		return 0, 0, err
	}
	args[1] = "1"
	outside, interrupted, err := readRounds(exec.CommandContext(ctx, r.program, args...).Output())
	if err != nil {
		return 0, 0, fmt.Errorf("outside: %w", err)
	}
	inside, _, err := readRounds(r.output(ctx, spec.ID))
	if err != nil {
		return 0, 0, fmt.Errorf("inside: %w", err)
	}
	if len(inside) != pairs || len(outside) != pairs {
		return 0, 0, fmt.Errorf("%d rounds inside and %d outside, in place of %d", len(inside), len(outside), pairs)
	}
	// A job has less of a processor that others want than a process outside has: that is no loss, it was promised no more.
	if interrupted > pairs/10 {
		return 0, 0, fmt.Errorf("the machine is busy: other programs interrupted %d of %d rounds outside", interrupted, pairs)
	}
	theirs = median(slices.Clone(outside))
	return theirs * upperRatio(inside, outside), theirs, nil
}

// readRounds reads how long each round took, in milliseconds, and how many were interrupted.
func readRounds(out []byte, err error) (all []float64, interrupted int, _ error) {
	if err != nil {
		return nil, 0, err
	}
	for line := range bytes.Lines(out) {
		var took, times int64
		if _, err := fmt.Sscan(string(line), &took, &times); err != nil {
			return nil, 0, fmt.Errorf("%.100q is no round", line)
		}
		all = append(all, float64(took)/1e6)
		interrupted += int(min(times, 1))
	}
	return all, interrupted, nil
}

// upperRatio returns a value that the median of the pairs' ratios does not exceed, with 95 % confidence. It is one of the
// ratios, by rank, and asks nothing of how they are spread: of n values, fewer than n/2 + 0.82 √n lie below the true median,
// 19 times in 20.
func upperRatio(a, b []float64) float64 {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	slices.Sort(ratios)
	n := float64(len(ratios))
	return ratios[min(len(ratios)-1, int(math.Ceil(n/2+0.8225*math.Sqrt(n))))]
}
