//go:build linux

package containerd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// systemPath is where containerd, its shim and runc are looked for beside PATH. Some users' PATH lacks sbin.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// daemonEnv is all that containerd, and so every shim and runc, sees of our environment.
func daemonEnv() []string {
	path := systemPath
	if own := os.Getenv("PATH"); own != "" {
		path = own + ":" + systemPath
	}
	return []string{"PATH=" + path}
}

func lookPath(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return filepath.Abs(path)
	}
	for dir := range strings.SplitSeq(systemPath, ":") {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not installed", name)
}

// majorVersion reads `containerd --version`: "containerd github.com/containerd/containerd 1.6.20~ds1 …".
func majorVersion(out string) (int, error) {
	fields := strings.Fields(out)
	if len(fields) < 3 {
		return 0, fmt.Errorf("containerd states its version as %.100q", out)
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(fields[2], "v"), ".")
	n, err := strconv.Atoi(major)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("containerd states its version as %.100q", fields[2])
	}
	return n, nil
}

// disabledPlugins are those of both generations that jobs do not need: everything for Kubernetes, other
// snapshotters than the chosen one, restarting of containers, tracing, and what would write outside our folders.
// The old runtime (io.containerd.runtime.v1.linux) stays: 1.6 serves no tasks without it.
func disabledPlugins(snapshotter string) []string {
	plugins := []string{
		"io.containerd.grpc.v1.cri",
		"io.containerd.cri.v1.images",
		"io.containerd.cri.v1.runtime",
		"io.containerd.podsandbox.controller.v1.podsandbox",
		"io.containerd.sandbox.controller.v1.shim",
		"io.containerd.nri.v1.nri",
		"io.containerd.internal.v1.opt",
		"io.containerd.internal.v1.restart",
		"io.containerd.internal.v1.tracing",
		"io.containerd.tracing.processor.v1.otlp",
		"io.containerd.monitor.v1.cgroups",
		"io.containerd.monitor.task.v1.cgroups",
		"io.containerd.image-verifier.v1.bindir",
	}
	for _, s := range []string{"aufs", "blockfile", "btrfs", "devmapper", "erofs", "native", "overlayfs", "zfs"} {
		if s != snapshotter {
			plugins = append(plugins, "io.containerd.snapshotter.v1."+s)
		}
	}
	return plugins
}

// daemonConfig is the configuration of our own containerd. Generation 1 reads version 2 of the format,
// generation 2 version 3; what we set is spelled the same in both.
func daemonConfig(cfg Config, major int) string {
	version := 2
	if major >= 2 {
		version = 3
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by haggled at every start.\nversion = %d\n", version)
	fmt.Fprintf(&b, "root = %q\nstate = %q\n", cfg.Root, cfg.State)
	b.WriteString("disabled_plugins = [\n")
	for _, p := range disabledPlugins(cfg.Snapshotter) {
		fmt.Fprintf(&b, "  %q,\n", p)
	}
	b.WriteString("]\n\n")
	fmt.Fprintf(&b, "[grpc]\n  address = %q\n  uid = 0\n  gid = 0\n\n", cfg.Socket)
	fmt.Fprintf(&b, "[ttrpc]\n  address = %q\n  uid = 0\n  gid = 0\n\n", cfg.Socket+".ttrpc")
	b.WriteString("[debug]\n  level = \"warn\"\n")
	return b.String()
}
