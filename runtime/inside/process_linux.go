package inside

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func processWeapons() []weapon {
	return []weapon{
		{"ptrace", ptrace},
		{"signal", signalOutside},
		{"own-processes-only", func([]string) verdict { return ownProcesses() }},
		{"capabilities", func([]string) verdict { return capabilities() }},
		{"no-new-privileges", func([]string) verdict { return noNewPrivileges() }},
		{"seccomp", func([]string) verdict { return seccomp() }},
		{"mapped-root", func([]string) verdict { return mappedRoot() }},
		{"sysv", sysv},
		{"abstract-socket", abstractSocket},
		{"control-text", controlText},
		{"orphans", orphans},
	}
}

// ownProcesses wants that every process in sight is in this process's own namespace.
func ownProcesses() verdict {
	own, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return broke("no pid namespace: %v", err)
	}
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range all {
		ns, err := os.Readlink(p + "/ns/pid")
		if err == nil && ns != own {
			return broke("%s belongs to %s", p, ns)
		}
		if comm, err := os.ReadFile(p + "/comm"); err == nil && strings.TrimSpace(string(comm)) == "kthreadd" {
			return broke("the kernel's own threads are in sight")
		}
	}
	return held("%d processes in sight, all of this job", len(all))
}

// eachPid makes tries against the process numbers of the host that are given.
func eachPid(args []string, tries func(pid int) []try) verdict {
	var all []try
	for _, a := range args {
		pid, err := strconv.Atoi(a)
		if err != nil || pid < 2 {
			return broke("%q is no process of the host", a)
		}
		if exists("/proc/" + a) {
			continue // that number is one of ours here
		}
		all = append(all, tries(pid)...)
	}
	return allFail(all...)
}

func ptrace(args []string) verdict {
	return eachPid(args, func(pid int) []try {
		name := strconv.Itoa(pid)
		memory := unix.RemoteIovec{Base: 0x400000, Len: 8}
		return []try{
			{"trace " + name, func() error { return unix.PtraceSeize(pid) }},
			{"read memory of " + name, func() error {
				b := make([]byte, 8)
				_, err := unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &b[0], Len: 8}}, []unix.RemoteIovec{memory}, 0)
				return err
			}},
			{"pidfd of " + name, func() error {
				fd, err := unix.PidfdOpen(pid, 0)
				if err == nil {
					_ = unix.Close(fd)
				}
				return err
			}},
			openToRead("/proc/" + name + "/environ"), openToRead("/proc/" + name + "/mem"),
		}
	})
}

func signalOutside(args []string) verdict {
	return eachPid(args, func(pid int) []try {
		return []try{{"signal " + strconv.Itoa(pid), func() error { return unix.Kill(pid, 0) }}}
	})
}

// capabilities are at most CHOWN, DAC_OVERRIDE, FOWNER, SETGID and SETUID.
func capabilities() verdict {
	const most = 1<<0 | 1<<1 | 1<<3 | 1<<6 | 1<<7
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		n, err := strconv.ParseUint(status(set), 16, 64)
		if err != nil {
			return broke("%s cannot be read: %v", set, err)
		}
		if n&^most != 0 {
			return broke("%s is %#x, more than %#x", set, n, most)
		}
	}
	return held("at most %#x: chown, dac_override, fowner, setgid, setuid", most)
}

func noNewPrivileges() verdict {
	on, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err != nil || on != 1 {
		return broke("no_new_privs is %d (%v)", on, err)
	}
	return held("no_new_privs is set")
}

func seccomp() verdict {
	if mode := status("Seccomp"); mode != "2" {
		return broke("seccomp mode %q, not 2", mode)
	}
	return held("seccomp mode 2, %s filters", status("Seccomp_filters"))
}

// mappedRoot wants that root here is nobody on the host.
func mappedRoot() verdict {
	b, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return broke("no uid map: %v", err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	for _, line := range lines {
		var in, out, n int64
		if _, err := fmt.Sscan(line, &in, &out, &n); err != nil {
			return broke("uid map %q: %v", line, err)
		}
		if out < 1000 || out+n > 1<<32-2 {
			return broke("user %d here is user %d of the host, and %d more", in, out, n-1)
		}
	}
	return held("uid map %s", strings.Join(strings.Fields(lines[0]), " "))
}

// setuidFile runs args[0], a file of the image that belongs to root and has the setuid bit, as somebody else.
func setuidFile(args []string) verdict {
	path := word(args, 0, "/suid")
	cmd := again("attack", "setuid-seen")
	cmd.Path = path
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 1000}}
	b, err := cmd.Output()
	switch {
	case err != nil:
		return broke("the setuid file did not run: %v", err)
	case !strings.Contains(string(b), `"holds":true`):
		return broke("%s", strings.TrimSpace(string(b)))
	}
	return held("a setuid file of root's, run by user 1000, ran as user 1000")
}

func setuidSeen() verdict {
	if os.Geteuid() != 1000 {
		return broke("the setuid file ran as user %d", os.Geteuid())
	}
	return held("still user %d", os.Geteuid())
}

// sysv looks for shared memory of the host by its key.
func sysv(args []string) verdict {
	key := int(number(args, 0, 0x68616767))
	return allFail(
		call("shared memory of the host", unix.SYS_SHMGET, key, 1, 0),
		call("message queue of the host", unix.SYS_MSGGET, key, 0),
	)
}

// abstractSocket connects to a name that has no file and so no owner.
func abstractSocket(args []string) verdict {
	var tries []try
	for _, name := range args {
		tries = append(tries, try{"connect to @" + name, func() error {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Connect(fd, &unix.SockaddrUnix{Name: "@" + name})
		}})
	}
	return allFail(tries...)
}

// controlText writes to the log what would take over a terminal.
func controlText([]string) verdict {
	if _, err := os.Stdout.WriteString("\x1b]0;owned\x07\x1b[2J\x1b[31m\u202edetfihs\u202c\x9b31m\x00\r\n"); err != nil {
		return broke("stdout: %v", err)
	}
	return held("control sequences are in the log")
}

// orphans makes args[0] processes that outlive this one and hear no signal that they can be deaf to, and stays for args[1]
// seconds.
func orphans(args []string) verdict {
	n := min(number(args, 0, 20), 500)
	for range n {
		pid, _, no := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if no != 0 {
			return broke("fork: %v", no)
		}
		if pid == 0 {
			_, _, _ = unix.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
			everything := ^uint64(0)
			_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, 0, uintptr(unsafe.Pointer(&everything)), 0, 8, 0, 0)
			for {
				_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
			}
		}
	}
	v := held("%d orphans", n).counted(n)
	keep("orphans-there", v, number(args, 1, 10))
	return v
}

// clone3 takes the flags out of the filter's sight, in memory. The child, should there be one, ends at once.
func clone3() error {
	type arguments struct {
		flags, pidfd, childTID, parentTID, exitSignal, stack, stackSize, tls uint64
	}
	a := &arguments{flags: unix.CLONE_NEWUSER, exitSignal: uint64(unix.SIGCHLD)}
	pid, _, no := unix.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(a)), unsafe.Sizeof(*a), 0)
	if no != 0 {
		return no
	}
	if pid == 0 {
		for {
			_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	var st unix.WaitStatus
	_, err := unix.Wait4(int(pid), &st, 0, nil)
	if err != nil {
		return errors.Join(errors.New("a child was made"), err)
	}
	return nil
}
