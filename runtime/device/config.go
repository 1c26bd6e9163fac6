//go:build linux

package device

import (
	"context"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"

	"haggle/runtime"
)

// Mode is how a job finds the driver's libraries.
type Mode string

// The modes.
const (
	// Hookless runs no hooks: libraries lie in LibraryDir, which leads LD_LIBRARY_PATH.
	Hookless Mode = ""
	// WithHooks mounts libraries where the description says and runs its hooks, those that the policy knows.
	WithHooks Mode = "hooks"
)

// LibraryDir is where a job finds the driver's libraries in mode Hookless.
const LibraryDir = "/usr/local/haggle/lib"

// Protections that tests can leave out.
const (
	// ProtectNodes keeps all but the nodes of cards from a job, and their numbers and modes honest.
	ProtectNodes = "device-nodes"
	// ProtectMounts bounds which files a description can show to a job, and keeps them read-only.
	ProtectMounts = "device-mounts"
	// ProtectHooks bounds which programs a description can run, and how.
	ProtectHooks = "device-hooks"
	// ProtectHookEnv gives hooks an environment of ours and not the job's.
	ProtectHookEnv = "device-hook-environment"
	// ProtectEnv bounds which variables a description can set in a job.
	ProtectEnv = "device-environment"
	// ProtectSlices refuses a slice of a card together with the whole card.
	ProtectSlices = "device-slices"
)

// Protections names all that Config.Without may name.
func Protections() []string {
	return []string{ProtectNodes, ProtectMounts, ProtectHooks, ProtectHookEnv, ProtectEnv, ProtectSlices}
}

// HookPolicy says which programs may run as hooks in mode WithHooks.
type HookPolicy struct {
	// Programs are absolute paths of programs that take the sub-commands of nvidia-cdi-hook, or of "nvidia-ctk hook" where
	// that is their name. A program must be a regular file that only root can change, at a path without symbolic links.
	// nil means NVIDIA's two in /usr/bin, /usr/local/bin and /usr/local/nvidia/toolkit.
	Programs []string
}

// Config says where descriptions of cards come from and what they may ask for beyond the usual. The zero value works.
type Config struct {
	// Dirs are folders of CDI descriptions, the least important first. nil means /etc/cdi and /var/run/cdi. A missing
	// folder is no error; nor is one that others than root and the caller can write to, but it is not read.
	Dirs []string
	// Specs returns descriptions that a driver makes itself, as JSON; they win over files. It is asked by Refresh. nil: none.
	Specs func(ctx context.Context) ([][]byte, error)
	// Mode is how a job finds the driver's libraries.
	Mode Mode
	// Hooks bounds what runs in mode WithHooks.
	Hooks HookPolicy
	// Nodes are further nodes that descriptions may name, as patterns of path.Match below /dev, such as "/dev/davinci*". The
	// machine's own (memory, disks, terminals, virtual machines…) stay refused. A node of a device's own edits belongs to that
	// device alone, one of the edits of the whole description to all of them.
	Nodes []string
	// Sources are further folders whose files descriptions may mount, such as "/nix/store".
	Sources []string
	// Groups are ids of the machine's groups that the engine maps into the jobs' user namespaces.
	Groups []uint32
	// Without leaves out protections, by name, for tests that prove that they matter; nothing else sets it.
	Without []string
	// Log takes what is left out of descriptions, at debug level; nil discards it.
	Log *slog.Logger
}

// Devices are the cards of this machine that can be passed to jobs. It is safe for concurrent use.
type Devices struct {
	cfg     Config
	policy  policy
	machine machine

	mu     sync.Mutex
	loaded bool
	stamp  string   // of the files, as they were read
	own    [][]byte // the driver's descriptions, from the last Refresh
	cards  map[runtime.DeviceID]*card
	faults []Refusal // those that do not depend on the state of the machine
}

// New checks the configuration and reads nothing yet.
func New(cfg Config) (*Devices, error) {
	return newOn(cfg, host{})
}

func newOn(cfg Config, on machine) (*Devices, error) {
	if cfg.Dirs == nil {
		cfg.Dirs = []string{"/etc/cdi", "/var/run/cdi"}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Mode != Hookless && cfg.Mode != WithHooks {
		return nil, fmt.Errorf("devices: unknown mode %q", cfg.Mode)
	}
	if cfg.Hooks.Programs == nil {
		cfg.Hooks.Programs = defaultPrograms()
	}
	for _, p := range slices.Concat(cfg.Dirs, cfg.Hooks.Programs, cfg.Sources) {
		if !path.IsAbs(p) || path.Clean(p) != p {
			return nil, fmt.Errorf("devices: %q is no clean absolute path", p)
		}
	}
	for _, p := range cfg.Nodes {
		if err := checkPattern(p); err != nil {
			return nil, err
		}
	}
	off := make(map[string]bool)
	for _, name := range cfg.Without {
		if !slices.Contains(Protections(), name) {
			return nil, fmt.Errorf("devices: unknown protection %q", name)
		}
		off[name] = true
	}
	d := &Devices{cfg: cfg, machine: on}
	d.policy = policy{nodes: cfg.Nodes, sources: cfg.Sources, programs: cfg.Hooks.Programs, off: off}
	return d, nil
}

func checkPattern(p string) error {
	if _, err := path.Match(p, "/dev/x"); err != nil {
		return fmt.Errorf("devices: node pattern %q: %w", p, err)
	}
	if !strings.HasPrefix(p, "/dev/") || path.Clean(p) != p {
		return fmt.Errorf("devices: node pattern %q is not below /dev", p)
	}
	return nil
}

func defaultPrograms() []string {
	var all []string
	for _, dir := range []string{"/usr/bin", "/usr/local/bin", "/usr/local/nvidia/toolkit"} {
		all = append(all, dir+"/nvidia-cdi-hook", dir+"/nvidia-ctk")
	}
	return all
}
