package nvidia

import (
	"os/exec"
	"syscall"
)

// detach puts the child into a process group of its own, so that a Ctrl-C at the terminal reaches the parent alone, which
// then ends the child in order.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
