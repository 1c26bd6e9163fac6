//go:build linux

package rig

import (
	"bufio"
	"fmt"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"haggle/internal/config"
	"haggle/internal/host"
)

// readMachine asks the kernel about the machine around the cards.
func readMachine(cfg config.Rig) (host.Machine, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return host.Machine{}, fmt.Errorf("read the kernel's version: %w", err)
	}
	m := host.Machine{
		CPU:         procField("/proc/cpuinfo", "model name"),
		Kernel:      unix.ByteSliceToString(name.Release[:]),
		Threads:     int64(goruntime.NumCPU()),
		SlotThreads: cfg.Host.Threads,
		SlotMemory:  cfg.Host.Memory,
	}
	kib, err := strconv.ParseInt(strings.TrimSuffix(procField("/proc/meminfo", "MemTotal"), " kB"), 10, 64)
	if err != nil {
		return m, fmt.Errorf("read the size of the memory: %w", err)
	}
	m.Memory = kib << 10
	if m.DiskFree, err = diskFree(cfg); err != nil {
		return m, err
	}
	return m, nil
}

// diskFree returns the bytes that jobs can still take where the engine keeps them.
func diskFree(cfg config.Rig) (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(cfg.Paths.Database, &fs); err != nil { // on the same disk as the engine's folder, and there already
		return 0, fmt.Errorf("read the free disk: %w", err)
	}
	return int64(fs.Bavail) * fs.Bsize, nil
}

// procField returns the first value of a name in a file of "name : value" lines, or "".
func procField(path, name string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		key, value, found := strings.Cut(lines.Text(), ":")
		if found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
