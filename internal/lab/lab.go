// Package lab starts and stops a whole market on one machine: rigs with simulated cards and a renter's agent, all on loopback
// only. Each rig is a haggled of its own with a containerd of its own or, where that is not to be had, a haggle that runs jobs
// as plain processes.
//
// A lab is a folder: the folder itself is the agent's home, rig-1, rig-2, … below it are the rigs', bank is where its play money
// is, and the file engine says what runs the jobs. What is in the folder is all that a later Down needs; no state is kept elsewhere.
package lab

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"haggle/internal/api"
	"haggle/internal/config"
	"haggle/internal/view"
)

// Bounds of a lab.
const (
	DefaultRigs = 3
	MaxRigs     = 16
	startLimit  = 5 * time.Minute // for one rig or the agent to answer; a virtual machine without KVM takes its time
	stopLimit   = 60 * time.Second
	pollEvery   = 100 * time.Millisecond
)

// ImageName is the name under which every rig of a lab lists the lab's job image.
const ImageName = "lab"

// Config says where a lab is and what it is made of.
type Config struct {
	Home    string // the lab's folder
	Rigs    int    // DefaultRigs where 0
	Engine  Engine // of a new lab; Containers where "". Down goes by what the lab was made with.
	Haggle  string // path of the haggle program: the agent, the job inside the image, and the rigs without containers
	Haggled string // path of the haggled program: the rigs with containers
	// Start starts a program that outlives this one, with its output appended to a log file, and returns its process.
	Start func(argv, env []string, log string) (pid int, err error)
	// Progress receives one line per step for people.
	Progress io.Writer
}

// Status is a lab at a glance.
type Status struct {
	Home  string            `json:"home"`
	Up    bool              `json:"up" doc:"the agent and every rig answer"`
	Agent *view.AgentStatus `json:"agent,omitempty"`
	Rigs  []RigStatus       `json:"rigs"`
}

// RigStatus is one rig of a lab.
type RigStatus struct {
	Name   string          `json:"name"`
	Home   string          `json:"home"`
	Status *view.RigStatus `json:"status,omitempty"`
	Error  string          `json:"error,omitempty" doc:"why it does not answer"`
}

// Errors that a caller tells apart.
var (
	// ErrNoContainers: this machine, or this user, cannot start them. A lab of Processes can be had.
	ErrNoContainers = errors.New("a lab of containers cannot be started here")
	ErrNotThere     = errors.New("there is no lab")
	ErrUp           = errors.New("the lab is up already")
)

// Up makes a lab and returns when the agent sees an offer of every rig. If it cannot, what was started is taken down again.
func Up(ctx context.Context, c Config) (Status, error) {
	if err := c.check(); err != nil {
		return Status{}, err
	}
	if s, err := Inspect(ctx, c.Home); err == nil && s.Up {
		return s, ErrUp
	} else if err == nil {
		c.say("an old lab is in the way: taking it down first")
		if err := Down(ctx, c); err != nil {
			return Status{}, err
		}
	}
	if err := c.build(ctx); err != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
		defer cancel()
		if homes, none := rigHomes(c.Home); none != nil || len(homes) == 0 {
			return Status{}, err // nothing was started
		}
		c.say("that did not work: taking down what was started")
		return Status{}, errors.Join(err, Down(clean, c))
	}
	return Inspect(ctx, c.Home)
}

func (c *Config) check() error {
	if c.Rigs == 0 {
		c.Rigs = DefaultRigs
	}
	if c.Rigs < 1 || c.Rigs > MaxRigs {
		return fmt.Errorf("a lab has 1 to %d rigs", MaxRigs)
	}
	return c.checkEngine()
}

func (c *Config) say(format string, args ...any) {
	if c.Progress != nil {
		fmt.Fprintf(c.Progress, format+"\n", args...)
	}
}

// build makes the folder, the image, the rigs and the agent.
func (c *Config) build(ctx context.Context) error {
	if err := os.MkdirAll(c.Home, 0o700); err != nil {
		return fmt.Errorf("make the lab's folder: %w", err)
	}
	if err := c.saveEngine(); err != nil {
		return err
	}
	c.say("making the job image from this program")
	image := filepath.Join(c.Home, "lab.tar")
	if err := WriteImage(image, c.Haggle); err != nil {
		return err
	}
	network, err := newNetwork()
	if err != nil {
		return err
	}
	members, err := c.startRigs(ctx, network, image)
	if err != nil {
		return err
	}
	return c.startAgent(ctx, network, members)
}

