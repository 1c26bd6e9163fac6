//go:build !unix

package door

import (
	"errors"
	"os"
	"os/exec"
)

func openTerminal() (master, slave *os.File, err error) { return nil, nil, errors.ErrUnsupported }

func setSize(*os.File, windowSize) {}

func own(*exec.Cmd, bool) {}

// signal ends the program: there is one signal here.
func (c *child) signal(name string) bool {
	if name == "KILL" || name == "TERM" || name == "HUP" {
		_ = c.cmd.Process.Kill()
	}
	return true
}

func killedBy(*os.ProcessState) (string, bool) { return "", false }
