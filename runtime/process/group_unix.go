//go:build !windows

package process

import (
	"os"
	"syscall"
)

// group is the job's process group, whose id is that of its first process.
type group int

func newGroup(p *os.Process) (group, error) { return group(p.Pid), nil }

// ask asks the first process to end. It returns false where the system has no way to ask.
func (g group) ask() bool {
	_ = syscall.Kill(int(g), syscall.SIGTERM) // one that has ended needs no asking
	return true
}

// kill ends every process of the group; none is no fault.
func (g group) kill() { _ = syscall.Kill(-int(g), syscall.SIGKILL) }

func (g group) close() {}

// killGone kills a job whose supervisor was killed, where it is certain that the process is still the job's.
func killGone(s started) {
	if s.Pid > 1 && s.Birth != "" && birth(s.Pid) == s.Birth {
		group(s.Pid).kill()
	}
}

// exitCode returns how a process ended, by the convention of runtime.Exit.
func exitCode(s *os.ProcessState) int {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return s.ExitCode()
}

// detached starts a supervisor that neither a terminal's end nor a signal to the rig's group reaches.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// executable returns the name that a program must have to be run.
func executable(path string) string { return path }