// newNetwork names a network that nobody else has: a lab never meets another.
func newNetwork() (string, error) {
	var id [4]byte
	if _, err := rand.Read(id[:]); err != nil {
		return "", err
	}
	return "lab-" + hex.EncodeToString(id[:]), nil
}

// startRigs starts the first rig, then the others with the first as the member to ask, and returns the addresses of all.
func (c *Config) startRigs(ctx context.Context, network, image string) ([]string, error) {
	var members []string
	var started []startedRig
	for n := 1; n <= c.Rigs; n++ {
		cfg, err := c.rigConfig(n, network, image, members)
		if err != nil {
			return nil, err
		}
		if err := config.WriteRig(cfg.Paths.Config, cfg); err != nil {
			return nil, err
		}
		c.say("starting %s: %d simulated %s at %s USD an hour", cfg.Name, cfg.Cards.Simulated[0].Count, cfg.Cards.Simulated[0].Profile, cfg.Prices.Slot)
		pid, err := c.Start(c.serve(cfg.Paths.Home), nil, cfg.Paths.Log)
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", cfg.Name, err)
		}
		started = append(started, startedRig{cfg.Paths, pid})
		if n > 1 {
			continue // it comes up while the next is being started
		}
		s, err := awaitRig(ctx, started[0])
		if err != nil {
			return nil, err
		}
		members = s.Network.Addrs
	}
	c.say("waiting for the rigs to have the image")
	for _, rig := range started[1:] {
		s, err := awaitRig(ctx, rig)
		if err != nil {
			return nil, err
		}
		members = append(members, s.Network.Addrs...)
	}
	return members, nil
}

// startedRig is a rig that was started and does not answer yet.
type startedRig struct {
	paths config.Paths
	pid   int
}

// startAgent writes the agent's configuration, starts it, and waits until it sees every rig.
func (c *Config) startAgent(ctx context.Context, network string, members []string) error {
	paths, err := config.AgentPaths(c.Home)
	if err != nil {
		return err
	}
	cfg, err := config.LoadAgent(config.Flags{Home: c.Home, Env: noEnvironment})
	if err != nil {
		return err
	}
	cfg.Network, cfg.Bootstrap, cfg.Pay = network, members, c.agentPays()
	if err := config.WriteAgent(paths.Config, cfg); err != nil {
		return err
	}
	c.say("starting the agent")
	pid, err := c.Start([]string{c.Haggle, "agent", "run", "--home", c.Home}, nil, paths.Log)
	if err != nil {
		return fmt.Errorf("start the agent: %w", err)
	}
	agent := api.DialAgent(paths.Socket)
	var seen int
	err = await(ctx, pid, func(ctx context.Context) (bool, error) {
		list, err := agent.Offers(ctx, view.OfferQuery{})
		seen = len(list.Offers)
		return err == nil && list.Rigs >= c.Rigs, err
	})
	if err != nil {
		return fmt.Errorf("the agent sees %d offers of %d rigs; its log is %s: %w", seen, c.Rigs, paths.Log, err)
	}
	return nil
}

// awaitRig waits until a rig answers and lists the lab's image.
func awaitRig(ctx context.Context, started startedRig) (view.RigStatus, error) {
	paths := started.paths
	rig := api.DialRig(paths.Socket)
	var s view.RigStatus
	err := await(ctx, started.pid, func(ctx context.Context) (ok bool, err error) {
		s, err = rig.Status(ctx)
		return err == nil && len(s.Images) > 0 && s.Free > 0, err
	})
	if err != nil {
		return s, fmt.Errorf("%s does not come up; its log is %s: %w", filepath.Base(paths.Home), paths.Log, err)
	}
	return s, nil
}

// errDied says that a process ended that should have come up.
var errDied = errors.New("it ended")

// await asks again and again until the answer is yes, for startLimit at most and for as long as the process lives. The last
// error says why not.
func await(ctx context.Context, pid int, ask func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		ok, err := ask(ctx)
		switch {
		case ok:
			return nil
		case !alive(pid):
			return errDied
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}
