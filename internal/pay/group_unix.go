//go:build unix

package pay

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// group gives a program a process group, which ends with it.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		if unix.Kill(-cmd.Process.Pid, unix.SIGKILL) != nil {
			return os.ErrProcessDone
		}
		return nil
	}
}
