//go:build linux

package rig

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"haggle/internal/config"
	"haggle/market"
)

// Level says how much a finding matters.
type Level string

// Levels.
const (
	LevelGood Level = "ok"
	LevelNote Level = "note" // the rig serves, with less
	LevelBad  Level = "bad"  // the rig does not serve
)

// Finding is one thing that the doctor looked at.
type Finding struct {
	Name  string `json:"name"`
	Level Level  `json:"level"`
	Found string `json:"found"`
	Fix   string `json:"fix,omitempty"`
}

// Diagnose looks at everything that a rig needs. It changes nothing.
func Diagnose(ctx context.Context, cfg config.Rig) []Finding {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	findings := []Finding{
		privilege(ctx, cfg), network(cfg), cards(ctx, cfg),
		tool(ctx, "containerd", cfg.Containerd.Binary, "apt install containerd", "--version"),
		tool(ctx, "shim", "containerd-shim-runc-v2", "apt install containerd", "-v"),
		tool(ctx, "runc", "runc", "apt install runc", "--version"),
		tool(ctx, "mkfs.ext4", "mkfs.ext4", "apt install e2fsprogs", "-V"),
		cgroups(), namespaces(), loops(), disk(cfg),
	}
	findings = append(findings, images(cfg)...)
	findings = append(findings, jobNetworks(ctx, cfg)...)
	findings = append(findings, isolation(ctx, cfg))
	findings = append(findings, reach(ctx, cfg))
	if market.IsLab(cfg.Network) {
		return findings
	}
	return append(findings, wsl())
}

func network(cfg config.Rig) Finding {
	f := Finding{"network", LevelGood, cfg.Network, ""}
	if !market.IsLab(cfg.Network) {
		f.Level, f.Fix = LevelNote, "leases are for owners that you trust: `haggled trust KEY`; strangers come with paying ahead"
	}
	return f
}

// tool runs a program for its version.
func tool(ctx context.Context, name, program, fix, flag string) Finding {
	path, err := lookPath(program)
	if err != nil {
		return Finding{name, LevelBad, "missing", fix}
	}
	out, err := exec.CommandContext(ctx, path, flag).CombinedOutput() // some programs say their version on stderr
	if err != nil {
		return Finding{name, LevelBad, path + " does not run: " + err.Error(), fix}
	}
	return Finding{name, LevelGood, market.Printable(versionIn(string(out))), ""}
}

// lookPath finds a program in PATH, and where root's programs are, which some users' PATH lacks.
func lookPath(program string) (string, error) {
	path, err := exec.LookPath(program)
	for _, dir := range []string{"/usr/local/sbin", "/usr/sbin", "/sbin"} {
		if err == nil || strings.Contains(program, "/") {
			break
		}
		path, err = exec.LookPath(filepath.Join(dir, program))
	}
	return path, err
}

// versionIn returns the first line that holds a digit: some programs print their name first.
func versionIn(out string) string {
	for line := range strings.Lines(out) {
		if strings.ContainsAny(line, "0123456789") && !strings.HasSuffix(strings.TrimSpace(line), ":") {
			return strings.Join(strings.Fields(line), " ")
		}
	}
	return "unknown version"
}

func cgroups() Finding {
	var fs unix.Statfs_t
	switch err := unix.Statfs("/sys/fs/cgroup", &fs); {
	case err != nil:
		return Finding{"cgroups", LevelBad, "not mounted", "mount cgroup2 on /sys/fs/cgroup; every common distribution does"}
	case fs.Type == unix.CGROUP2_SUPER_MAGIC:
		return Finding{"cgroups", LevelGood, "version 2", ""}
	}
	return Finding{"cgroups", LevelGood, "version 1", ""}
}

func namespaces() Finding {
	for _, kind := range []string{"net", "pid", "mnt", "ipc", "uts", "user", "cgroup"} {
		if _, err := os.Stat("/proc/self/ns/" + kind); err != nil {
			return Finding{"namespaces", LevelBad, "no " + kind + " namespaces", "use a kernel with CONFIG_NAMESPACES and CONFIG_USER_NS"}
		}
	}
	return Finding{"namespaces", LevelGood, "network, process, mount, ipc, name, user, cgroup", ""}
}

func loops() Finding {
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		return Finding{"loop devices", LevelBad, "none", "let the kernel load them: `modprobe loop`; each job has a disk of its own that ends at its bound"}
	}
	return Finding{"loop devices", LevelGood, "there", ""}
}

// leastDisk is what images and jobs need at least, in bytes.
const leastDisk = 10 << 30

func disk(cfg config.Rig) Finding {
	folder := cfg.Paths.Containerd.Root
	for folder != "/" {
		if _, err := os.Stat(folder); err == nil {
			break
		}
		folder = filepath.Dir(folder)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(folder, &fs); err != nil {
		return Finding{"disk", LevelBad, err.Error(), "check the disk below " + folder}
	}
	free := int64(fs.Bavail) * fs.Bsize
	f := Finding{"disk", LevelGood, fmt.Sprintf("%d GB free below %s", free/1e9, folder), ""}
	if free < leastDisk {
		f.Level, f.Fix = LevelNote, "make room: an image of a framework takes 5 to 10 GB"
	}
	return f
}

// OnWSL reports whether this is the Windows Subsystem for Linux.
func OnWSL() bool {
	version, err := os.ReadFile("/proc/version")
	return err == nil && strings.Contains(strings.ToLower(string(version)), "microsoft")
}

func wsl() Finding {
	if OnWSL() {
		return Finding{"host", LevelBad, "Windows Subsystem for Linux", "a rig needs Linux itself: cards cannot be isolated or metered here"}
	}
	return Finding{"host", LevelGood, "Linux", ""}
}
