//go:build linux

package rig

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sync/errgroup"

	"haggle/internal/config"
	"haggle/runtime/containerd"
	"haggle/runtime/device"
	"haggle/runtime/jobnet"
)

// engine is the rig's container engine with what it passes to jobs. Make it with openEngine.
type engine struct {
	*containerd.Engine
	describe *descriptions
}

// openEngine makes the rig's engine, without starting it. describe states how cards reach a job.
func openEngine(cfg config.Rig, describe *descriptions, log *slog.Logger) (*engine, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program, which writes the jobs' logs: %w", err)
	}
	networks, err := openNetworks(cfg, log)
	if err != nil {
		return nil, err
	}
	describe.devices, err = device.New(device.Config{Dirs: cfg.Cards.CDI, Specs: describe.specs, Mode: deviceMode(cfg), Log: log})
	if err != nil {
		return nil, fmt.Errorf("cards for jobs: %w", err)
	}
	p, wait := cfg.Paths.Containerd, insideProgram(self, "wait")
	spares := 1
	if wait == nil {
		spares = 0
	}
	e, err := containerd.New(containerd.Config{
		Root: p.Root, State: p.State, Socket: p.Socket, RuncRoot: p.Runc,
		Address: cfg.Containerd.Address, Namespace: cfg.Containerd.Namespace, Binary: cfg.Containerd.Binary,
		LoggerPath: self, LoggerArgs: []string{LoggerCommand}, LogDir: filepath.Join(cfg.Paths.Jobs, "logs"), VolumeDir: cfg.Paths.Volumes,
		CgroupParent: cgroupParent(cfg.Paths), Networks: networks, Devices: describe.devices, MaxImageBytes: cfg.Jobs.MaxImage,
		CheckProgram: insideProgram(self, "check"), WaitProgram: wait, DoorProgram: insideProgram(self, "door"), Spares: spares, Log: log,
	})
	if err != nil {
		return nil, err
	}
	return &engine{e, describe}, nil
}

// insideProgram is what runs inside jobs for us, to try out what keeps them from the machine, to wait for one, or to be one's
// door: the program haggle, which is static and lies beside this one. Where it does not, nothing is tried out and the rig
// promises less, no container waits for its job, and nobody enters one.
func insideProgram(self, command string) []string {
	haggle := filepath.Join(filepath.Dir(self), "haggle")
	if _, err := os.Stat(haggle); err != nil {
		return nil
	}
	return []string{haggle, "inside", command}
}

func deviceMode(cfg config.Rig) device.Mode {
	if cfg.Cards.Hooks == config.HooksVendor {
		return device.WithHooks
	}
	return device.Hookless
}

// Run looks after the engine and after the descriptions of cards until ctx ends.
func (e *engine) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return e.Engine.Run(ctx) })
	group.Go(func() error { e.describe.keep(ctx); return nil })
	return group.Wait()
}

// openNetworks makes the networks of jobs; nil where jobs have none.
func openNetworks(cfg config.Rig, log *slog.Logger) (*jobnet.Networks, error) {
	if cfg.JobNetwork() == config.NetworkNone {
		return nil, nil
	}
	c := jobnet.Config{
		Name: "haggle" + suffix(cfg.Paths, "_"), Dir: filepath.Join(dataFolder(cfg.Paths), "networks"), Log: log,
		Profile: jobnet.Profile{
			LineUp: cfg.Line.Up, LineDown: cfg.Line.Down, ShareUpPermille: 10 * cfg.Line.ShareUp, ShareDownPermille: 10 * cfg.Line.ShareDown,
			NewConnsPerSecond: cfg.Line.Connections, MonthlyBytes: cfg.Line.Monthly, BlockedPorts: []uint16{},
		},
	}
	var errs []error
	for _, text := range cfg.Line.BlockedPorts {
		port, err := strconv.ParseUint(text, 10, 16)
		c.Profile.BlockedPorts, errs = append(c.Profile.BlockedPorts, uint16(port)), append(errs, err)
	}
	for _, text := range cfg.Line.Reject {
		prefix, err := netip.ParsePrefix(text)
		c.Profile.Reject, errs = append(c.Profile.Reject, prefix), append(errs, err)
	}
	for _, text := range cfg.Line.Resolvers {
		addr, err := netip.ParseAddr(text)
		c.Resolvers, errs = append(c.Resolvers, addr), append(errs, err)
	}
	if cfg.Line.Pool != "" {
		pool, err := netip.ParsePrefix(cfg.Line.Pool)
		c.Pool, errs = pool, append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("networks of jobs: %w", err)
	}
	networks, err := jobnet.New(c)
	if err != nil {
		return nil, fmt.Errorf("networks of jobs: %w", err)
	}
	return networks, nil
}

// cgroupParent names the cgroup of all jobs of a rig.
func cgroupParent(p config.Paths) string { return "/haggle" + suffix(p, "-") }

// suffix tells several rigs on one machine apart, as in a lab: each has its own cgroup and its own table of rules.
func suffix(p config.Paths, between string) string {
	if p.Home == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(p.Home))
	return fmt.Sprintf("%s%x", between, sum[:4])
}

// dataFolder is the folder of all that outlives a reboot.
func dataFolder(p config.Paths) string { return filepath.Dir(p.Containerd.Root) }
