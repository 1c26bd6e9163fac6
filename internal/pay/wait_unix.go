//go:build unix && !linux

package pay

import (
	"os/exec"

	"golang.org/x/sys/unix"
)

// wait waits for a program and ends what is left of its group.
func wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	return err
}
