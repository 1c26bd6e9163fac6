//go:build linux

package containerd

import (
	"path/filepath"
	"slices"
)

// maskedPaths are empty for a job: what tells of the machine and of others on it, and is no help in computing. Paths that
// the kernel lacks are no fault.
func maskedPaths() []string {
	all := []string{
		"/proc/acpi", "/proc/asound", "/proc/cmdline", "/proc/config.gz", "/proc/fs", "/proc/interrupts",
		"/proc/iomem", "/proc/ioports", "/proc/kallsyms", "/proc/kcore", "/proc/key-users", "/proc/keys", "/proc/kmsg",
		"/proc/kpagecgroup", "/proc/kpagecount", "/proc/kpageflags", "/proc/latency_stats", "/proc/mdstat",
		"/proc/pagetypeinfo", "/proc/sched_debug", "/proc/schedstat", "/proc/scsi", "/proc/slabinfo", "/proc/softirqs", "/proc/swaps",
		"/proc/timer_list", "/proc/timer_stats", "/proc/vmallocinfo",
		// A loop device tells the path of its file on the host.
		"/sys/devices/virtual/block",
		"/sys/devices/virtual/dmi", "/sys/devices/virtual/powercap", "/sys/firmware", "/sys/fs/bpf", "/sys/fs/ext4", "/sys/kernel/debug",
		"/sys/kernel/security", "/sys/kernel/slab", "/sys/kernel/tracing", "/sys/power",
	}
	// How hot the machine is tells what others compute.
	throttles, _ := filepath.Glob("/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle")
	return slices.Concat(all, throttles)
}

// readonlyPaths can be read, for the programs that tune themselves by them.
func readonlyPaths() []string {
	return []string{"/proc/bus", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
}
