package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// jobName is the name of the lease that copies and forwards go to.
const jobName = "bench"

// insideLab is a lab with a job that runs, and what is measured beside its ways in.
type insideLab struct {
	*runningLab
	lease string
	work  string // files of the measurement
	bare  string // the program internal/bench/bare
	load  string // the program internal/bench/load
	undo  []func() error
}

func startInside(ctx context.Context) (l *insideLab, err error) {
	running, err := startLab(ctx)
	if err != nil {
		return nil, err
	}
	l = &insideLab{runningLab: running}
	defer func() {
		if err != nil {
			l.stop()
		}
	}()
	if l.work, err = os.MkdirTemp("/tmp", "hgw"); err != nil {
		return nil, err
	}
	l.undo = append(l.undo, func() error { return os.RemoveAll(l.work) })
	if l.bare, err = l.build(ctx, "bare"); err != nil {
		return nil, err
	}
	if l.load, err = l.build(ctx, "load"); err != nil {
		return nil, err
	}
	return l, l.rent(ctx)
}

// stop ends all that was begun, the last first, and then the lab.
func (l *insideLab) stop() {
	for i := len(l.undo) - 1; i >= 0; i-- {
		if err := l.undo[i](); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
	}
	l.runningLab.stop()
}

// build makes one of bench's own programs, without cgo, so that it runs in any job.
func (l *insideLab) build(ctx context.Context, name string) (string, error) {
	program := filepath.Join(l.work, name)
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "./internal/bench/"+name)
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", name, err, out)
	}
	return program, nil
}

// rent has a job run that does next to nothing, and opens its door.
func (l *insideLab) rent(ctx context.Context) error {
	args := []string{
		"bid", "--name", jobName, "gpu_name=RTX_4090", "--image", "lab", "--for", "2h", "--budget", "5.00", "--disk", "2GB",
		"--", "train", "--steps", "1000000", "--step-time", "1s",
	}
	for { // the rig has just begun to offer
		out, err := l.output(ctx, args...)
		if err == nil {
			l.lease = strings.TrimSpace(out)
			break
		}
		if rerr := atRest(ctx); rerr != nil {
			return errors.Join(err, rerr)
		}
	}
	for {
		_, err := l.exec(ctx, "true")
		if err == nil {
			return nil
		}
		if rerr := atRest(ctx); rerr != nil {
			return errors.Join(err, rerr)
		}
	}
}

// output runs haggle and returns what it printed.
func (l *insideLab) output(ctx context.Context, args ...string) (string, error) {
	var out, complaint bytes.Buffer
	c := l.command(ctx, haggle, args...)
	c.Stdout, c.Stderr = &out, &complaint
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("haggle %s: %w: %s", args[0], err, bytes.TrimSpace(complaint.Bytes()))
	}
	return out.String(), nil
}

// exec runs a command in the job.
func (l *insideLab) exec(ctx context.Context, args ...string) (string, error) {
	return l.output(ctx, append([]string{"exec", jobName, "--"}, args...)...)
}

// at is a path in the job as `haggle cp` writes it.
func at(path string) string { return jobName + ":" + path }

func (l *insideLab) agentPID(ctx context.Context) (int, error) {
	out, err := l.output(ctx, "status", "--json")
	if err != nil {
		return 0, err
	}
	var s struct {
		PID int `json:"pid"`
	}
	if err := json.Unmarshal([]byte(out), &s); err != nil || s.PID == 0 {
		return 0, fmt.Errorf("the agent does not tell its number: %w", err)
	}
	return s.PID, nil
}

// daemons are the processes that a way into the job leads through: agent, rig and door.
func (l *insideLab) daemons(ctx context.Context) ([]int, error) {
	agent, err := l.agentPID(ctx)
	if err != nil {
		return nil, err
	}
	rig, err := l.rigPID(ctx)
	if err != nil {
		return nil, err
	}
	door, err := l.doorPID()
	return []int{agent, rig, door}, err
}

// doorPID finds the door: it is in the job's control group, and says what it is.
func (l *insideLab) doorPID() (int, error) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, err
	}
	for _, file := range all {
		dir := filepath.Dir(file)
		line, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(line, []byte("\x00inside\x00door\x00")) {
			continue
		}
		if group, err := os.ReadFile(filepath.Join(dir, "cgroup")); err == nil && bytes.Contains(group, []byte(l.lease[:32])) {
			return strconv.Atoi(filepath.Base(dir))
		}
	}
	return 0, errors.New("the job has no door")
}

// wait asks again and again until the answer is yes.
func wait(ctx context.Context, what string, ask func() bool) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ask() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, ctx.Err())
		}
	}
	return nil
}
