package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"haggle/internal/api"
	"haggle/internal/config"
)

// Inspect asks every part of a lab how it is. The error is ErrNotThere if the folder holds no lab.
func Inspect(ctx context.Context, home string) (Status, error) {
	s := Status{Home: home, Rigs: []RigStatus{}}
	homes, err := rigHomes(home)
	if err != nil {
		return s, err
	}
	if len(homes) == 0 {
		return s, fmt.Errorf("%w in %s", ErrNotThere, home)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	paths, err := config.AgentPaths(home)
	if err != nil {
		return s, err
	}
	s.Up = true
	if a, err := api.DialAgent(paths.Socket).Status(ctx); err == nil {
		s.Agent = &a
	} else {
		s.Up = false
	}
	for _, h := range homes {
		r := RigStatus{Name: filepath.Base(h), Home: h}
		if paths, err = config.RigPaths(h); err != nil {
			return s, err
		}
		status, err := api.DialRig(paths.Socket).Status(ctx)
		if err != nil {
			r.Error, s.Up = err.Error(), false
		} else {
			r.Status = &status
		}
		s.Rigs = append(s.Rigs, r)
	}
	return s, nil
}

func rigHomes(home string) ([]string, error) { return filepath.Glob(filepath.Join(home, "rig-[0-9]*")) }

// Down ends everything that a lab started and removes the lab's folder with all keys and receipts in it: export what you
// want to keep first. A part that is dead already is no error. The folder stays if something could not be ended, so that
// Down can be tried again.
func Down(ctx context.Context, c Config) error {
	homes, err := rigHomes(c.Home)
	if err != nil {
		return err
	}
	if len(homes) == 0 {
		return fmt.Errorf("%w in %s", ErrNotThere, c.Home)
	}
	if c.Engine, err = savedEngine(c.Home); err != nil {
		return err
	}
	errs := []error{c.stopAgent(ctx)}
	for _, home := range homes {
		c.say("stopping %s", filepath.Base(home))
		errs = append(errs, c.stopRig(ctx, home))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return os.RemoveAll(c.Home)
}

func (c *Config) stopAgent(ctx context.Context) error {
	paths, err := config.AgentPaths(c.Home)
	if err != nil {
		return err
	}
	// A shell of a lease that is still open would start the agent again, but not without its key.
	if err := os.Remove(paths.Key); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("stop the agent: %w", err)
	}
	agent := api.DialAgent(paths.Socket)
	asked, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	if status, err := agent.Status(asked); err == nil {
		c.say("stopping the agent")
		if err := agent.Shutdown(asked, true); err != nil {
			return fmt.Errorf("stop the agent: %w", err)
		}
		if err := awaitExit(ctx, "the agent", status.PID, stopLimit); err != nil {
			return err
		}
	}
	return endAll(ctx, "the agent", "agent", "run", "--home", c.Home)
}

// answerLimit is how long a program may take to answer before it is taken for one that hangs.
const answerLimit = 10 * time.Second

// stopRig ends a rig's daemon, then has its program take away all that its engine made.
func (c *Config) stopRig(ctx context.Context, home string) error {
	paths, err := config.RigPaths(home)
	if err != nil {
		return err
	}
	name, rig := filepath.Base(home), api.DialRig(paths.Socket)
	asked, stop := context.WithTimeout(ctx, answerLimit)
	defer stop()
	if status, err := rig.Status(asked); err == nil {
		if err := rig.Shutdown(asked); err != nil {
			return fmt.Errorf("stop %s: %w", name, err)
		}
		if err := awaitExit(ctx, name, status.PID, stopLimit); err != nil {
			return err
		}
	}
	if err := endAll(ctx, name, c.serve(home)[1:]...); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	words := c.purge(home)
	purge := exec.CommandContext(ctx, words[0], words[1:]...)
	if out, err := purge.CombinedOutput(); err != nil {
		return fmt.Errorf("purge %s: %w: %s", name, err, out)
	}
	return nil
}
