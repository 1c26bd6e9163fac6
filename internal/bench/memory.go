package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// settle is the time for start-up garbage to be collected, on both sides alike.
const settle = 20 * time.Second

// idleMemory compares an idle haggled, all its children but containerd and what containerd started included, with a bare
// libp2p host, by proportional set size.
func idleMemory(ctx context.Context) (ours, theirs float64, err error) {
	l, err := startLab(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer l.stop()
	// A program of its own: a file that two processes have mapped would count half.
	program := filepath.Join(l.home, "bare")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "./internal/bench/bare")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, 0, fmt.Errorf("build the bare host: %w: %s", err, out)
	}
	bare := exec.CommandContext(ctx, program)
	in, err := bare.StdinPipe()
	if err != nil {
		return 0, 0, err
	}
	if err := bare.Start(); err != nil {
		return 0, 0, err
	}
	defer func() { _ = in.Close(); _ = bare.Wait() }()
	select {
	case <-time.After(settle):
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	pid, err := l.rigPID(ctx)
	if err != nil {
		return 0, 0, err
	}
	ours, err = treePSS(pid)
	if err != nil {
		return 0, 0, err
	}
	theirs, err = pss(bare.Process.Pid)
	return ours, theirs, err
}

// treePSS sums a process and its descendants, leaving out containerd and what is below it.
func treePSS(pid int) (float64, error) {
	sum, err := pss(pid)
	if err != nil {
		return 0, err
	}
	children, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return 0, err
	}
	for _, file := range children {
		list, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has gone
		}
		for _, word := range strings.Fields(string(list)) {
			child, err := strconv.Atoi(word)
			name, nameErr := os.ReadFile("/proc/" + word + "/comm")
			if err != nil || nameErr != nil || strings.HasPrefix(string(name), "containerd") {
				continue
			}
			more, err := treePSS(child)
			if err != nil {
				return 0, err
			}
			sum += more
		}
	}
	return sum, nil
}

// pss returns a process's proportional set size in MiB.
func pss(pid int) (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(data) {
		if rest, ok := bytes.CutPrefix(line, []byte("Pss:")); ok {
			kib, err := strconv.ParseFloat(strings.Fields(string(rest))[0], 64)
			return kib / 1024, err
		}
	}
	return 0, fmt.Errorf("process %d tells no PSS", pid)
}
