//go:build linux

package containerd

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxOpenFiles is what data loaders ask for at most.
const maxOpenFiles = 1 << 16

// hostLimits are properties of the machine that decide which limits runc can set.
type hostLimits struct {
	// swap: the kernel counts swap, or needs no word on it (cgroup v2).
	swap bool
	// openFiles and lockedMemory (bytes) are the most that a process may be allowed.
	openFiles, lockedMemory uint64
	// hugePages are the sizes that a cgroup can bound, as the kernel writes them.
	hugePages []string
	// appArmor is the profile of jobs, empty where the kernel has no AppArmor.
	appArmor string
}

func readHostLimits() hostLimits {
	h := hostLimits{swap: cgroupVersion() == 2, openFiles: maxOpenFiles, lockedMemory: unix.RLIM_INFINITY}
	for _, m := range cgroupMounts() {
		if _, err := os.Stat(m + "/memory.memsw.limit_in_bytes"); err == nil {
			h.swap = true
		}
		h.hugePages = append(h.hugePages, hugePages(m)...)
	}
	if mayRaiseLimits() {
		return h
	}
	// Root without CAP_SYS_RESOURCE, as in some virtual machines, cannot raise its own limits for a job.
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err == nil {
		h.openFiles = min(own.Max, maxOpenFiles)
	}
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &own); err == nil {
		h.lockedMemory = own.Max
	}
	return h
}

func mayRaiseLimits() bool {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&head, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}

// hugePages reads the sizes off the control files in a hierarchy: hugetlb.2MB.limit_in_bytes in the root of version 1,
// hugetlb.2MB.max in the groups below the root of version 2.
func hugePages(hierarchy string) []string {
	files, _ := filepath.Glob(hierarchy + "/hugetlb.*.limit_in_bytes")
	below, _ := filepath.Glob(hierarchy + "/*/hugetlb.*.max")
	var sizes []string
	for _, f := range append(files, below...) {
		parts := strings.Split(filepath.Base(f), ".")
		if len(parts) == 3 && !slices.Contains(sizes, parts[1]) {
			sizes = append(sizes, parts[1])
		}
	}
	return sizes
}
