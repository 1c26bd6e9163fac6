package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
)

// Engine is what runs the jobs of a lab.
type Engine string

// Engines.
const (
	// Containers are real ones: they need root, Linux, haggled and containerd.
	Containers Engine = "containerd"
	// Processes need nothing and isolate nothing.
	Processes Engine = "process"
)

// RigCommand is the hidden subcommand of haggle under which the commands ServeRig, PurgeRig and RunJob of a lab without
// containers stand, by the names serve, purge and job.
const RigCommand = "lab-rig"

// checkEngine fills in the default and reports what is missing.
func (c *Config) checkEngine() error {
	switch c.Engine {
	case Processes:
		return nil
	case "":
		c.Engine = Containers
	case Containers:
	default:
		return fmt.Errorf("a lab has no engine %q: it has %s and %s", c.Engine, Containers, Processes)
	}
	if goruntime.GOOS != "linux" {
		return fmt.Errorf("%w: it needs Linux", ErrNoContainers)
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: it needs root", ErrNoContainers)
	}
	if _, err := os.Stat(c.Haggled); err != nil {
		return fmt.Errorf("%w: haggled is not beside haggle: %w", ErrNoContainers, err)
	}
	for _, name := range []string{"containerd", "runc"} {
		if _, err := exec.LookPath(name); err == nil {
			continue
		}
		// A user's path may lack the folders of such programs; haggled finds them all the same.
		if _, err := os.Stat("/usr/sbin/" + name); err != nil {
			return fmt.Errorf("%w: %s is not installed", ErrNoContainers, name)
		}
	}
	return nil
}

func engineFile(home string) string { return filepath.Join(home, "engine") }

// saveEngine notes in the lab's folder what it is made with, before there is anything that a Down must find.
func (c *Config) saveEngine() error {
	if err := os.WriteFile(engineFile(c.Home), []byte(c.Engine), 0o600); err != nil {
		return fmt.Errorf("make the lab's folder: %w", err)
	}
	return nil
}

// savedEngine returns what a lab was made with. One without a note is older than the choice.
func savedEngine(home string) (Engine, error) {
	data, err := os.ReadFile(engineFile(home))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Containers, nil
	case err != nil:
		return "", fmt.Errorf("read the lab's engine: %w", err)
	}
	return Engine(data), nil
}

// serve is the command line of a rig's daemon.
func (c *Config) serve(home string) []string {
	if c.Engine == Processes {
		return []string{c.Haggle, RigCommand, "serve", "--home", home}
	}
	return []string{c.Haggled, "serve", "--home", home}
}

// purge is the command line that takes away what a rig's engine made.
func (c *Config) purge(home string) []string {
	if c.Engine == Processes {
		return []string{c.Haggle, RigCommand, "purge", "--yes", "--home", home}
	}
	return []string{c.Haggled, "purge", "--yes", "--home", home}
}
