package inside

import (
	"encoding/binary"
	"errors"
	"os"
	goruntime "runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

func kernelWeapons() []weapon {
	return []weapon{
		{"bpf", func([]string) verdict { return bpf() }},
		{"perf", perf},
		{"keyctl", func([]string) verdict { return keys() }},
		{"userfaultfd", userfaultfd},
		{"io-uring", ioUring},
		{"modules", modules},
		{"reboot", reboot},
		{"clock", clock},
		{"hostname", hostname},
		{"accounting", accounting},
		{"priority", priority},
		{"user-namespace", nesting},
		{"namespaces", namespaces},
		{"foreign-calls", foreignCalls},
	}
}

func bpf() verdict {
	// struct bpf_attr: a map of type 2 (array), keys of 4 bytes, values of 4, one entry; and an empty program.
	attr := make([]byte, 128)
	for i, v := range []uint32{2, 4, 4, 1} {
		binary.NativeEndian.PutUint32(attr[4*i:], v)
	}
	return allRefused(
		call("bpf: make a map", unix.SYS_BPF, 0, attr, 128),
		call("bpf: load a program", unix.SYS_BPF, 5, make([]byte, 128), 128),
	)
}

func perf([]string) verdict {
	attr := make([]byte, unix.PERF_ATTR_SIZE_VER0)
	binary.NativeEndian.PutUint32(attr[0:], unix.PERF_TYPE_SOFTWARE)
	binary.NativeEndian.PutUint32(attr[4:], uint32(len(attr)))
	return allRefused(
		call("perf_event_open for every process", unix.SYS_PERF_EVENT_OPEN, attr, -1, 0, -1, 0),
		call("perf_event_open for itself", unix.SYS_PERF_EVENT_OPEN, attr, 0, -1, -1, 0),
	)
}

func keys() verdict {
	const userKeyring = -4
	return allRefused(
		call("add_key", unix.SYS_ADD_KEY, text("user"), text("haggle"), text("x"), 1, userKeyring),
		call("keyctl: describe the user's keys", unix.SYS_KEYCTL, 6, userKeyring, make([]byte, 64), 64),
		call("request_key", unix.SYS_REQUEST_KEY, text("user"), text("haggle"), text(""), userKeyring),
	)
}

func userfaultfd([]string) verdict {
	return allRefused(call("userfaultfd", unix.SYS_USERFAULTFD, 0), call("userfaultfd of user mode", unix.SYS_USERFAULTFD, 1))
}

func ioUring([]string) verdict {
	return allRefused(
		call("io_uring_setup", unix.SYS_IO_URING_SETUP, 1, make([]byte, 120)),
		call("io_uring_register", unix.SYS_IO_URING_REGISTER, -1, 0, 0, 0),
	)
}

func modules([]string) verdict {
	return allRefused(
		call("init_module", unix.SYS_INIT_MODULE, text(""), 0, text("")),
		call("finit_module", unix.SYS_FINIT_MODULE, 0, text(""), 0),
		call("delete_module", unix.SYS_DELETE_MODULE, text("haggle_none"), unix.O_NONBLOCK),
		call("kexec_load", unix.SYS_KEXEC_LOAD, 0, 0, 0, 0),
	)
}

// reboot asks for what changes nothing: that Ctrl-Alt-Del stays without effect on a server.
func reboot([]string) verdict {
	return allRefused(call("reboot", unix.SYS_REBOOT, unix.LINUX_REBOOT_MAGIC1, unix.LINUX_REBOOT_MAGIC2, unix.LINUX_REBOOT_CMD_CAD_OFF, 0))
}

// clock sets the time to what it is.
func clock([]string) verdict {
	return allRefused(
		try{"set the clock", func() error {
			var now unix.Timespec
			if err := unix.ClockGettime(unix.CLOCK_REALTIME, &now); err != nil {
				return err
			}
			return unix.ClockSettime(unix.CLOCK_REALTIME, &now)
		}},
		try{"set the time of day", func() error {
			var now unix.Timeval
			if err := unix.Gettimeofday(&now); err != nil {
				return err
			}
			return unix.Settimeofday(&now)
		}},
		try{"steer the clock", func() error {
			_, err := unix.Adjtimex(&unix.Timex{Modes: unix.ADJ_FREQUENCY})
			return err
		}},
	)
}

func hostname([]string) verdict {
	name, err := os.Hostname()
	if err != nil {
		return broke("no host name: %v", err)
	}
	return allRefused(
		try{"sethostname", func() error { return unix.Sethostname([]byte(name)) }},
		try{"setdomainname", func() error { return unix.Setdomainname([]byte("")) }},
	)
}

func accounting([]string) verdict {
	return allRefused(
		call("swapon", unix.SYS_SWAPON, text("/work/none"), 0),
		call("acct", unix.SYS_ACCT, text("/work/none")),
		call("quotactl", unix.SYS_QUOTACTL, 0, text("/"), 0, 0),
		call("vhangup", unix.SYS_VHANGUP),
		call("fanotify_init", unix.SYS_FANOTIFY_INIT, 0x4, 0), // whole mounts, with the right to refuse
	)
}

// priority tries to take the processor before everyone else.
func priority([]string) verdict {
	param := make([]byte, 8)
	binary.NativeEndian.PutUint32(param, 50)
	const realTime = 1 << 13
	return allRefused(
		call("real-time scheduling", unix.SYS_SCHED_SETSCHEDULER, 0, unix.SCHED_FIFO, param),
		try{"nice -20", func() error { return unix.Setpriority(unix.PRIO_PROCESS, 0, -20) }},
		call("real-time disk priority", unix.SYS_IOPRIO_SET, 1, 0, realTime),
	)
}

// nesting wants that no user namespace can be made: what is root inside one reaches parts of the kernel that nobody else does.
func nesting([]string) verdict {
	return allRefused(
		try{"clone with a user namespace", func() error {
			cmd := again("attack", "look")
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
			err := cmd.Run()
			if cmd.ProcessState != nil {
				return nil // it ran
			}
			return err
		}},
		try{"unshare a user namespace", func() error {
			if err := unix.Unshare(unix.CLONE_NEWUSER); !errors.Is(err, unix.EINVAL) {
				return err
			}
			return errors.New("refused only because the program has threads")
		}},
		try{"clone3 with a user namespace", clone3},
	)
}

func namespaces([]string) verdict {
	var tries []try
	for _, n := range []struct {
		name string
		flag int
	}{
		{"mnt", unix.CLONE_NEWNS},
		{"net", unix.CLONE_NEWNET},
		{"pid", unix.CLONE_NEWPID},
		{"ipc", unix.CLONE_NEWIPC},
		{"uts", unix.CLONE_NEWUTS},
		{"cgroup", unix.CLONE_NEWCGROUP},
		{"time", unix.CLONE_NEWTIME},
	} {
		tries = append(tries,
			try{"unshare " + n.name, func() error { return unix.Unshare(n.flag) }},
			try{"setns to " + n.name + " of process 1", func() error {
				fd, err := unix.Open("/proc/1/ns/"+n.name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
				if err != nil {
					return err
				}
				defer unix.Close(fd)
				return unix.Setns(fd, n.flag)
			}},
		)
	}
	return allFail(tries...)
}

// foreignCalls makes calls of another numbering, which a filter for one alone would let through. A child makes them, because
// filters kill whoever does.
func foreignCalls([]string) verdict {
	const x32 = 0x40000000
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	pid, _, no := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if no != 0 {
		return broke("fork: %v", no)
	}
	if pid == 0 {
		_, _, no := unix.RawSyscall(x32|unix.SYS_GETPID, 0, 0, 0)
		for {
			_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(no), 0, 0)
		}
	}
	var st unix.WaitStatus
	if _, err := unix.Wait4(int(pid), &st, 0, nil); err != nil {
		return broke("wait: %v", err)
	}
	switch {
	case st.Signaled():
		return held("getpid by the x32 numbering: killed by %v", st.Signal())
	case st.ExitStatus() == int(unix.ENOSYS), st.ExitStatus() == int(unix.EPERM):
		return held("getpid by the x32 numbering: %v", syscall.Errno(st.ExitStatus()))
	}
	return broke("getpid by the x32 numbering was allowed")
}
