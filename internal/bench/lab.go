package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"haggle/internal/api"
	"haggle/internal/config"
)

// bench works on the programs that `make build` made.
const (
	haggle = "bin/haggle"
	rigs   = "1"
)

// runningLab is a lab that a figure measures on.
type runningLab struct {
	home string
	rig  config.Paths
}

// startLab starts a lab of one rig in a folder of its own.
func startLab(ctx context.Context) (*runningLab, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("it needs root, as a lab does")
	}
	home, err := os.MkdirTemp("/tmp", "hgb")
	if err != nil {
		return nil, err
	}
	l := &runningLab{home: home}
	if l.rig, err = config.RigPaths(filepath.Join(home, "rig-1")); err != nil {
		return nil, err
	}
	if out, err := l.command(ctx, haggle, "lab", "up", "--rigs", rigs).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("start a lab: %w: %s", err, bytes.TrimSpace(out))
	}
	return l, nil
}

// command makes a command that means this lab.
func (l *runningLab) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Env = append(os.Environ(), "HAGGLE_HOME="+l.home)
	return c
}

func (l *runningLab) stop() {
	if out, err := l.command(context.Background(), haggle, "lab", "down").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "bench: the lab in %s does not stop: %v: %s\n", l.home, err, out)
		return
	}
	_ = os.RemoveAll(l.home) // empty by now
}

func (l *runningLab) rigPID(ctx context.Context) (int, error) {
	s, err := api.DialRig(l.rig.Socket).Status(ctx)
	return s.PID, err
}
