package pay

import (
	"errors"
	"os/exec"

	"golang.org/x/sys/unix"
)

// wait waits for a program and ends what is left of its group. It does so before the program is reaped: afterwards the group's
// number could be somebody else's.
func wait(cmd *exec.Cmd) error {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	return cmd.Wait()
}
