package lab

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// signals are what ends a process, the polite one first.
func signals() []os.Signal { return []os.Signal{syscall.SIGTERM, os.Kill} }

// alive reports whether a process runs. One that has ended and waits for its parent to notice does not count.
func alive(pid int) bool {
	const zombie = 5 // SZOMB of sys/proc.h
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && info.Proc.P_pid == int32(pid) && info.Proc.P_stat != zombie
}

// processes returns the running processes whose command line ends with these words.
func processes(words ...string) []int {
	out, err := exec.Command("ps", "-axww", "-o", "pid=,command=").Output()
	if err != nil {
		return nil
	}
	var found []int
	for line := range strings.Lines(string(out)) {
		number, command, _ := strings.Cut(strings.TrimSpace(line), " ")
		if pid, err := strconv.Atoi(number); err == nil && strings.HasSuffix(command, " "+strings.Join(words, " ")) {
			found = append(found, pid)
		}
	}
	return found
}
