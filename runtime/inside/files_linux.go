package inside

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

func fileWeapons() []weapon {
	return []weapon{
		{"look", look},
		{"leave", leave},
		{"traps", traps},
		{"climb", climb},
		{"proc-roots", procRoots},
		{"handles", handles},
		{"write-proc", func([]string) verdict { return writeProc() }},
		{"write-sys", writeSys},
		{"masked-paths", func([]string) verdict { return maskedPaths() }},
		{"kernel-log", kernelLog},
		{"core-pattern", func([]string) verdict { return allFail(openToWrite("/proc/sys/kernel/core_pattern")) }},
		{"binfmt", binfmt},
		{"cgroup-write", cgroupWrite},
		{"leaked-files", leakedFiles},
		{"oom-score", oomScore},
		{"own-program", ownProgram},
		{"setuid-file", setuidFile},
		{"setuid-seen", func([]string) verdict { return setuidSeen() }},
	}
}

// look wants that none of the named paths is there.
func look(args []string) verdict {
	for _, path := range args {
		if exists(path) {
			return broke("%s is there", path)
		}
	}
	return held("none of %d paths is there", len(args))
}

// leave writes files for others to find, and stays for a while.
func leave(args []string) verdict {
	for _, path := range args {
		if err := os.WriteFile(path, []byte("left"), 0o666); err != nil {
			return broke("%v", err)
		}
	}
	v := held("%d files", len(args))
	keep("left", v, 12)
	return v
}

// traps fills /work with what whoever cleans up might stumble over: links to the host's folder args[0], a deep tree, names
// that are none, pipes, and a folder that nobody may enter.
func traps(args []string) verdict {
	target := word(args, 0, "/etc")
	deep := "/work/deep" + strings.Repeat("/d", 500)
	err := errors.Join(
		os.Symlink(target, "/work/link"), os.Symlink(strings.Repeat("../", 24)+target, "/work/climb"), os.Symlink("loop", "/work/loop"),
		os.Symlink("/proc/1/root"+target, "/work/proc"), os.MkdirAll(deep, 0o755), os.Symlink(target, deep+"/link"),
		os.WriteFile("/work/a\nb\x1b[2J", nil, 0o600), os.WriteFile("/work/-rf", nil, 0o600), os.WriteFile("/work/*", nil, 0o600),
		unix.Mkfifo("/work/pipe", 0o600), os.Mkdir("/work/closed", 0), os.Mkdir("/work/..data", 0o777),
	)
	if err != nil {
		return broke("the traps were not laid: %v", err)
	}
	return held("the traps are laid")
}

// climb goes up from every folder it can name and down to the host's file args[0].
func climb(args []string) verdict {
	target := strings.TrimPrefix(word(args, 0, "/etc/machine-id"), "/")
	up := strings.Repeat("../", 24)
	tries := []try{openToRead("/" + target), openToWrite("/" + target)}
	for _, from := range []string{"", "/proc/self/cwd/", "/proc/self/root/", "/work/", "/dev/", "/dev/shm/", "/proc/", "/sys/"} {
		tries = append(tries, openToRead(from+up+target), openToWrite(from+up+target))
	}
	for n := 3; n < 20; n++ { // a file left open by whoever started us may be a folder outside: CVE-2024-21626
		tries = append(tries, openToRead(fmt.Sprintf("/proc/self/fd/%d/%s%s", n, up, target)))
	}
	return allFail(tries...)
}

// procRoots goes through the roots, working folders and open files of every process that can be seen.
func procRoots(args []string) verdict {
	target := word(args, 0, "/etc/machine-id")
	all, _ := filepath.Glob("/proc/[0-9]*")
	all = append(all, "/proc/self", "/proc/thread-self")
	var tries []try
	for _, p := range all {
		tries = append(tries, openToRead(p+"/root"+target), openToRead(p+"/cwd"+target))
	}
	return allFail(tries...)
}

