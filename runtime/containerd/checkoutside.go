//go:build linux

package containerd

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"haggle/runtime"
)

// lookFromOutside looks at a job that was made and not started, at what only the machine can see. Its first process is in
// all its namespaces and limits already.
func (e *Engine) lookFromOutside(ctx context.Context, spec runtime.Spec) []runtime.Protection {
	t, err := e.getTask(ctx, spec.ID)
	if err != nil || t == nil {
		return []runtime.Protection{{Name: "first-process", Found: fmt.Sprintf("the job has none: %v", err)}}
	}
	proc := fmt.Sprintf("/proc/%d", t.Pid)
	return []runtime.Protection{
		e.seeUsers(proc),
		seeNamespaces(proc),
		e.seeDisk(proc, spec),
		seeSecrets(proc),
		e.seeLimit(spec.ID, Memory, spec.MemoryBytes, "memory/memory.limit_in_bytes", "memory.max"),
		e.seeLimit(spec.ID, Pids, spec.Pids, "pids/pids.max", "pids.max"),
		e.seeHook(spec.ID),
	}
}

func protection(name string, holds bool, found string, args ...any) runtime.Protection {
	return runtime.Protection{Name: name, Holds: holds, Found: fmt.Sprintf(found, args...)}
}

func (e *Engine) seeUsers(proc string) runtime.Protection {
	for _, file := range []string{"uid_map", "gid_map"} {
		b, err := os.ReadFile(filepath.Join(proc, file))
		var inside, first, size uint64
		if err == nil {
			_, err = fmt.Sscan(string(b), &inside, &first, &size)
		}
		if err != nil || inside != 0 || first < uint64(e.cfg.IDBase) || size != idsPerJob || strings.Count(string(b), "\n") != 1 {
			return protection(UserNamespace, false, "%s is %.80q, not %d ids from %d on (%v)", file, b, idsPerJob, e.cfg.IDBase, err)
		}
	}
	return protection(UserNamespace, true, "on the machine the job's users are nobody")
}

func seeNamespaces(proc string) runtime.Protection {
	const name = "namespaces"
	for _, kind := range []string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"} {
		theirs, err := os.Readlink(filepath.Join(proc, "ns", kind))
		if err != nil {
			return protection(name, false, "the %s namespace cannot be seen: %v", kind, err)
		}
		if own, err := os.Readlink("/proc/self/ns/" + kind); err != nil || own == theirs {
			return protection(name, false, "the job shares our %s namespace", kind)
		}
	}
	return protection(name, true, "all seven are the job's own")
}

// mountsOf are the mounts that a process sees.
func mountsOf(proc string) ([]mountInfo, error) {
	f, err := os.Open(filepath.Join(proc, "mountinfo"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseMounts(bufio.NewScanner(f)), nil
}

// kindAt is the type of what is mounted at a path, empty for nothing.
func kindAt(proc, path string) (string, error) {
	all, err := mountsOf(proc)
	kind := ""
	for _, m := range all {
		if m.path == path {
			kind = m.kind
		}
	}
	return kind, err
}

func (e *Engine) seeDisk(proc string, spec runtime.Spec) runtime.Protection {
	const name = "disk-quota"
	u, err := e.disks.Usage(spec.ID)
	if err != nil || u.SizeBytes > uint64(spec.DiskBytes) {
		return protection(name, false, "the job's disk of %d bytes has %d (%v)", spec.DiskBytes, u.SizeBytes, err)
	}
	kind, err := kindAt(proc, runtime.WorkDir)
	if err != nil || kind != "ext4" {
		return protection(name, false, "%s is of type %q (%v)", runtime.WorkDir, kind, err)
	}
	return protection(name, true, "the job's disk ends at %d MiB", u.SizeBytes>>20)
}

func seeSecrets(proc string) runtime.Protection {
	kind, err := kindAt(proc, runtime.SecretsDir)
	return protection("secrets-in-memory", err == nil && kind == "tmpfs", "%s is of type %q", runtime.SecretsDir, kind)
}

// seeLimit reads a limit of the job's cgroup where version 1 or version 2 has it.
func (e *Engine) seeLimit(id, name string, want int64, v1, v2 string) runtime.Protection {
	controller, file := filepath.Split(v1)
	path := filepath.Join("/sys/fs/cgroup", controller, e.cfg.CgroupParent, id, file)
	if cgroupVersion() == 2 {
		path = filepath.Join("/sys/fs/cgroup", e.cfg.CgroupParent, id, v2)
	}
	b, err := os.ReadFile(path)
	got := strings.TrimSpace(string(b))
	return protection(name, err == nil && got == fmt.Sprint(want), "its limit is %q, set to %d", got, want)
}

func (e *Engine) seeHook(id string) runtime.Protection {
	b, err := os.ReadFile(e.hookFile(id))
	switch {
	case err != nil || len(b) == 0:
		return protection(HookEnvironment, false, "a hook left no word of what it saw (%v)", err)
	case strings.Contains(string(b), checkMark):
		return protection(HookEnvironment, false, "a hook, which can be a program of root's, sees the job's environment")
	}
	return protection(HookEnvironment, true, "a hook sees nothing of the job's environment")
}

// remedy is what an owner can do where a protection does not hold.
func remedy(name string) string {
	switch name {
	case UserNamespace, "namespaces", "self-check":
		return "use Linux 5.19 or later with user namespaces (sysctl user.max_user_namespaces above 0) and keep images on ext4, xfs or btrfs"
	case Seccomp:
		return "use a kernel with CONFIG_SECCOMP_FILTER and a runc that was built with seccomp"
	case "disk-quota":
		return "install e2fsprogs and let the kernel load the loop module"
	case Memory, Pids, "pids-bounded":
		return "boot with the memory and pids controllers of cgroups (cgroup_enable=memory on some boards)"
	case "metadata", "lan", "rig", "ipv6":
		return "see `haggled doctor` for what stands in the way of the jobs' network rules"
	case "device-open", "mknod":
		return "let nothing but haggled change the jobs' devices, and do not run containers with the systemd cgroup driver below its cgroup"
	}
	return "update runc, containerd and the kernel from your distribution"
}
