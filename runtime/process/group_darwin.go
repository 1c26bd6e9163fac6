package process

import (
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"haggle/runtime"
)

// jobAttr makes the job a group of its own.
func jobAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// birth tells a process from a later one of the same id.
func birth(pid int) string {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return ""
	}
	t := info.Proc.P_starttime
	return strconv.FormatInt(t.Sec, 10) + "." + strconv.Itoa(int(t.Usec))
}

// usage is not known of a running job here.
func usage(int) (runtime.Usage, bool) { return runtime.Usage{}, false }
