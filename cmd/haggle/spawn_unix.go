//go:build !windows

package main

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// detached starts a process that no terminal's end and no Ctrl-C reaches.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func tryLock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errLocked
	}
	return err
}
