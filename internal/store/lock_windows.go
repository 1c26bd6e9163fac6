package store

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockByte is the one byte that is locked. It lies far behind the process id, which others must be able to read.
const lockByte = 1 << 30

// lockFile takes a lock that the system drops when the process ends, however it ends.
func lockFile(f *os.File) error {
	at := &windows.Overlapped{Offset: lockByte}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return err
}