// handles opens the root folder of each file system by the number that it has everywhere, past every path.
func handles([]string) verdict {
	var tries []try
	for _, dir := range []string{"/", "/work", "/etc/hosts", "/etc/resolv.conf", "/dev/shm"} {
		if !exists(dir) {
			continue
		}
		tries = append(tries, try{"open_by_handle_at from " + dir, func() error {
			at, err := unix.Open(dir, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(at)
			root := unix.NewFileHandle(1, []byte{2, 0, 0, 0, 0, 0, 0, 0}) // inode 2, any generation
			fd, err := unix.OpenByHandleAt(at, root, unix.O_RDONLY)
			if err == nil {
				_ = unix.Close(fd)
			}
			return err
		}})
	}
	return allRefused(tries...)
}

// writeProc opens what changes the whole machine.
func writeProc() verdict {
	var tries []try
	for _, path := range []string{
		"sysrq-trigger", "sys/kernel/core_pattern", "sys/kernel/modprobe", "sys/kernel/hostname", "sys/kernel/panic", "sys/kernel/sysrq",
		"sys/kernel/randomize_va_space", "sys/vm/overcommit_memory", "sys/vm/drop_caches", "sys/fs/file-max", "sys/net/ipv4/ip_forward",
		"sys/net/ipv4/conf/all/forwarding", "sys/net/ipv6/conf/all/disable_ipv6", "sys/kernel/ns_last_pid", "irq/default_smp_affinity",
		"sys/user/max_user_namespaces", "sys/kernel/shmmax", "sys/kernel/msgmax", "bus/pci/00/00.0", "mtrr", "timer_stats",
	} {
		tries = append(tries, openToWrite("/proc/"+path))
	}
	return allFail(tries...)
}

func writeSys([]string) verdict {
	var tries []try
	for _, pattern := range []string{
		"/sys/kernel/uevent_helper", "/sys/kernel/uevent_seqnum", "/sys/power/state", "/sys/kernel/mm/ksm/run", "/sys/kernel/profiling",
		"/sys/kernel/mm/transparent_hugepage/enabled", "/sys/devices/system/cpu/cpu*/online", "/sys/bus/*/drivers_probe",
		"/sys/module/*/parameters/*", "/sys/class/net/*/mtu", "/sys/class/net/*/queues/*/*", "/sys/block/*/queue/scheduler",
		"/sys/kernel/debug/*", "/sys/kernel/tracing/*", "/sys/fs/ext4/*/*", "/sys/firmware/efi/efivars/*",
	} {
		found, _ := filepath.Glob(pattern)
		for _, f := range found {
			tries = append(tries, openToWrite(f))
		}
	}
	tries = append(tries, try{"make a folder in /sys", func() error { return os.Mkdir("/sys/haggle", 0o755) }})
	return allFail(tries...)
}

// maskedPaths wants that what tells of the host is empty or not there.
func maskedPaths() verdict {
	var tries []try
	for _, path := range []string{"kcore", "keys", "key-users", "kmsg", "latency_stats", "timer_list", "sched_debug", "kpagecount", "kpageflags", "vmallocinfo"} {
		tries = append(tries, openToRead("/proc/"+path))
	}
	for _, dir := range []string{"/proc/acpi", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap", "/sys/kernel/debug", "/sys/kernel/security"} {
		tries = append(tries, try{"list " + dir, func() error {
			entries, err := os.ReadDir(dir)
			if err == nil && len(entries) == 0 {
				return os.ErrNotExist
			}
			return err
		}})
	}
	return allFail(tries...)
}

func kernelLog([]string) verdict {
	const readAll = 3
	return allFail(
		openToRead("/dev/kmsg"), openToRead("/proc/kmsg"), openToWrite("/dev/kmsg"),
		call("syslog", unix.SYS_SYSLOG, readAll, make([]byte, 256), 256),
	)
}

func binfmt([]string) verdict {
	return allFail(
		openToWrite("/proc/sys/fs/binfmt_misc/register"), openToWrite("/proc/sys/fs/binfmt_misc/status"),
		try{"mount binfmt_misc", func() error { return mountAt("binfmt_misc", "binfmt_misc", 0, "") }},
	)
}

// cgroupWrite looks for any control file that would lift a limit or start a program of ours on the host.
func cgroupWrite([]string) verdict {
	tries := []try{{"mount the cgroup file system", func() error { return mountAt("cgroup", "cgroup", 0, "rdma") }}}
	names := []string{
		"release_agent", "notify_on_release", "cgroup.procs", "tasks", "devices.allow", "memory.limit_in_bytes", "memory.max",
		"pids.max", "cpu.max", "cpu.cfs_quota_us", "cgroup.subtree_control", "cgroup.kill",
	}
	for _, name := range names {
		for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/", "/sys/fs/cgroup/*/*/"} {
			found, _ := filepath.Glob(pattern + name)
			for _, f := range found {
				tries = append(tries, openToWrite(f))
			}
		}
	}
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids"} {
		tries = append(tries, try{"make a cgroup in " + dir, func() error { return os.Mkdir(dir+"/haggle-escape", 0o755) }})
	}
	return allFail(tries...)
}

// leakedFiles looks for files that whoever started the job left open in it.
func leakedFiles([]string) verdict {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return broke("cannot list open files: %v", err)
	}
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil { // the listing itself
			continue
		}
		switch {
		case e.Name() == "0", e.Name() == "1", e.Name() == "2", strings.HasPrefix(target, "anon_inode:"), target == "/proc/self/fd":
		case strings.HasPrefix(target, "/proc/") && strings.HasSuffix(target, "/fd"):
		case strings.HasPrefix(target, "pipe:"): // between this process and the one that tries the next attack
		default:
			return broke("file %s is open: %s", e.Name(), target)
		}
	}
	return held("only what the job's own programs opened is open")
}

// oomScore tries to have the kernel spare this job and kill others.
func oomScore([]string) verdict {
	return allFail(try{"lower the OOM score", func() error {
		return os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0)
	}})
}

// ownProgram tries to overwrite the program that started the job: CVE-2019-5736.
func ownProgram([]string) verdict {
	all, _ := filepath.Glob("/proc/[0-9]*/exe")
	var tries []try
	for _, exe := range append(all, "/proc/self/exe") {
		target, err := os.Readlink(exe)
		if err != nil {
			continue
		}
		if strings.Contains(target, "runc") || strings.Contains(target, "containerd") || strings.Contains(target, "memfd") {
			return broke("%s is %s", exe, target)
		}
		tries = append(tries, openToWrite(exe)) // of a running program: ETXTBSY
	}
	return allFail(tries...)
}
