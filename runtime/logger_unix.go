//go:build unix

package runtime

import (
	"os"

	"golang.org/x/sys/unix"
)

// detachSession fails where the process leads a group already; then it is detached enough.
func detachSession() { _, _ = unix.Setsid() }

func lockFile(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
