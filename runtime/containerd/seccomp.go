//go:build linux

package containerd

import (
	goruntime "runtime"
	"slices"

	"github.com/containerd/containerd/v2/contrib/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// callFilter is the list of system calls that a job may make: containerd's default for our five capabilities, without what
// training has no use for and kernels have had most of their holes in. What is not on it fails with EPERM, clone3 with
// ENOSYS, upon which libraries fall back.
//
// Ptrace stays, for debuggers: it reaches what is in the job's own process namespace and nothing else. So do
// process_vm_readv, which NCCL and dataloaders use, and membarrier, mlock and madvise.
func callFilter() *specs.LinuxSeccomp {
	filter := seccomp.DefaultProfile(&specs.Spec{Process: &specs.Process{
		Capabilities: &specs.LinuxCapabilities{Bounding: capabilities()},
	}})
	drop := droppedCalls()
	var rules []specs.LinuxSyscall
	for _, r := range filter.Syscalls {
		r.Names = slices.DeleteFunc(slices.Clone(r.Names), func(name string) bool { return slices.Contains(drop, name) })
		if len(r.Names) > 0 {
			rules = append(rules, r)
		}
	}
	filter.Syscalls = append(rules, socketRules()...)
	nativeCallsOnly(filter)
	return filter
}

// droppedCalls are those of the default that jobs do not get, and those that the default leaves out today and might not
// tomorrow.
func droppedCalls() []string {
	return []string{
		// Large interfaces of the kernel that work past other checks, or hold pages where a filter cannot look.
		"io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd", "bpf", "perf_event_open",
		// Keys are not bound to namespaces in every kernel.
		"add_key", "keyctl", "request_key",
		// What changes the machine or its view: capabilities refuse it too.
		"mount", "umount", "umount2", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "pivot_root",
		"setns", "unshare", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "open_by_handle_at",
		"name_to_handle_at", "quotactl", "quotactl_fd", "swapon", "swapoff", "reboot", "acct", "iopl", "ioperm", "syslog", "fanotify_init",
		"fanotify_mark", "lookup_dcookie",
		// The clock of the machine.
		"adjtimex", "clock_adjtime", "clock_adjtime64", "clock_settime", "clock_settime64", "settimeofday", "stime",
		// Segments of 16-bit programs.
		"modify_ldt",
		// What other mounts there are, and which security modules.
		"listmount", "statmount", "lsm_get_self_attr", "lsm_list_modules", "lsm_set_self_attr",
		// Memory that the kernel itself cannot see and a memory limit cannot take back.
		"memfd_secret",
		// Asynchronous requests of the old kind: the machine has one number of them for all, and no limit a job.
		"io_setup", "io_destroy", "io_submit", "io_cancel", "io_getevents", "io_pgetevents", "io_pgetevents_time64",
		// The default opens all families but two of these; see socketRules. The 32-bit call hides its arguments.
		"socket", "socketcall",
	}
}

// socketRules open the families of sockets that programs need. Of netlink that is the part that lists a job's own network
// interfaces and addresses.
func socketRules() []specs.LinuxSyscall {
	allow := func(args ...specs.LinuxSeccompArg) specs.LinuxSyscall {
		return specs.LinuxSyscall{Names: []string{"socket"}, Action: specs.ActAllow, Args: args}
	}
	equal := func(index uint, value uint64) specs.LinuxSeccompArg {
		return specs.LinuxSeccompArg{Index: index, Value: value, Op: specs.OpEqualTo}
	}
	return []specs.LinuxSyscall{
		allow(equal(0, unix.AF_UNIX)),
		allow(equal(0, unix.AF_INET)),
		allow(equal(0, unix.AF_INET6)),
		allow(equal(0, unix.AF_NETLINK), equal(2, unix.NETLINK_ROUTE)),
	}
}

// nativeCallsOnly shuts the system calls of other architectures, which kernels offer to 32-bit programs. Some of them do
// what the filter forbids in the native ones: it cannot look into the arguments of a 32-bit socketcall. And runc needs a
// third of the time for a filter of one architecture, for which every job waits.
func nativeCallsOnly(filter *specs.LinuxSeccomp) {
	switch goruntime.GOARCH {
	case "amd64":
		filter.Architectures = []specs.Arch{specs.ArchX86_64}
	case "arm64":
		filter.Architectures = []specs.Arch{specs.ArchAARCH64}
	}
}
