package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"

	"haggle/internal/assemble/agent"
	"haggle/internal/cli"
	"haggle/internal/config"
	"haggle/internal/lab"
	"haggle/market"
)

// wiring is what the commands reach only through functions, so that tests can put others in their place.
type wiring struct {
	// runAgent is the agent itself. It serves the API on its socket until ctx ends or it is idle for long enough.
	runAgent func(ctx context.Context, c config.Agent, version string, log *slog.Logger) error
	labUp    func(ctx context.Context, r labRequest, progress io.Writer) (labStatus, error)
	labDown  func(ctx context.Context, home string, progress io.Writer) error
	labLook  func(ctx context.Context, home string) (labStatus, error)
}

// wired plugs in the real parts.
func wired() wiring {
	return wiring{runAgent: runAgent, labUp: labUp, labDown: labDown, labLook: labLook}
}

func runAgent(ctx context.Context, c config.Agent, version string, log *slog.Logger) error {
	a, err := agent.New(ctx, agent.Config{Agent: c, Version: version, Log: log})
	if err != nil {
		return err
	}
	return a.Run(ctx)
}

func labFolder(home string) string {
	if home == "" {
		return config.LabHome()
	}
	return home
}

func labUp(ctx context.Context, r labRequest, progress io.Writer) (labStatus, error) {
	c, err := labConfig(r.Home, progress)
	if err != nil {
		return labStatus{}, err
	}
	c.Rigs, c.Engine = r.Rigs, lab.Engine(r.Engine)
	s, err := lab.Up(ctx, c)
	if errors.Is(err, lab.ErrUp) {
		_, _ = fmt.Fprintln(progress, "haggle: the lab is up already") // where stderr is closed nobody listens
		err = nil
	}
	return statusOf(s), labFault(err)
}

func labLook(ctx context.Context, home string) (labStatus, error) {
	s, err := lab.Inspect(ctx, labFolder(home))
	return statusOf(s), labFault(err)
}

func statusOf(s lab.Status) labStatus {
	out := labStatus{Home: s.Home, Agent: s.Agent != nil, Rigs: []labRig{}}
	if s.Agent != nil {
		out.Network = s.Agent.Network.Name
	}
	for _, r := range s.Rigs {
		rig := labRig{Name: r.Name, Home: r.Home, Running: r.Status != nil}
		if r.Status != nil {
			rig.PID, out.Network = r.Status.PID, r.Status.Network.Name
		}
		out.Rigs = append(out.Rigs, rig)
	}
	return out
}

func labDown(ctx context.Context, home string, progress io.Writer) error {
	c, err := labConfig(home, progress)
	if err != nil {
		return err
	}
	return labFault(lab.Down(ctx, c))
}

// labConfig finds the programs of a lab: this one, and haggled beside it.
func labConfig(home string, progress io.Writer) (lab.Config, error) {
	self, err := os.Executable()
	if err != nil {
		return lab.Config{}, fmt.Errorf("find this program: %w", err)
	}
	home, err = filepath.Abs(labFolder(home))
	if err != nil {
		return lab.Config{}, fmt.Errorf("find the lab's folder: %w", err)
	}
	return lab.Config{
		Home: home, Haggle: self, Haggled: filepath.Join(filepath.Dir(self), "haggled"), Start: startProgram, Progress: progress,
	}, nil
}

// startProgram starts a program in a session of its own, with its output appended to a log. It outlives this program.
func startProgram(argv, env []string, log string) (int, error) {
	if err := os.MkdirAll(filepath.Dir(log), 0o700); err != nil {
		return 0, err
	}
	out, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer out.Close()
	cmd := &exec.Cmd{Path: argv[0], Args: argv, Env: append(os.Environ(), env...), Stdout: out, Stderr: out, SysProcAttr: detached()}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	pid := cmd.Process.Pid // Release forgets it
	return pid, cmd.Process.Release()
}

// labFault puts what a lab can fail of into words.
func labFault(err error) error {
	switch {
	case errors.Is(err, lab.ErrNoContainers):
		return hinted(market.ClassUsage, err.Error(), "`haggle lab up --engine process` does without: its jobs are plain processes, with "+cli.NoIsolation)
	case errors.Is(err, lab.ErrNotThere):
		return hinted(market.ClassNotFound, err.Error(), "`haggle lab up` starts one")
	}
	return err
}
